//! What a decision asks to be done is begun, one action at a time.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::decision::Event;
use dogwatch_core::power::{Action, Config, Decision, End, Intention, StatusWrite};
use futures::FutureExt as _;
use tracing::{debug, info};

use super::super::call;
use super::super::lanes::Errand;
use super::Keeper;
use super::conditions::to_write;
use super::turn::WhoseTurn;
use super::work::{self, Done, StatusJob};

/// What of the lead is left when a command's deadline comes: for the answer's way, and for a clock
/// that runs late.
const MARGIN: Duration = Duration::from_millis(1500);
/// A command is not begun with less time than this, unless `--bmc-timeout` is less.
const LEAST: Duration = Duration::from_secs(5);
/// How soon it is tried again what the lead is too short for; it is renewed every three seconds.
const LEAD_AGAIN: Duration = Duration::from_millis(250);

impl Keeper {
    /// Begins what is not under way yet.
    pub(super) fn begin(&mut self, decision: &Decision, now: Now) {
        if !self.is_finishing {
            self.fetch_secrets(now);
            for look in &decision.looks {
                self.look(look);
            }
        }
        self.act(decision, now);
        self.give_up_turn();
    }

    fn act(&mut self, decision: &Decision, now: Now) {
        let action = decision.actions.first();
        let commanded = action.and_then(|action| self.commanded(action));
        self.hold_place(commanded.as_ref().map(|intention| intention.level));
        match action {
            Some(Action::Send(intention)) => self.send(intention),
            Some(Action::WriteStatus(write)) => self.write(write, commanded, decision, now),
            Some(Action::RemoveAnnotations(names)) => self.remove(names, decision, now),
            None => self.tell(decision, now),
        }
    }

    /// The command that the action sends, or writes down for the first time.
    fn commanded(&self, action: &Action) -> Option<Intention> {
        let write = match action {
            Action::Send(intention) => return Some(intention.clone()),
            Action::RemoveAnnotations(_) => return None,
            Action::WriteStatus(write) => write,
        };
        let spot = self.spot.lock();
        let standing = spot.seen.host.status.power.command.as_ref();
        let written = write.status.power.command.as_ref()?;
        let is_new = standing.is_none_or(|standing| standing.id != written.id);
        (is_new && written.end == End::Open).then(|| written.clone())
    }

    /// Sees to it that there is a place for a command to this level, and for no other.
    fn hold_place(&mut self, wanted: Option<usize>) {
        if self.place.as_ref().map(|(level, _)| *level) != wanted {
            self.place = None;
        }
        let is_busy = self.under_way.command || self.under_way.place.is_some();
        let Some(number) = wanted.filter(|_| self.place.is_none() && !is_busy) else {
            return;
        };
        let Some(level) = self.links.open(number) else {
            return;
        };
        let services = self.services.clone();
        let place = async move { call::enter(&services, &level, Errand::Urgent).await };
        let mut place = place.boxed();
        // Mostly there is one, and the intention is written at once.
        if let Some(place) = (&mut place).now_or_never() {
            self.place = Some((number, place));
            return;
        }
        self.under_way.place = Some(number);
        let placed = move |place| Done::Placed {
            level: number,
            place,
        };
        self.jobs.push(place.map(placed).boxed());
    }

    /// Sends what stands on the host, at once on the answer that it does, while the lead outlasts it.
    fn send(&mut self, intention: &Intention) {
        let now = self.services.clock.now();
        let Some(within) = self.command_within(now) else {
            return;
        };
        let level = self.links.open(intention.level);
        let (Some(level), false) = (level, self.under_way.command) else {
            return;
        };
        let mut spot = self.spot.lock();
        let written = spot.seen.memory.command.as_ref();
        let is_fresh = written.is_some_and(|written| {
            let age = now.mono.saturating_sub(written.written);
            written.id == intention.id && written.sent.is_none() && age <= Config::SEND_WITHIN
        });
        let Some((_, place)) = self.place.take_if(|_| is_fresh) else {
            return;
        };
        spot.seen.memory.sending(now.mono);
        let (host, why) = (&spot.seen.host.name, &intention.why);
        info!(%host, command = %intention.command, level = intention.level, attempt = intention.attempt, why, "commands a BMC");
        self.under_way.command = true;
        let services = self.services.clone();
        let (id, command) = (intention.id.clone(), intention.command);
        let until = now.mono + within;
        let job = async move {
            let how = call::send(&services, place, level, command, until).await;
            Done::Commanded { id, how }
        };
        self.jobs.push(job.boxed());
    }

