//! Starts the actions of a decision, one at a time.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::power::{
    PendingCommand, PendingCommandEnd, PowerAction, PowerConfig, PowerDecision, StatusWrite,
};
use futures::FutureExt as _;
use tracing::{debug, info};

use super::super::bmc_calls;
use super::super::bmc_concurrency::Priority;
use super::HostReconciler;
use super::conditions::conditions_to_write;
use super::jobs::{self, HostJobResult, StatusWriteJob};
use super::write_permits::WritePermitSource;

/// The part of the lead that must be left at a command's deadline: for the answer to arrive, and
/// for a clock that runs late.
const LEAD_MARGIN: Duration = Duration::from_millis(1500);
/// The shortest time limit with which a command is sent, unless `--bmc-timeout` is shorter.
const MIN_COMMAND_TIME: Duration = Duration::from_secs(5);
/// The retry interval while too little of the lead is left; the lead is renewed every three
/// seconds.
const LEAD_RETRY_INTERVAL: Duration = Duration::from_millis(250);

impl HostReconciler {
    /// Starts the decision's observations and its first action, if they do not run yet.
    pub(super) fn start_work(&mut self, decision: &PowerDecision, now: Now) {
        if !self.is_finishing {
            self.fetch_missing_secrets(now);
            for look in &decision.observe {
                self.start_observation(look);
            }
        }
        self.perform_action(decision, now);
        self.release_unused_permit();
    }

    fn perform_action(&mut self, decision: &PowerDecision, now: Now) {
        let action = decision.actions.first();
        let commanded = action.and_then(|action| self.command_of_action(action));
        let wanted = commanded.as_ref();
        let wanted = wanted.filter(|_| action.is_some_and(|action| self.needs_permit(action, now)));
        self.acquire_command_permit(wanted.map(|intention| intention.level));
        match action {
            Some(PowerAction::Send(intention)) => self.send_command(intention),
            Some(PowerAction::WriteStatus(write)) => {
                self.write_status(write, commanded, decision, now);
            }
            Some(PowerAction::RemoveAnnotations(names)) => {
                self.remove_annotations(names, decision, now);
            }
            None => self.report_decision(decision, now),
        }
    }

    /// The command that the action sends, or writes to the host for the first time.
    fn command_of_action(&self, action: &PowerAction) -> Option<PendingCommand> {
        let write = match action {
            PowerAction::Send(intention) => return Some(intention.clone()),
            PowerAction::RemoveAnnotations(_) => return None,
            PowerAction::WriteStatus(write) => write,
        };
        let spot = self.entry.lock_state();
        let standing = spot.seen.host.status.power.command.as_ref();
        let written = write.status.power.command.as_ref()?;
        let is_new = standing.is_none_or(|standing| standing.id != written.id);
        (is_new && written.end == PendingCommandEnd::Open).then(|| written.clone())
    }

    /// Whether the command of this action needs its permit now. A command that is still to be
    /// written needs it for the length of that write. A host whose last write failed takes its
    /// permit only once its command is written: otherwise it would keep it from others from one
    /// failed write to the next.
    fn needs_permit(&self, action: &PowerAction, now: Now) -> bool {
        match action {
            PowerAction::Send(_) => true,
            PowerAction::RemoveAnnotations(_) => false,
            PowerAction::WriteStatus(_) => {
                let is_written_now = self.under_way.command_write || self.can_write(now);
                is_written_now && !self.writes.has_failed()
            }
        }
    }

    /// Takes a permit for a command to this level, and releases one for any other level.
    fn acquire_command_permit(&mut self, wanted: Option<usize>) {
        if self.place.as_ref().map(|(level, _)| *level) != wanted {
            self.place = None;
        }
        let is_busy = self.under_way.command || self.under_way.place.is_some();
        let Some(number) = wanted.filter(|_| self.place.is_none() && !is_busy) else {
            return;
        };
        let Some(level) = self.connections.open_level(number) else {
            return;
        };
        let services = self.services.clone();
        let place = async move {
            bmc_calls::acquire_call_permit(&services, &level, Priority::Urgent).await
        };
        let mut place = place.boxed();
        // Usually a permit is free, and the intention is written at once.
        if let Some(place) = (&mut place).now_or_never() {
            self.place = Some((number, place));
            return;
        }
        self.under_way.place = Some(number);
        let placed = move |place| HostJobResult::Placed {
            level: number,
            place,
        };
        self.jobs.push(place.map(placed).boxed());
    }

    /// Sends the command that was written to the host: right after the answer to the write, and
    /// only if the lead outlasts the command.
    fn send_command(&mut self, intention: &PendingCommand) {
        let now = self.services.clock.now();
        let Some(within) = self.command_time_limit(now) else {
            return;
        };
        let level = self.connections.open_level(intention.level);
        let (Some(level), false) = (level, self.under_way.command) else {
            return;
        };
        let mut spot = self.entry.lock_state();
        let written = spot.seen.memory.command.as_ref();
        let is_fresh = written.is_some_and(|written| {
            let age = now.mono.saturating_sub(written.written);
            written.id == intention.id
                && written.sent.is_none()
                && age <= PowerConfig::MAX_SEND_DELAY
        });
        let Some((_, place)) = self.place.take_if(|_| is_fresh) else {
            return;
        };
        self.decision_log.log_sent_command(intention);
        spot.seen.memory.record_command_sent(now.mono);
        let (host, why) = (&spot.seen.host.name, &intention.why);
        info!(%host, command = %intention.command, level = intention.level, attempt = intention.attempt, why, "sends a power command to a BMC");
        self.under_way.command = true;
        let services = self.services.clone();
        let (id, command) = (intention.id.clone(), intention.command);
        let until = now.mono + within;
        let job = async move {
            let how = bmc_calls::send_command(&services, place, level, command, until).await;
            HostJobResult::Commanded { id, how }
        };
        self.jobs.push(job.boxed());
    }

