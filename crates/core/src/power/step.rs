//! A decision in the making: the status as it should stand, and what else comes of it.

use std::time::Duration;

use super::bmc::Command;
use super::context::Context;
use super::decide::{Action, Look};
use super::host::{Done, End, HISTORY, HostStatus, Intention};
use super::standing::Standing;
use crate::Wake;
use crate::condition::Status;
use crate::decision::{Because, Event, Severity};

pub(super) struct Step {
    /// As it should stand.
    pub(super) status: HostStatus,
    /// What goes before writing the status.
    pub(super) action: Option<Action>,
    pub(super) looks: Vec<Look>,
    pub(super) wake: Option<Wake>,
    pub(super) events: Vec<Event>,
    pub(super) because: Because,
    /// Whether power is where it is wanted.
    pub(super) as_wanted: Status,
    /// A power-off or power-on needs the BMC: no checks meanwhile.
    pub(super) is_busy: bool,
}

/// A command to be decided.
pub(super) struct Next {
    pub(super) command: Command,
    pub(super) level: usize,
    pub(super) why: &'static str,
    /// Whether it begins a need, or goes on with the one that the command on the host belongs to.
    pub(super) begins: bool,
}

impl Next {
    /// One that begins a need.
    pub(super) fn begins(command: Command, level: usize, why: &'static str) -> Self {
        Self {
            command,
            level,
            why,
            begins: true,
        }
    }

    /// One that goes on with the need that the command on the host belongs to.
    pub(super) fn goes_on(command: Command, level: usize, why: &'static str) -> Self {
        Self {
            begins: false,
            ..Self::begins(command, level, why)
        }
    }
}

impl Step {
    pub(super) fn new(status: HostStatus) -> Self {
        Self {
            status,
            action: None,
            looks: Vec::new(),
            wake: None,
            events: Vec::new(),
            because: Because::new(super::reason::POWER_UNKNOWN, "not read yet"),
            as_wanted: Status::Unknown,
            is_busy: false,
        }
    }

    /// Why this and nothing else.
    pub(super) fn because(
        &mut self,
        as_wanted: Status,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.as_wanted = as_wanted;
        self.because = Because::new(reason, message);
    }

    /// Not as wanted, and something is being done about it.
    pub(super) fn busy(&mut self, reason: &'static str, message: impl Into<String>) {
        self.is_busy = true;
        self.because(Status::False, reason, message);
    }

    pub(super) fn event(
        &mut self,
        severity: Severity,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.events.push(Event {
            severity,
            reason,
            message: message.into(),
        });
    }

    pub(super) fn wake(&mut self, at: Duration, why: &'static str) {
        self.wake = Wake::earlier(self.wake.take(), Some(Wake { at, why }));
    }

    /// Reads the level as soon as `due` has come.
    pub(super) fn read(
        &mut self,
        ctx: &Context<'_>,
        level: usize,
        due: Duration,
        why: &'static str,
    ) {
        if due > ctx.now.mono {
            self.wake(due, why);
            return;
        }
        let look = Look::Read {
            level,
            is_urgent: self.is_busy,
        };
        if !self.looks.contains(&look) {
            self.looks.push(look);
        }
    }

    /// Decides a command: its intention is written, and it is sent by the next decision.
    pub(super) fn command(&mut self, ctx: &Context<'_>, next: &Next) {
        let Some(target) = ctx.target(next.level) else {
            return;
        };
        let at = super::times::micros(ctx.now.wall);
        let earlier = ctx.command().filter(|_| !next.begins);
        let same = earlier
            .filter(|earlier| earlier.command == next.command && earlier.level == next.level);
        let was_unsent =
            earlier.is_some_and(|earlier| matches!(ctx.standing(earlier), Standing::Unsent { .. }));
        let count = u32::from(!was_unsent);
        if next.command.is_off() {
            self.status.power.off_confirmed_at = None;
            self.status.power.confirmed_for =
                ctx.obeyed().map(super::annotations::Request::id).collect();
        }
        self.status.power.command = Some(Intention {
            id: ctx.id.to_owned(),
            command: next.command,
            level: next.level,
            target,
            since: earlier.map_or(at, |earlier| earlier.since),
            at,
            attempt: same.map_or(1, |same| same.attempt.saturating_add(count)),
            before: earlier.map_or(0, |earlier| earlier.before.saturating_add(count)),
            after_unknown: ctx.now.mono < ctx.settled_at(),
            why: next.why.to_owned(),
            end: End::Open,
        });
    }

    /// A need, or a part of one, ended.
    pub(super) fn done(&mut self, ctx: &Context<'_>, command: &Intention, outcome: &str) {
        let took = Duration::from_millis(
            u64::try_from(ctx.spent(command).as_millis()).unwrap_or(u64::MAX),
        );
        let was_unsent = matches!(ctx.standing(command), Standing::Unsent { .. });
        let history = &mut self.status.power.history;
        history.insert(
            0,
            Done {
                what: command.command,
                why: command.why.clone(),
                at: command.since,
                outcome: outcome.to_owned(),
                took,
                attempts: command.before.saturating_add(u32::from(!was_unsent)),
            },
        );
        history.truncate(HISTORY);
    }
}
