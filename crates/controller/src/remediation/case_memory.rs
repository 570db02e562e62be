//! The leader's memory of one remediation. No safety argument relies on it after the lead: the next
//! leader begins with nothing, and observes everything anew.

use std::time::Duration;

use dogwatch_api::condition::REMEDIATION;
use dogwatch_core::Now;
use dogwatch_core::backoff::{BackoffRange, RetryBackoff};
use dogwatch_core::condition::{self, ConditionWrite, CurrentCondition, DesiredCondition};
use dogwatch_core::decision::{DecisionEvent, EventSeverity};
use dogwatch_core::remediation::RemediationReason;
use dogwatch_core::remediation::{
    HeartbeatHistory, Remediation, RemediationConfig, RemediationDecision, RemediationMemory,
    RemediationObserve,
};
use dogwatch_core::reported_events::ReportedEvents;
use jiff::Timestamp;

use super::remediation_job::{RemediationJob, RemediationJobResult};
use super::remediation_ops::{RemediationCallError, RemediationFinding};
use crate::decision_log::RemediationDecisionLog;

/// Pauses after a write that met a change: the watch that shows the change lags by some
/// milliseconds.
const RETRY_PAUSES_AFTER_CHANGE: BackoffRange =
    BackoffRange::new(Duration::from_millis(20), Duration::from_secs(2));
/// The same after an error. A failed machine's workloads wait meanwhile.
const RETRY_PAUSES_AFTER_FAILURE: BackoffRange =
    BackoffRange::new(Duration::from_secs(1), Duration::from_secs(30));

/// So many changes in a row, without a success between them, are no lag of the watch: the last pause
/// before was more than a second. An admission webhook may answer as if there were a conflict.
const LASTING_CHANGES: u32 = 8;

/// The pause after conditions could not be written: nothing waits for them.
const CONDITION_RETRY_PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct CaseMemory {
    pub(super) known: RemediationMemory,
    /// Since when the remediation waits: when this process first observed it.
    pub(super) born: Duration,
    pub(super) is_busy: bool,
    pub(super) decision_log: RemediationDecisionLog,
    /// Events that were already sent.
    pub(super) reported_events: ReportedEvents,
    /// Why the API server refuses the action.
    pub(super) refused: Option<String>,
    /// What a job does now, or did without an answer: until this moment (monotonic) it counts as
    /// done.
    under_way: Option<(Remediation, RemediationDecision, Duration)>,
    pace: RetryBackoff,
    /// How many writes in a row have met a change.
    changes_in_a_row: u32,
    conditions_written_at: Option<Timestamp>,
    /// Set after conditions could not be written: no further attempt before.
    silent_until: Option<Duration>,
}

impl CaseMemory {
    pub(super) fn new(now: Duration, decision_log: RemediationDecisionLog) -> Self {
        Self {
            born: now,
            decision_log,
            ..Self::default()
        }
    }

    /// Records what an observation returned at `now`.
    fn record_finding(&mut self, found: RemediationFinding, now: Duration) {
        match found {
            RemediationFinding::Beat(asked, beat) => self.known.record_heartbeat(asked, now, beat),
            RemediationFinding::Leftovers(leftovers) => self.known.leftovers = Some(leftovers),
            RemediationFinding::Fresh(fresh) => {
                self.known
                    .record_heartbeat(fresh.asked_at, now, fresh.heartbeat.clone());
                self.known.fresh = Some(*fresh);
            }
        }
    }

    /// The observations that have no answer yet.
    pub(super) fn unanswered_observations(
        &self,
        looks: &[RemediationObserve],
    ) -> Vec<RemediationObserve> {
        let unanswered = looks.iter().filter(|look| !self.has_answer(look));
        unanswered.cloned().collect()
    }

    fn has_answer(&self, look: &RemediationObserve) -> bool {
        let known = &self.known;
        let (taken, newer_than) = match look {
            RemediationObserve::Heartbeat { newer_than, .. } => {
                let beats = known.heartbeats.as_ref();
                (beats.map(HeartbeatHistory::last_asked_at), newer_than)
            }
            RemediationObserve::Fresh { newer_than } => {
                let fresh = known.fresh.as_ref();
                (fresh.map(|fresh| fresh.asked_at), newer_than)
            }
            RemediationObserve::Leftovers { newer_than, .. } => {
                let leftovers = known.leftovers.as_ref();
                (leftovers.map(|leftovers| leftovers.asked_at), newer_than)
            }
        };
        taken.is_some_and(|taken| taken > *newer_than)
    }

    /// Without an action no action can be refused. Once nothing is wrong any more, whatever comes
    /// next is another remediation.
    pub(super) fn reset_if_settled(&mut self, decision: &RemediationDecision, now: Duration) {
        if !decision.actions.is_empty() || !decision.observe.is_empty() {
            return;
        }
        self.refused = None;
        self.changes_in_a_row = 0;
        if [RemediationReason::NotNeeded, RemediationReason::Remediated]
            .contains(&decision.cause.reason)
        {
            self.born = now;
            self.known.first_decided_at = None;
            self.reported_events
                .forget_unlisted(&decision.report.events);
        }
    }

    /// The conditions to write. A refusal by the API server replaces the message about the plan
    /// that it blocks.
    pub(super) fn conditions_with_refusal(
        &self,
        decision: &RemediationDecision,
    ) -> Vec<DesiredCondition> {
        let mut conditions = decision.report.conditions.clone();
        if let Some(message) = self.refusal_message(decision) {
            let all = conditions.iter_mut();
            for condition in all.filter(|condition| condition.kind == REMEDIATION) {
                condition.reason = RemediationReason::Refused.to_string();
                condition.message.clone_from(&message);
            }
        }
        conditions
    }

