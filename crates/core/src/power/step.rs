//! A power decision that is being built: the desired status, the action and the reads.

use std::time::Duration;

use super::PowerReason;
use super::bmc::PowerCommand;
use super::command_state::PowerCommandState;
use super::context::PowerContext;
use super::cut_outlet;
use super::decide::{PowerAction, PowerObserve};
use super::host::{
    HostStatus, MAX_POWER_HISTORY, PendingCommand, PendingCommandEnd, PowerHistoryEntry,
};
use crate::WakeTime;
use crate::condition::ConditionStatus;
use crate::decision::{DecisionCause, DecisionEvent, EventSeverity};

#[derive(Clone)]
pub(super) struct PowerStep {
    pub(super) status: HostStatus,
    /// The action that goes before a write of the status.
    pub(super) action: Option<PowerAction>,
    pub(super) observe: Vec<PowerObserve>,
    pub(super) wake: Option<WakeTime>,
    pub(super) events: Vec<DecisionEvent>,
    pub(super) cause: DecisionCause<PowerReason>,
    /// Whether the power is as spec and keys want it.
    pub(super) as_wanted: ConditionStatus,
    /// A power-off or power-on needs the BMC: no checks meanwhile.
    pub(super) is_busy: bool,
}

pub(super) struct NextCommand {
    pub(super) command: PowerCommand,
    pub(super) level: usize,
    pub(super) why: PowerReason,
    /// Whether it begins a need, or continues the need of the command on the host.
    pub(super) begins: bool,
}

impl NextCommand {
    pub(super) fn begin_need(command: PowerCommand, level: usize, why: PowerReason) -> Self {
        Self {
            command,
            level,
            why,
            begins: true,
        }
    }

    pub(super) fn continue_need(command: PowerCommand, level: usize, why: PowerReason) -> Self {
        Self {
            begins: false,
            ..Self::begin_need(command, level, why)
        }
    }
}

impl PowerStep {
    pub(super) fn new(status: HostStatus) -> Self {
        Self {
            status,
            action: None,
            observe: Vec::new(),
            wake: None,
            events: Vec::new(),
            cause: DecisionCause::new(PowerReason::PowerUnknown, "its power has not been read yet"),
            as_wanted: ConditionStatus::Unknown,
            is_busy: false,
        }
    }

    pub(super) fn set_cause(
        &mut self,
        as_wanted: ConditionStatus,
        reason: PowerReason,
        message: impl Into<String>,
    ) {
        self.as_wanted = as_wanted;
        self.cause = DecisionCause::new(reason, message);
    }

    /// Sets the cause for a host that is not as wanted while Dogwatch works on it.
    pub(super) fn set_busy(&mut self, reason: PowerReason, message: impl Into<String>) {
        self.is_busy = true;
        self.set_cause(ConditionStatus::False, reason, message);
    }

    pub(super) fn add_event(
        &mut self,
        severity: EventSeverity,
        reason: PowerReason,
        message: impl Into<String>,
    ) {
        self.events.push(DecisionEvent {
            severity,
            reason: reason.as_str(),
            message: message.into(),
        });
    }

    pub(super) fn wake_at(&mut self, at: Duration, why: &'static str) {
        self.wake = WakeTime::earlier_of(self.wake.take(), Some(WakeTime { at, why }));
    }

    /// Reads the level once `due` has come.
    pub(super) fn read_level_at(
        &mut self,
        ctx: &PowerContext<'_>,
        level: usize,
        due: Duration,
        why: &'static str,
    ) {
        if due > ctx.now.mono {
            self.wake_at(due, why);
            return;
        }
        let look = PowerObserve::Read {
            level,
            is_urgent: self.is_busy,
        };
        if !self.observe.contains(&look) {
            self.observe.push(look);
        }
    }

    /// Records a new command in the status; the next decision sends it.
    pub(super) fn set_command(&mut self, ctx: &PowerContext<'_>, next: &NextCommand) {
        let Some(target) = ctx.level_digest(next.level) else {
            return;
        };
        if let Some(replaced) = ctx.pending_command() {
            cut_outlet::report_changed_outlet(ctx, self, replaced);
        }
        let at = super::status_times::truncate_to_micros(ctx.now.wall);
        let earlier = ctx.pending_command().filter(|_| !next.begins);
        let same = earlier
            .filter(|earlier| earlier.command == next.command && earlier.level == next.level);
        let was_unsent = earlier.is_some_and(|earlier| {
            matches!(ctx.command_state(earlier), PowerCommandState::Unsent { .. })
        });
        let count = u32::from(!was_unsent);
        if next.command.is_power_off() {
            self.status.power.off_confirmed_at = None;
            self.status.power.confirmed_for = ctx
                .obeyed_annotations()
                .map(super::annotations::HostRebootAnnotation::id)
                .collect();
        }
        self.status.power.command = Some(PendingCommand {
            id: ctx.id.to_owned(),
            command: next.command,
            level: next.level,
            target,
            since: earlier.map_or(at, |earlier| earlier.since),
            at,
            attempt: same.map_or(1, |same| same.attempt.saturating_add(count)),
            before: earlier.map_or(0, |earlier| earlier.before.saturating_add(count)),
            after_unknown: ctx.now.mono < ctx.settled_at(),
            why: next.why.to_string(),
            end: PendingCommandEnd::Open,
        });
    }

    /// Whether this decision sends a power-off, or records a new one.
    pub(super) fn has_power_off(&self, ctx: &PowerContext<'_>) -> bool {
        let is_sent =
            matches!(&self.action, Some(PowerAction::Send(sent)) if sent.command.is_power_off());
        let recorded = self.status.power.command.as_ref();
        let recorded = recorded.filter(|command| command.id == ctx.id);
        is_sent || recorded.is_some_and(|command| command.command.is_power_off())
    }

    /// Adds a history entry for a need, or a part of one, that ended.
    pub(super) fn record_done(
        &mut self,
        ctx: &PowerContext<'_>,
        command: &PendingCommand,
        outcome: PowerReason,
    ) {
        let took = Duration::from_millis(
            u64::try_from(ctx.need_age(command).as_millis()).unwrap_or(u64::MAX),
        );
        let was_unsent = matches!(ctx.command_state(command), PowerCommandState::Unsent { .. });
        let history = &mut self.status.power.history;
        history.insert(
            0,
            PowerHistoryEntry {
                what: command.command,
                why: command.why.clone(),
                at: command.since,
                outcome: outcome.to_string(),
                took,
                attempts: command.before.saturating_add(u32::from(!was_unsent)),
            },
        );
        history.truncate(MAX_POWER_HISTORY);
    }
}