    /// The time limit of a command that begins now: `--bmc-timeout`, and less than the rest of the
    /// lead. `None`: the rest of the lead is too short.
    fn command_time_limit(&mut self, now: Now) -> Option<Duration> {
        let call = self.services.config.call;
        let left = self.services.leadership.leading_until();
        let left = left.and_then(|until| until.checked_sub(now.mono + LEAD_MARGIN));
        let within = left.map(|left| left.min(call));
        let within = within.filter(|within| *within >= call.min(MIN_COMMAND_TIME));
        if within.is_none() {
            self.again = Some(now.mono + LEAD_RETRY_INTERVAL);
        }
        within
    }

    fn write_status(
        &mut self,
        write: &StatusWrite,
        commanded: Option<PendingCommand>,
        decision: &PowerDecision,
        now: Now,
    ) {
        if !self.can_write(now) {
            return;
        }
        if commanded.is_some() && !self.can_command(now) {
            if self.place.is_none() {
                self.report_decision(decision, now);
            }
            return;
        }
        let presses = commanded.is_some() || self.is_urgent_status_write(write);
        let Some(turn) = self.choose_permit_source(presses) else {
            return;
        };
        let events = self.pending_events(decision);
        let intention = commanded.map(|intention| intention.id);
        self.start_status_write(write.clone(), decision, intention, events, turn, now);
    }

    /// A process that is stopping sends no new command.
    fn can_command(&mut self, now: Now) -> bool {
        let is_placed = self.place.is_some() || self.writes.has_failed();
        let is_free = is_placed && !self.is_finishing && !self.under_way.command;
        is_free && self.command_time_limit(now).is_some()
    }

    fn can_write(&self, now: Now) -> bool {
        let leads = self.services.leadership.current_term().is_some();
        leads && !self.under_way.write && self.writes.blocked_until(now.mono).is_none()
    }

    fn start_status_write(
        &mut self,
        write: StatusWrite,
        decision: &PowerDecision,
        intention: Option<String>,
        events: Vec<DecisionEvent>,
        turn: WritePermitSource,
        now: Now,
    ) {
        let host = {
            let mut spot = self.entry.lock_state();
            if let Some(id) = &intention {
                spot.seen.memory.record_write_begun(id);
            }
            spot.seen.host.clone()
        };
        self.under_way.write = true;
        self.under_way.command_write = intention.is_some();
        let wanted = &decision.report.conditions;
        let conditions = conditions_to_write(&host.status.conditions, wanted, now);
        let because = &decision.cause;
        if intention.is_some() {
            info!(host = %host.name, reason = %because.reason, why = because.message, "writes the pending command before it is sent");
        } else {
            debug!(host = %host.name, reason = %because.reason, why = because.message, "writes a host's status");
        }
        let job = StatusWriteJob {
            services: self.services.clone(),
            host,
            write,
            conditions,
            intention,
            events,
            turn,
        };
        self.jobs.push(job.run_write().boxed());
    }

    fn remove_annotations(&mut self, names: &[String], decision: &PowerDecision, now: Now) {
        if !self.can_write(now) || self.is_finishing {
            return;
        }
        let Some(turn) = self.choose_permit_source(true) else {
            return;
        };
        let host = self.entry.lock_state().seen.host.clone();
        let because = &decision.cause;
        info!(host = %host.name, reason = %because.reason, why = because.message, annotations = ?names, "removes annotations of a host");
        let events = self.pending_events(decision);
        self.under_way.write = true;
        let job =
            jobs::remove_annotations(self.services.clone(), host, names.to_vec(), events, turn);
        self.jobs.push(job.boxed());
    }

    /// Reports a decision without an action: sends its new Events, and writes the conditions that
    /// changed.
    fn report_decision(&mut self, decision: &PowerDecision, now: Now) {
        let events = self.pending_events(decision);
        // An Event that applies without a break is sent once.
        self.reported_events
            .forget_unlisted(&decision.report.events);
        self.reported_events.record_events(&decision.report.events);
        self.report_events(events);
        if !self.can_write(now) {
            return;
        }
        let is_changed = {
            let standing = &self.entry.lock_state().seen.host.status.conditions;
            !conditions_to_write(standing, &decision.report.conditions, now).is_empty()
        };
        if !is_changed {
            return;
        }
        let Some(turn) = self.choose_permit_source(false) else {
            return;
        };
        let write = StatusWrite {
            status: self.entry.lock_state().seen.host.status.clone(),
            why: "its conditions changed",
        };
        self.start_status_write(write, decision, None, Vec::new(), turn, now);
    }

    fn pending_events(&self, decision: &PowerDecision) -> Vec<DecisionEvent> {
        self.reported_events.unreported_of(&decision.report.events)
    }

    pub(super) fn report_events(&mut self, events: Vec<DecisionEvent>) {
        if events.is_empty() || self.services.leadership.current_term().is_none() {
            return;
        }
        let host = self.entry.lock_state().seen.host.clone();
        let job = jobs::report_events(self.services.clone(), host, events);
        self.jobs.push(job.boxed());
    }
}