    /// How long a command that begins now may take: `--bmc-timeout`, and less than the lead lasts.
    /// `None`: too short.
    fn command_within(&mut self, now: Now) -> Option<Duration> {
        let call = self.services.config.call;
        let left = self.services.leadership.leads_until();
        let left = left.and_then(|until| until.checked_sub(now.mono + MARGIN));
        let within = left.map(|left| left.min(call));
        let within = within.filter(|within| *within >= call.min(LEAST));
        if within.is_none() {
            self.again = Some(now.mono + LEAD_AGAIN);
        }
        within
    }

    fn write(
        &mut self,
        write: &StatusWrite,
        commanded: Option<Intention>,
        decision: &Decision,
        now: Now,
    ) {
        if commanded.is_some() && !self.may_command(now) {
            if self.place.is_none() {
                self.tell(decision, now);
            }
            return;
        }
        if !self.may_write(now) {
            return;
        }
        let presses = commanded.is_some() || self.presses(write);
        let Some(turn) = self.whose_turn(presses) else {
            return;
        };
        let events = self.unsaid(decision);
        let intention = commanded.map(|intention| intention.id);
        self.push_write(write.clone(), decision, intention, events, turn, now);
    }

    /// Nothing new is begun at the end of the process.
    fn may_command(&mut self, now: Now) -> bool {
        let is_placed = self.place.is_some() && !self.is_finishing && !self.under_way.command;
        is_placed && self.command_within(now).is_some()
    }

    fn may_write(&self, now: Now) -> bool {
        let leads = self.services.leadership.leads().is_some();
        leads && !self.under_way.write && !self.writes.waits(now.mono)
    }

    fn push_write(
        &mut self,
        write: StatusWrite,
        decision: &Decision,
        intention: Option<String>,
        events: Vec<Event>,
        turn: WhoseTurn,
        now: Now,
    ) {
        let host = {
            let mut spot = self.spot.lock();
            if let Some(id) = &intention {
                spot.seen.memory.writing(id);
            }
            spot.seen.host.clone()
        };
        let wanted = &decision.report.conditions;
        let conditions = to_write(&host.status.conditions, wanted, now);
        let because = &decision.because;
        if intention.is_some() {
            info!(host = %host.name, reason = because.reason, why = because.message, "writes what it is about to command");
        } else {
            debug!(host = %host.name, reason = because.reason, why = because.message, "writes a host's status");
        }
        let job = StatusJob {
            services: self.services.clone(),
            host,
            write,
            conditions,
            intention,
            events,
            turn,
        };
        self.under_way.write = true;
        self.jobs.push(job.run().boxed());
    }

    fn remove(&mut self, names: &[String], decision: &Decision, now: Now) {
        if !self.may_write(now) || self.is_finishing {
            return;
        }
        let Some(turn) = self.whose_turn(true) else {
            return;
        };
        let host = self.spot.lock().seen.host.clone();
        let because = &decision.because;
        info!(host = %host.name, reason = because.reason, why = because.message, annotations = ?names, "removes annotations of a host");
        let events = self.unsaid(decision);
        self.under_way.write = true;
        let job = work::remove(self.services.clone(), host, names.to_vec(), events, turn);
        self.jobs.push(job.boxed());
    }

    /// Nothing is to be done: what is to be seen is written where it changed, and said.
    fn tell(&mut self, decision: &Decision, now: Now) {
        let events = self.unsaid(decision);
        self.said.clone_from(&decision.report.events);
        self.say(events);
        if !self.may_write(now) {
            return;
        }
        let is_changed = {
            let standing = &self.spot.lock().seen.host.status.conditions;
            !to_write(standing, &decision.report.conditions, now).is_empty()
        };
        if !is_changed {
            return;
        }
        let Some(turn) = self.whose_turn(false) else {
            return;
        };
        let write = StatusWrite {
            status: self.spot.lock().seen.host.status.clone(),
            why: "its conditions changed",
        };
        self.push_write(write, decision, None, Vec::new(), turn, now);
    }

    /// What was not said yet in this run of sameness.
    fn unsaid(&self, decision: &Decision) -> Vec<Event> {
        let events = decision.report.events.iter();
        events
            .filter(|event| !self.said.contains(event))
            .cloned()
            .collect()
    }

    pub(super) fn say(&mut self, events: Vec<Event>) {
        if events.is_empty() || self.services.leadership.leads().is_none() {
            return;
        }
        let host = self.spot.lock().seen.host.clone();
        let job = work::say(self.services.clone(), host, events);
        self.jobs.push(job.boxed());
    }
}
