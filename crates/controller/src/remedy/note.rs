//! What is remembered of one case while this process leads. Nothing that safety rests on outlives it:
//! whoever leads next begins with nothing, and looks at everything anew.

use std::collections::BTreeSet;
use std::time::Duration;

use dogwatch_api::condition::REMEDIATION;
use dogwatch_core::Now;
use dogwatch_core::condition::{self, Condition, Observation, Write};
use dogwatch_core::decision::{Event, Severity};
use dogwatch_core::remedy::reason::{NOT_NEEDED, REFUSED, REMEDIATED};
use dogwatch_core::remedy::{Beats, Case, Decision, Known, Look};
use jiff::Timestamp;

use super::hands::{Found, Trouble};
use super::job::{Done, Job};
use crate::healer::pace::Pace;

/// How soon a write that met a change is decided again, at first and at last: the watch that shows the
/// change is some milliseconds behind.
const AFTER_CHANGE: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(2)];
/// The same after trouble. A failed machine's workloads wait.
const AFTER_TROUBLE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// How long a key whose write was not answered counts as put on: the API server gives up on a request
/// after a minute.
const UNCLEAR_FOR: Duration = Duration::from_secs(70);

/// How long conditions wait that could not be written: they hold nothing up.
const SILENT_FOR: Duration = Duration::from_secs(10);

/// One case's notes.
#[derive(Debug, Default)]
pub(super) struct Note {
    pub(super) known: Known,
    /// Since when it waits: when this process first saw that something is the matter.
    pub(super) born: Duration,
    pub(super) is_busy: bool,
    /// Events that were said of it.
    pub(super) said: BTreeSet<Event>,
    /// Why the API server refuses what is to be done.
    pub(super) refused: Option<String>,
    /// What a job does now, or was not answered about: until this moment it counts as done.
    under_way: Option<(Case, Decision, Duration)>,
    pace: Pace,
    /// When its conditions were written last.
    told: Option<Timestamp>,
    /// They could not be written.
    silent_until: Option<Duration>,
}

impl Note {
    /// Of a case that is seen first now.
    pub(super) fn new(now: Duration) -> Self {
        Self {
            born: now,
            ..Self::default()
        }
    }

    /// Takes what a look has found, answered now.
    fn found(&mut self, found: Found, now: Duration) {
        match found {
            Found::Beat(asked, beat) => self.known.beat(asked, now, beat),
            Found::Leftovers(leftovers) => self.known.leftovers = Some(leftovers),
            Found::Fresh(fresh) => {
                self.known.beat(fresh.taken, now, fresh.beat.clone());
                self.known.fresh = Some(*fresh);
            }
        }
    }

    /// Those that there is no answer to yet.
    pub(super) fn unanswered(&self, looks: &[Look]) -> Vec<Look> {
        let unanswered = looks.iter().filter(|look| !self.has(look));
        unanswered.cloned().collect()
    }

    fn has(&self, look: &Look) -> bool {
        let known = &self.known;
        let (taken, newer_than) = match look {
            Look::Beat { newer_than, .. } => {
                let beats = known.beats.as_ref();
                (beats.map(Beats::asked), newer_than)
            }
            Look::Fresh { newer_than } => {
                let fresh = known.fresh.as_ref();
                (fresh.map(|fresh| fresh.taken), newer_than)
            }
            Look::Leftovers { newer_than, .. } => {
                let leftovers = known.leftovers.as_ref();
                (leftovers.map(|leftovers| leftovers.taken), newer_than)
            }
        };
        taken.is_some_and(|taken| taken > *newer_than)
    }

    /// Where nothing is to be done, nothing of it can be refused; and where nothing is the matter any more,
    /// whatever comes next is another remediation.
    pub(super) fn rests(&mut self, decision: &Decision, now: Duration) {
        if !decision.actions.is_empty() || !decision.looks.is_empty() {
            return;
        }
        self.refused = None;
        if [NOT_NEEDED, REMEDIATED].contains(&decision.because.reason) {
            self.born = now;
            self.known.first = None;
            let events = &decision.report.events;
            self.said.retain(|said| events.contains(said));
        }
    }

