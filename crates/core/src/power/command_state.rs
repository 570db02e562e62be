//! The state of the newest power command.

use std::time::Duration;

use super::bmc::{BmcFault, CommandAnswer, PowerCommand, PowerReading};
use super::context::PowerContext;
use super::host::{PendingCommand, PendingCommandEnd};
use super::snapshot::SentCommand;

/// The state of the newest command, by this process' own monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PowerCommandState {
    /// Certainly never sent. `may_go`: its record was written just now, so it may be sent.
    Unsent { may_go: bool },
    /// It is being sent; the call ends by `until`.
    UnderWay { until: Duration },
    /// The BMC answered it at `at`; if another process sent it, at `at` or earlier.
    Answered { at: Duration },
    /// It failed at `at`, and the BMC will not run it.
    Failed {
        at: Duration,
        fault: Option<BmcFault>,
    },
    /// The BMC may have received it. `at`: when this process gave it up or first saw it.
    Unknown { at: Duration, is_foreign: bool },
}

/// Every call ends within its deadline; one not reported this long after it will never be.
const CALL_REPORT_GRACE: Duration = Duration::from_secs(5);

impl PowerContext<'_> {
    pub(super) fn command_state(&self, command: &PendingCommand) -> PowerCommandState {
        let memory = &self.seen.memory;
        let standing = match memory.command.as_ref().filter(|ours| ours.id == command.id) {
            Some(ours) => self.own_command_state(ours),
            None if memory.unanswered_write.as_ref() == Some(&command.id) => {
                PowerCommandState::Unsent { may_go: false }
            }
            None => self.foreign_command_state(command),
        };
        let is_elsewhere = self.level_digest(command.level).as_ref() != Some(&command.target);
        match standing {
            // The address was changed: the other device's answer says nothing about this one.
            PowerCommandState::Answered { .. } | PowerCommandState::Unsent { .. }
                if is_elsewhere =>
            {
                PowerCommandState::Failed {
                    at: Duration::ZERO,
                    fault: None,
                }
            }
            PowerCommandState::Unsent { .. }
            | PowerCommandState::UnderWay { .. }
            | PowerCommandState::Answered { .. }
            | PowerCommandState::Failed { .. }
            | PowerCommandState::Unknown { .. } => standing,
        }
    }

    fn own_command_state(&self, ours: &SentCommand) -> PowerCommandState {
        match (&ours.ended, ours.sent) {
            (Some((at, Ok(_))), _) => PowerCommandState::Answered { at: *at },
            (Some((at, Err(fault))), _) if fault.may_have_run => PowerCommandState::Unknown {
                at: *at,
                is_foreign: false,
            },
            (Some((at, Err(fault))), _) => PowerCommandState::Failed {
                at: *at,
                fault: Some(fault.clone()),
            },
            (None, Some(sent)) => self.sent_command_state(sent),
            (None, None) => PowerCommandState::Unsent {
                may_go: self.now.mono
                    <= ours
                        .written
                        .saturating_add(super::PowerConfig::MAX_SEND_DELAY),
            },
        }
    }

    fn sent_command_state(&self, sent: Duration) -> PowerCommandState {
        let until = sent
            .saturating_add(self.config.call)
            .saturating_add(CALL_REPORT_GRACE);
        if self.now.mono < until {
            return PowerCommandState::UnderWay { until };
        }
        PowerCommandState::Unknown {
            at: until,
            is_foreign: false,
        }
    }

    fn foreign_command_state(&self, command: &PendingCommand) -> PowerCommandState {
        let seen = self.seen.memory.foreign_command.as_ref();
        let at = seen
            .filter(|(id, _)| *id == command.id)
            .map_or(self.now.mono, |(_, at)| *at);
        match &command.end {
            PendingCommandEnd::Answered { .. } => PowerCommandState::Answered { at },
            PendingCommandEnd::Failed { .. } => PowerCommandState::Failed {
                at: Duration::ZERO,
                fault: None,
            },
            PendingCommandEnd::Open | PendingCommandEnd::Unknown { .. } => {
                PowerCommandState::Unknown {
                    at,
                    is_foreign: true,
                }
            }
        }
    }

    /// The moment from which no BMC can run a command of unknown end any more.
    pub(super) fn settled_at(&self) -> Duration {
        let command = self.pending_command();
        let unknown = match command.map(|command| self.command_state(command)) {
            Some(PowerCommandState::Unknown { at, .. }) => Some(at),
            Some(PowerCommandState::UnderWay { until }) => Some(until),
            // An answered command may not have run yet: some BMCs take 10 s, and an "already off"
            // in between means nothing.
            Some(PowerCommandState::Answered { at })
                if self.is_power_on_awaited(at) || self.is_repeated_power_on() =>
            {
                Some(at)
            }
            Some(
                PowerCommandState::Unsent { .. }
                | PowerCommandState::Answered { .. }
                | PowerCommandState::Failed { .. },
            )
            | None => None,
        };
        let unknown = unknown.max(command.and_then(|command| self.may_still_run_since(command)));
        let newest = self.seen.memory.unsettled_since.max(unknown);
        newest.map_or(Duration::ZERO, |at| at.saturating_add(self.config.settle))
    }

    /// Since when the BMC may still run our command, or the one before it, although the newest one
    /// was answered. An answer that promises nothing counts before it is recorded as such: the next
    /// command may be decided in the same moment, and takes the record's place.
    fn may_still_run_since(&self, command: &PendingCommand) -> Option<Duration> {
        let ours = self.seen.memory.command.as_ref();
        let ours = ours.filter(|ours| ours.id == command.id)?;
        let is_task_unknown = matches!(
            ours.ended,
            Some((_, Ok(CommandAnswer::AcceptedWithoutTask)))
        );
        (command.after_unknown || is_task_unknown).then_some(ours.written)
    }

    /// A reading of "on" after a repeated power-on says nothing about the newest command: an earlier
    /// one may have done it, and the BMC may still run this one after a power-off.
    fn is_repeated_power_on(&self) -> bool {
        self.pending_command()
            .is_some_and(|command| command.command == PowerCommand::On && command.attempt > 1)
    }

    /// Whether the power-on that was answered at `at` has no reading of "on" yet.
    fn is_power_on_awaited(&self, at: Duration) -> bool {
        let on = self
            .pending_command()
            .filter(|command| command.command == PowerCommand::On);
        on.is_some_and(|on| {
            let read = self.newest_reading_since(on.level, at);
            read.is_none_or(|read| read.result != Ok(PowerReading::On))
        })
    }
}
