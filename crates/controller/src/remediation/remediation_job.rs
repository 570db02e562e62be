//! One job for one remediation: observations, writes in their order, then conditions.

use dogwatch_core::remediation::RemediationReason;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::backoff::{BackoffRange, RetryBackoff};
use dogwatch_core::condition::ConditionWrite;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::power;
use dogwatch_core::remediation::{
    Remediation, RemediationAction, RemediationObserve, WorkloadRelease,
};
use dogwatch_runtime::clock::ProcessClock;
use futures::future::join_all;
use tokio::time::timeout;
use tracing::{info, warn};

use super::action_names;
use super::remediation_ops::{
    RemediationAnswer, RemediationCallError, RemediationFinding, RemediationOps,
};
use crate::decision_log::ControllerDecisionLog;
use crate::leader::LeadershipHandle;
use crate::power::HostRegistry;

/// How long one call may take, and how long the lead must last for a write to be sent: the call has
/// ended when another process can lead. The leader has at least 7 s left as long as its renewals
/// are answered.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Pauses between retries of one Event. They end after about a minute: at the longest pause.
const EVENT_RETRY_PAUSES: BackoffRange =
    BackoffRange::new(Duration::from_secs(1), Duration::from_secs(64));

/// What all jobs share.
#[derive(Clone)]
pub(super) struct RemediationDeps {
    pub(super) ops: Arc<dyn RemediationOps>,
    pub(super) clock: ProcessClock,
    pub(super) leadership: LeadershipHandle,
    pub(super) power: HostRegistry,
    pub(super) power_config: power::PowerConfig,
    pub(super) decision_log: ControllerDecisionLog,
}

pub(super) struct RemediationJob {
    pub(super) means: RemediationDeps,
    pub(super) case: Remediation,
    /// The reason, for the log.
    pub(super) reason: RemediationReason,
    pub(super) looks: Vec<RemediationObserve>,
    pub(super) actions: Vec<RemediationAction>,
    pub(super) conditions: Vec<ConditionWrite>,
    /// Events to send once the actions are done.
    pub(super) events: Vec<DecisionEvent>,
}

pub(super) struct RemediationJobResult {
    pub(super) case: Remediation,
    pub(super) answers: Vec<RemediationAnswer>,
    /// With the monotonic time of the answer.
    pub(super) found: Vec<(RemediationFinding, Duration)>,
    /// The actions that were tried, and how they ended.
    pub(super) acts: Vec<(RemediationAction, &'static str)>,
    /// Whether the conditions were written; `None` if no write was tried.
    pub(super) conditions_written: Option<bool>,
    pub(super) trouble: Option<RemediationCallError>,
    pub(super) events: Vec<DecisionEvent>,
}

impl RemediationJob {
    pub(super) fn has_no_work(&self) -> bool {
        self.looks.is_empty() && self.actions.is_empty() && self.conditions.is_empty()
    }

    pub(super) async fn run_job(self) -> RemediationJobResult {
        let mut done = RemediationJobResult {
            case: self.case.clone(),
            answers: Vec::new(),
            found: Vec::new(),
            acts: Vec::new(),
            conditions_written: None,
            trouble: None,
            events: Vec::new(),
        };
        let (looked, ()) =
            tokio::join!(self.perform_observations(), self.perform_actions(&mut done));
        for found in looked {
            match found {
                Ok(found) => done.found.push(found),
                Err(trouble) => done.trouble = done.trouble.or(Some(trouble)),
            }
        }
        if done.acts.is_empty() {
            self.write_conditions(&mut done).await;
        }
        if done.trouble.is_none() {
            done.events = self.events;
        }
        done
    }

    async fn perform_observations(
        &self,
    ) -> Vec<Result<(RemediationFinding, Duration), RemediationCallError>> {
        let looks = self.looks.iter();
        let looks = looks.map(|look| async move {
            let found = with_timeout(self.means.ops.perform_observation(&self.case, look)).await?;
            Ok((found, self.means.clock.now().mono))
        });
        join_all(looks).await
    }

