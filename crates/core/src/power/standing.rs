//! Where the newest command stands.

use std::time::Duration;

use super::bmc::{Command, Fault, Reading};
use super::context::Context;
use super::host::{End, Intention};
use super::seen::Sent;

/// Where the newest command stands, by this process' own clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It was never sent, for certain. `may_go`: its intention was written just now.
    Unsent { may_go: bool },
    /// It is being sent; it will have ended by then.
    UnderWay { until: Duration },
    /// The BMC answered it at (or, if another process sent it, before) that moment.
    Answered { at: Duration },
    /// It failed at that moment, and nothing of it is on its way.
    Failed { at: Duration, fault: Option<Fault> },
    /// The BMC may have got it: it was given up, or first seen, at that moment.
    Unknown { at: Duration, is_foreign: bool },
}

/// Every call ends within its deadline; what is not reported so much later never will be.
const LATE: Duration = Duration::from_secs(5);

impl Context<'_> {
    /// Where the command that stands on the host stands.
    pub(super) fn standing(&self, command: &Intention) -> Standing {
        let memory = &self.seen.memory;
        let standing = match memory.command.as_ref().filter(|ours| ours.id == command.id) {
            Some(ours) => self.ours(ours),
            None if memory.tried.as_ref() == Some(&command.id) => {
                Standing::Unsent { may_go: false }
            }
            None => self.foreign(command),
        };
        let is_elsewhere = self.target(command.level).as_ref() != Some(&command.target);
        match standing {
            // The address was changed: what the other device answered says nothing of this one.
            Standing::Answered { .. } | Standing::Unsent { .. } if is_elsewhere => {
                Standing::Failed {
                    at: Duration::ZERO,
                    fault: None,
                }
            }
            Standing::Unsent { .. }
            | Standing::UnderWay { .. }
            | Standing::Answered { .. }
            | Standing::Failed { .. }
            | Standing::Unknown { .. } => standing,
        }
    }

    fn ours(&self, ours: &Sent) -> Standing {
        match (&ours.ended, ours.sent) {
            (Some((at, Ok(_))), _) => Standing::Answered { at: *at },
            (Some((at, Err(fault))), _) if fault.may_have_run => Standing::Unknown {
                at: *at,
                is_foreign: false,
            },
            (Some((at, Err(fault))), _) => Standing::Failed {
                at: *at,
                fault: Some(fault.clone()),
            },
            (None, Some(sent)) => self.under_way(sent),
            (None, None) => Standing::Unsent {
                may_go: self.now.mono <= ours.written.saturating_add(super::Config::SEND_WITHIN),
            },
        }
    }

    fn under_way(&self, sent: Duration) -> Standing {
        let until = sent.saturating_add(self.config.call).saturating_add(LATE);
        if self.now.mono < until {
            return Standing::UnderWay { until };
        }
        Standing::Unknown {
            at: until,
            is_foreign: false,
        }
    }

    fn foreign(&self, command: &Intention) -> Standing {
        let seen = self.seen.memory.foreign.as_ref();
        let at = seen
            .filter(|(id, _)| *id == command.id)
            .map_or(self.now.mono, |(_, at)| *at);
        match &command.end {
            End::Answered { .. } => Standing::Answered { at },
            End::Failed { .. } => Standing::Failed {
                at: Duration::ZERO,
                fault: None,
            },
            End::Open | End::Unknown { .. } => Standing::Unknown {
                at,
                is_foreign: true,
            },
        }
    }

    /// From when on no command of unknown end can be run by a BMC any more.
    pub(super) fn settled_at(&self) -> Duration {
        let command = self.command();
        let unknown = match command.map(|command| self.standing(command)) {
            Some(Standing::Unknown { at, .. }) => Some(at),
            Some(Standing::UnderWay { until }) => Some(until),
            // Answered is not run: some BMCs take 10 s, and an "already off" in between means nothing.
            Some(Standing::Answered { at }) if self.is_on_awaited(at) => Some(at),
            Some(Standing::Unsent { .. } | Standing::Answered { .. } | Standing::Failed { .. })
            | None => None,
        };
        let replaced = command
            .filter(|command| command.after_unknown)
            .and_then(|command| {
                let ours = self.seen.memory.command.as_ref();
                ours.filter(|ours| ours.id == command.id)
                    .map(|ours| ours.written)
            });
        let unknown = unknown.max(replaced);
        let newest = self.seen.memory.loose.max(unknown);
        newest.map_or(Duration::ZERO, |at| at.saturating_add(self.config.settle))
    }

    /// Whether a power-on that was answered at `at` has not been seen to take.
    fn is_on_awaited(&self, at: Duration) -> bool {
        let on = self
            .command()
            .filter(|command| command.command == Command::On);
        on.is_some_and(|on| {
            let read = self.newest_since(on.level, at);
            read.is_none_or(|read| read.said != Ok(Reading::On))
        })
    }
}