    pub(super) fn refusal_event(&self, decision: &RemediationDecision) -> Option<DecisionEvent> {
        Some(DecisionEvent {
            severity: EventSeverity::Warning,
            reason: RemediationReason::Refused.as_str(),
            message: self.refusal_message(decision)?,
        })
    }

    fn refusal_message(&self, decision: &RemediationDecision) -> Option<String> {
        let refused = self.refused.as_ref()?;
        Some(format!("{refused} (while {})", decision.cause.message))
    }

    pub(super) fn record_job_start(
        &mut self,
        job: &RemediationJob,
        decision: &RemediationDecision,
    ) {
        self.is_busy = true;
        if !job.actions.is_empty() {
            self.under_way = Some((job.case.clone(), decision.clone(), Duration::MAX));
        }
    }

    /// The decision that a job performs, or may have performed without an answer.
    pub(super) fn running_decision(
        &self,
        now: Duration,
    ) -> Option<(&Remediation, &RemediationDecision)> {
        let (case, decision, until) = self.under_way.as_ref()?;
        (*until > now).then_some((case, decision))
    }

    /// Whether the host's BMC answers; `true` while that is not known.
    pub(super) fn does_bmc_answer(&self) -> bool {
        let power = self.known.power.as_ref();
        power.is_none_or(|power| power.bmc_answers)
    }

    pub(super) fn record_job_end(&mut self, done: &mut RemediationJobResult, now: Now) {
        self.is_busy = false;
        for (found, answered) in done.found.drain(..) {
            self.record_finding(found, answered);
        }
        if let Some(is_told) = done.conditions_written {
            self.conditions_written_at = is_told.then_some(now.wall).or(self.conditions_written_at);
            self.silent_until = (!is_told).then(|| now.mono + CONDITION_RETRY_PAUSE);
        }
        // The API server may still perform a write that it did not answer, so its key counts as set.
        let is_unclear = matches!(done.trouble, Some(RemediationCallError::Failed(_)));
        let under_way = self.under_way.take().filter(|_| is_unclear);
        self.under_way = under_way.map(|(case, it, _)| {
            (
                case,
                it,
                now.mono + RemediationConfig::UNANSWERED_WRITE_LIFETIME,
            )
        });
        if !done.acts.is_empty() {
            // Reads from before our own write do not show it.
            self.known.fresh = None;
        }
        match &done.trouble {
            Some(trouble) => self.record_failure(trouble, now.mono),
            None if done.acts.is_empty() => {}
            None => self.record_success(),
        }
    }

    fn record_success(&mut self) {
        self.pace.reset();
        self.refused = None;
        self.changes_in_a_row = 0;
    }

    /// Whether the writes have met changes for so long that people have to know.
    pub(super) fn has_lasting_changes(&self) -> bool {
        self.changes_in_a_row >= LASTING_CHANGES
    }

    /// Reads from before are dropped, because an object may have changed.
    fn record_failure(&mut self, trouble: &RemediationCallError, now: Duration) {
        self.changes_in_a_row = match trouble {
            RemediationCallError::Changed(_) => self.changes_in_a_row.saturating_add(1),
            RemediationCallError::Refused(_) | RemediationCallError::Failed(_) => 0,
        };
        let is_lasting = self.has_lasting_changes();
        let pauses = match trouble {
            RemediationCallError::Changed(_) if !is_lasting => RETRY_PAUSES_AFTER_CHANGE,
            RemediationCallError::Changed(_)
            | RemediationCallError::Refused(_)
            | RemediationCallError::Failed(_) => RETRY_PAUSES_AFTER_FAILURE,
        };
        self.known.fresh = None;
        self.pace.record_failure(pauses, now);
        self.refused = match trouble {
            RemediationCallError::Refused(why) => Some(why.clone()),
            RemediationCallError::Changed(why) if is_lasting => Some(why.clone()),
            RemediationCallError::Changed(_) | RemediationCallError::Failed(_) => {
                self.refused.take()
            }
        };
    }

    /// No job before this moment (monotonic).
    pub(super) fn paused_until(&self, now: Duration) -> Option<Duration> {
        self.pace.blocked_until(now)
    }

    /// The conditions to write, and when the next write is due.
    pub(super) fn conditions_to_write(
        &self,
        standing: &[CurrentCondition],
        wanted: &[DesiredCondition],
        now: Now,
    ) -> (Vec<ConditionWrite>, Option<Duration>) {
        if let Some(until) = self.silent_until.filter(|until| *until > now.mono) {
            return (Vec::new(), Some(until));
        }
        let standing = self.with_heartbeats(standing);
        let writes = condition::conditions_to_write(&standing, wanted, now);
        (
            writes,
            condition::next_condition_write(&standing, wanted, now),
        )
    }

    /// Only Nodes store when a condition was written last. For other objects this process remembers
    /// it, so that progress is not written all the time.
    fn with_heartbeats(&self, conditions: &[CurrentCondition]) -> Vec<CurrentCondition> {
        let standing = conditions.iter().cloned();
        let dated = standing.map(|mut condition| {
            condition.last_heartbeat = condition.last_heartbeat.or(self.conditions_written_at);
            condition
        });
        dated.collect()
    }
}

#[cfg(test)]
mod tests;
