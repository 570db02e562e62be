//! One pod on the wait list: when it is tried next, and what its last answer was.

use std::time::Duration;

use super::admission::AdmissionRefusal;
use super::types::{EvictionAnswer, EvictionId, ObservedPod};
use crate::backoff::BackoffRange;

pub(super) const EVICTION_BACKOFF: BackoffRange =
    BackoffRange::new(Duration::from_millis(500), Duration::from_secs(30));

/// The decision of a webhook or policy can depend on objects that Dogwatch does not watch, so the
/// eviction is repeated. Source: specification §2.3.
const ADMISSION_RETRY_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitingPod {
    pub(super) eviction_state: EvictionState,
    /// What blocks the pod; kept while later tries change nothing.
    pub(super) held: Option<EvictionBlock>,
    failures: u32,
    /// A budget changed while a call was under way: its answer may describe the state before.
    outdated: bool,
}

/// What the pod waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EvictionState {
    /// Pods of a lower order, or its own end; this will be its place in the queue.
    Held(u64),
    /// Its place in the queue.
    Ready(u64),
    /// The answer to this call.
    Called(EvictionId),
    /// This time, or for [`EvictionBlocker::Budget`] an earlier change of the budget.
    Paused(Duration),
    /// Its deletion, which has begun or will come with the deletion of its namespace.
    Ending,
}

/// Why a pod does not leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EvictionBlock {
    pub(super) message: String,
    pub(super) since: Duration,
    pub(super) by: EvictionBlocker,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EvictionBlocker {
    /// A budget: when it changes, the eviction may succeed.
    Budget,
    /// A webhook or policy that does not admit the eviction yet.
    Admission(AdmissionRefusal),
    /// The API server, or the network path to it.
    Server,
}

/// What an answer means for the pod's place on the wait list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EvictionOutcome {
    /// The pod stays on the list.
    Waits,
    /// The pod no longer exists.
    Gone,
    /// The eviction failed for good.
    Dropped(String),
    /// The pod is one of Dogwatch's own, and stays.
    Kept,
}

impl EvictionBlocker {
    fn has_same_refuser(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Admission(this), Self::Admission(other)) => this.by == other.by,
            (Self::Admission(_) | Self::Budget | Self::Server, _) => false,
        }
    }
}

impl WaitingPod {
    pub(super) fn new(turn: EvictionState) -> Self {
        Self {
            eviction_state: turn,
            held: None,
            failures: 0,
            outdated: false,
        }
    }

    /// Takes the answer to the pod's latest call. A pod that a budget blocks is tried again after
    /// `budget_retry` at the latest.
    pub(super) fn apply_answer(
        &mut self,
        pod: &ObservedPod,
        answer: EvictionAnswer,
        budget_retry: Duration,
        now: Duration,
    ) -> EvictionOutcome {
        let failures = std::mem::take(&mut self.failures);
        let outdated = std::mem::take(&mut self.outdated);
        match answer {
            EvictionAnswer::Accepted => self.mark_deletion_begun(),
            EvictionAnswer::AlreadyGone => return EvictionOutcome::Gone,
            EvictionAnswer::Refused { code, message } => {
                return EvictionOutcome::Dropped(format!("HTTP {code}: {message}"));
            }
            EvictionAnswer::NamespaceTerminating => {
                // Not tried again: the namespace controller deletes it, and every eviction until
                // then would get the same answer.
                self.eviction_state = EvictionState::Ending;
                let message = "its namespace is being deleted, and the pod with it".to_owned();
                self.record_block(message, now, EvictionBlocker::Server);
            }
            EvictionAnswer::NotAdmitted { refusal, .. } if is_own_pod_kept(pod, &refusal) => {
                return EvictionOutcome::Kept;
            }
            EvictionAnswer::NotAdmitted { refusal, message } => {
                let again = now.saturating_add(ADMISSION_RETRY_INTERVAL);
                self.eviction_state = EvictionState::Paused(again);
                self.record_block(message, now, EvictionBlocker::Admission(refusal));
            }
            EvictionAnswer::Budget { message } | EvictionAnswer::SeveralBudgets { message } => {
                let pause = if outdated {
                    Duration::ZERO
                } else {
                    budget_retry
                };
                self.eviction_state = EvictionState::Paused(now.saturating_add(pause));
                self.record_block(message, now, EvictionBlocker::Budget);
            }
            EvictionAnswer::TooMany {
                retry_after: Some(pause),
                message,
            } => {
                self.eviction_state =
                    EvictionState::Paused(now.saturating_add(pause.max(EVICTION_BACKOFF.shortest)));
                self.record_block(message, now, EvictionBlocker::Server);
            }
            EvictionAnswer::TooMany {
                retry_after: None,
                message,
            }
            | EvictionAnswer::Transient { message } => {
                let pause = EVICTION_BACKOFF.pause_after(failures);
                self.eviction_state = EvictionState::Paused(now.saturating_add(pause));
                self.failures = failures.saturating_add(1);
                self.record_block(message, now, EvictionBlocker::Server);
            }
        }
        EvictionOutcome::Waits
    }

    /// The budget has room now, so a refusal of the call under way may be out of date.
    pub(super) fn mark_call_outdated(&mut self) {
        self.outdated = matches!(self.eviction_state, EvictionState::Called(_));
    }

    pub(super) fn mark_deletion_begun(&mut self) {
        self.eviction_state = EvictionState::Ending;
        self.held = None;
    }

    /// Keeps the first message while the same refuser keeps refusing with varying texts: the
    /// message goes into an Event, and each new text would be a new Event.
    fn record_block(&mut self, message: String, now: Duration, by: EvictionBlocker) {
        let before = self.held.take();
        let since = before.as_ref().map_or(now, |held| held.since);
        let message = match before {
            Some(before) if by.has_same_refuser(&before.by) => before.message,
            Some(_) | None => message,
        };
        self.held = Some(EvictionBlock { message, since, by });
    }

    pub(super) fn is_waiting_for_budget(&self) -> bool {
        matches!(self.eviction_state, EvictionState::Paused(_))
            && self
                .held
                .as_ref()
                .is_some_and(|held| held.by == EvictionBlocker::Budget)
    }

    /// Whether a call for the pod is under way or queued.
    pub(super) fn is_being_tried(&self) -> bool {
        matches!(
            self.eviction_state,
            EvictionState::Ready(_) | EvictionState::Called(_)
        )
    }
}

/// The policy refuses every pod of Dogwatch's namespace, because a request to evict shows it no
/// labels. Pods of other software there must not die with the machine.
fn is_own_pod_kept(pod: &ObservedPod, refusal: &AdmissionRefusal) -> bool {
    refusal.is_by_own_pods_policy() && pod.is_part_of_dogwatch()
}