    /// The conditions as they should stand. What the API server refuses goes before the plans that it stops.
    pub(super) fn conditions(&self, decision: &Decision) -> Vec<Observation> {
        let mut conditions = decision.report.conditions.clone();
        if let Some(message) = self.refusal_of(decision) {
            let all = conditions.iter_mut();
            for condition in all.filter(|condition| condition.kind == REMEDIATION) {
                REFUSED.clone_into(&mut condition.reason);
                condition.message.clone_from(&message);
            }
        }
        conditions
    }

    /// The Event that tells of it.
    pub(super) fn refusal(&self, decision: &Decision) -> Option<Event> {
        Some(Event {
            severity: Severity::Warning,
            reason: REFUSED,
            message: self.refusal_of(decision)?,
        })
    }

    fn refusal_of(&self, decision: &Decision) -> Option<String> {
        let refused = self.refused.as_ref()?;
        Some(format!("{refused} (while {})", decision.because.message))
    }

    /// A job begins.
    pub(super) fn begins(&mut self, job: &Job, decision: &Decision) {
        self.is_busy = true;
        if !job.actions.is_empty() {
            self.under_way = Some((job.case.clone(), decision.clone(), Duration::MAX));
        }
    }

    /// What is being done, or may have been done.
    pub(super) fn under_way(&self, now: Duration) -> Option<(&Case, &Decision)> {
        let (case, decision, until) = self.under_way.as_ref()?;
        (*until > now).then_some((case, decision))
    }

    /// Whether its host's BMC answers, as far as is known.
    pub(super) fn answers(&self) -> bool {
        let power = self.known.power.as_ref();
        power.is_none_or(|power| power.answers)
    }

    /// The job has ended.
    pub(super) fn ends(&mut self, done: &mut Done, now: Now) {
        self.is_busy = false;
        for (found, answered) in done.found.drain(..) {
            self.found(found, answered);
        }
        if let Some(is_told) = done.told {
            self.told = is_told.then_some(now.wall).or(self.told);
            self.silent_until = (!is_told).then(|| now.mono + SILENT_FOR);
        }
        // The API server may still do what it did not answer.
        let is_unclear = matches!(done.trouble, Some(Trouble::Failed(_)));
        let under_way = self.under_way.take().filter(|_| is_unclear);
        self.under_way = under_way.map(|(case, it, _)| (case, it, now.mono + UNCLEAR_FOR));
        if !done.acts.is_empty() {
            // What was read before a write of ours does not show it.
            self.known.fresh = None;
        }
        match &done.trouble {
            Some(trouble) => self.trouble(trouble, now.mono),
            None if done.acts.is_empty() => {}
            None => self.well(),
        }
    }

    fn well(&mut self) {
        self.pace.well();
        self.refused = None;
    }

    /// It did not. What was read before means nothing any more where something has changed.
    fn trouble(&mut self, trouble: &Trouble, now: Duration) {
        let [shortest, longest] = match trouble {
            Trouble::Changed(_) => AFTER_CHANGE,
            Trouble::Refused(_) | Trouble::Failed(_) => AFTER_TROUBLE,
        };
        self.known.fresh = None;
        self.pace.again(shortest, longest, now);
        self.refused = match trouble {
            Trouble::Refused(why) => Some(why.clone()),
            Trouble::Changed(_) | Trouble::Failed(_) => self.refused.take(),
        };
    }

    /// Not to be worked on before.
    pub(super) fn paused(&self, now: Duration) -> Option<Duration> {
        self.pace.until().filter(|until| *until > now)
    }

    /// Which conditions to write over these, and when the next write is due.
    pub(super) fn to_tell(
        &self,
        standing: &[Condition],
        wanted: &[Observation],
        now: Now,
    ) -> (Vec<Write>, Option<Duration>) {
        if let Some(until) = self.silent_until.filter(|until| *until > now.mono) {
            return (Vec::new(), Some(until));
        }
        let standing = self.dated(standing);
        let writes = condition::to_write(&standing, wanted, now);
        (writes, condition::next_write(&standing, wanted, now))
    }

    /// Conditions as they stand. Only Nodes say when one was written last: of the others it is what we
    /// remember, so that progress is not written all the time.
    fn dated(&self, conditions: &[Condition]) -> Vec<Condition> {
        let standing = conditions.iter().cloned();
        let dated = standing.map(|mut condition| {
            condition.last_heartbeat = condition.last_heartbeat.or(self.told);
            condition
        });
        dated.collect()
    }
}

#[cfg(test)]
mod tests;