    /// Performs the actions in their order, until one fails.
    async fn perform_actions(&self, done: &mut RemediationJobResult) {
        for action in &self.actions {
            if let Err(why) = self.check_permission(action) {
                done.trouble = Some(RemediationCallError::Failed(why));
                return;
            }
            let subject = &self.case.subject;
            info!(%subject, reason = self.reason.as_str(), "{}", action_names::describe_action(action));
            if let Some(release) = action.as_release() {
                self.means.decision_log.log_release(subject, release);
            }
            let now = self.means.clock.now();
            let hands = &self.means.ops;
            let act = hands.perform_action(&self.case, action, &self.conditions, now);
            let answer = with_timeout(act).await;
            let end = answer
                .as_ref()
                .map_or_else(RemediationCallError::result_label, |_| "done");
            done.acts.push((action.clone(), end));
            match answer {
                Ok(answer) => {
                    if matches!(action, RemediationAction::WriteStatus { .. }) {
                        done.conditions_written = Some(true);
                    }
                    done.answers.push(answer);
                }
                Err(trouble) => {
                    done.trouble = Some(trouble);
                    return;
                }
            }
        }
    }

    /// Checks that this process leads for long enough, and that a release still has its proof.
    fn check_permission(&self, action: &RemediationAction) -> Result<(), String> {
        if !self.means.leadership.is_leading_for(CALL_TIMEOUT) {
            return Err("this process is not the leader, or not for long enough".to_owned());
        }
        let release = action.as_release();
        release.map_or(Ok(()), |release| self.means.check_still_off(release))
    }

    /// Writes the conditions. After a write of another kind they are decided anew first.
    async fn write_conditions(&self, done: &mut RemediationJobResult) {
        let is_silent = self.conditions.is_empty();
        if is_silent || !self.means.leadership.is_leading_for(CALL_TIMEOUT) {
            return;
        }
        let now = self.means.clock.now();
        let tell = self
            .means
            .ops
            .write_conditions(&self.case, &self.conditions, now);
        match with_timeout(tell).await {
            Ok(answer) => {
                done.conditions_written = Some(true);
                done.answers.push(answer);
            }
            // Conditions are for people: a failed write of them delays nothing.
            Err(trouble) => {
                let (subject, why) = (&self.case.subject, trouble.message());
                warn!(%subject, error = why, "failed to write conditions");
                done.conditions_written = Some(false);
            }
        }
    }
}

impl RemediationDeps {
    /// Checks the proof once more right before the release, because the decision is some writes old
    /// by now.
    fn check_still_off(&self, release: &WorkloadRelease) -> Result<(), String> {
        let before = release.permit.proof();
        let at = self.clock.now();
        let now = self
            .power
            .off_proof_of(before.host(), &self.power_config, at);
        let is_same = |now: &power::PowerOffProof| {
            let is_same_host =
                now.uid() == before.uid() && now.system_uuid() == before.system_uuid();
            is_same_host && now.source() == before.source()
        };
        if now.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        Err("the host is no longer proved off".to_owned())
    }
}

/// Sends the Events of a remediation. The conditions contain the same in case an Event fails.
pub(super) async fn report_events(
    means: RemediationDeps,
    case: Remediation,
    events: Vec<DecisionEvent>,
) {
    for event in &events {
        let mut backoff = RetryBackoff::default();
        while let Err(trouble) = report_event_once(&means, &case, event).await {
            let pause = backoff.next_pause(EVENT_RETRY_PAUSES);
            let is_over =
                means.leadership.current_term().is_none() || pause >= EVENT_RETRY_PAUSES.longest;
            if is_over || !matches!(trouble, RemediationCallError::Failed(_)) {
                let (subject, error) = (&case.subject, trouble.message());
                warn!(%subject, event = event.reason, error, "failed to write an Event");
                break;
            }
            means
                .clock
                .sleep_until(means.clock.now().mono + pause)
                .await;
        }
    }
}

async fn report_event_once(
    means: &RemediationDeps,
    case: &Remediation,
    event: &DecisionEvent,
) -> Result<(), RemediationCallError> {
    if means.leadership.current_term().is_none() {
        return Err(RemediationCallError::Failed(
            "this process is not the leader".to_owned(),
        ));
    }
    with_timeout(means.ops.report_event(case, event, means.clock.now())).await
}

async fn with_timeout<T>(
    call: impl Future<Output = Result<T, RemediationCallError>>,
) -> Result<T, RemediationCallError> {
    let late = || {
        let seconds = CALL_TIMEOUT.as_secs();
        RemediationCallError::Failed(format!("no answer within {seconds} s"))
    };
    timeout(CALL_TIMEOUT, call).await.map_err(|_| late())?
}
