//! One pod on the wait list: whose turn it is, and what its last answer was.

use std::time::Duration;

use super::admission::Refusal;
use super::types::{Answer, EvictionId};

const FIRST_BACK_OFF: Duration = Duration::from_millis(500);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(30);

/// A webhook's or policy's mind changes with things that no watch of ours shows. Source:
/// specification §2.3.
const ADMISSION_RETRY: Duration = Duration::from_secs(5);

/// The pause after so many earlier failures.
pub(super) fn back_off(earlier: u32) -> Duration {
    // 0.5 s doubled seven times is past the longest: no need to count further.
    FIRST_BACK_OFF
        .saturating_mul(1 << earlier.min(7))
        .min(LONGEST_BACK_OFF)
}

/// A pod on the wait list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) turn: Turn,
    /// What holds it up; outlives the tries that change nothing.
    pub(super) held: Option<Held>,
    failures: u32,
    /// A budget changed while a try was under way: its answer may tell of the time before.
    outdated: bool,
}

/// What it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Its place in the queue.
    Ready(u64),
    /// The answer to this try.
    Called(EvictionId),
    /// A moment, or for [`HeldBy::Budget`] a change before it.
    Paused(Duration),
    /// Its deletion, which has begun, or which its namespace's end will bring.
    Ending,
}

/// Why a pod does not go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) message: String,
    pub(super) since: Duration,
    pub(super) by: HeldBy,
}

/// What keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HeldBy {
    /// A budget: its change may let the pod go.
    Budget,
    /// A webhook or a policy that does not admit its eviction yet.
    Admission(Refusal),
    /// The API server, or the way there.
    Server,
}

/// What an answer does to the pod's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It stays on the list.
    Waits,
    /// It is no more.
    Gone,
    /// Its eviction failed for good.
    Dropped(String),
    /// It is one of Dogwatch's own, and stays.
    Kept,
}

impl HeldBy {
    fn same_refuser(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Admission(this), Self::Admission(other)) => this.by == other.by,
            (Self::Admission(_) | Self::Budget | Self::Server, _) => false,
        }
    }
}

impl Waiting {
    pub(super) fn new(turn: Turn) -> Self {
        Self {
            turn,
            held: None,
            failures: 0,
            outdated: false,
        }
    }

    /// Takes in the answer to its own last try. A pod that a budget holds up is tried again after
    /// `budget_retry` at the latest.
    pub(super) fn hear(
        &mut self,
        answer: Answer,
        budget_retry: Duration,
        now: Duration,
    ) -> Outcome {
        let failures = std::mem::take(&mut self.failures);
        let outdated = std::mem::take(&mut self.outdated);
        match answer {
            Answer::Accepted => self.ends(),
            Answer::AlreadyGone => return Outcome::Gone,
            Answer::Refused { code, message } => {
                return Outcome::Dropped(format!("HTTP {code}: {message}"));
            }
            Answer::NamespaceTerminating => {
                // Not tried again: the namespace's controller deletes it, and every eviction until
                // then would get the same answer.
                self.turn = Turn::Ending;
                let message = "its namespace is being deleted, and it with it".to_owned();
                self.hold(message, now, HeldBy::Server);
            }
            Answer::NotAdmitted { refusal, .. } if refusal.keeps_own_pods() => {
                return Outcome::Kept;
            }
            Answer::NotAdmitted { refusal, message } => {
                self.turn = Turn::Paused(now.saturating_add(ADMISSION_RETRY));
                self.hold(message, now, HeldBy::Admission(refusal));
            }
            Answer::Budget { message } | Answer::SeveralBudgets { message } => {
                let pause = if outdated {
                    Duration::ZERO
                } else {
                    budget_retry
                };
                self.turn = Turn::Paused(now.saturating_add(pause));
                self.hold(message, now, HeldBy::Budget);
            }
            Answer::TooMany {
                retry_after: Some(pause),
                message,
            } => {
                self.turn = Turn::Paused(now.saturating_add(pause.max(FIRST_BACK_OFF)));
                self.hold(message, now, HeldBy::Server);
            }
            Answer::TooMany {
                retry_after: None,
                message,
            }
            | Answer::Transient { message } => {
                self.turn = Turn::Paused(now.saturating_add(back_off(failures)));
                self.failures = failures.saturating_add(1);
                self.hold(message, now, HeldBy::Server);
            }
        }
        Outcome::Waits
    }

    /// Its budget has room now: a refusal of the try under way says nothing of that.
    pub(super) fn outdate(&mut self) {
        self.outdated = matches!(self.turn, Turn::Called(_));
    }

    /// Its deletion has begun.
    pub(super) fn ends(&mut self) {
        self.turn = Turn::Ending;
        self.held = None;
    }

    /// While one refuser says no in ever other words, its first message stands: it is what an Event
    /// says, and each other one would be another Event.
    fn hold(&mut self, message: String, now: Duration, by: HeldBy) {
        let before = self.held.take();
        let since = before.as_ref().map_or(now, |held| held.since);
        let message = match before {
            Some(before) if by.same_refuser(&before.by) => before.message,
            Some(_) | None => message,
        };
        self.held = Some(Held { message, since, by });
    }

    /// Whether a budget has it wait for a change.
    pub(super) fn waits_for_budget(&self) -> bool {
        matches!(self.turn, Turn::Paused(_))
            && self
                .held
                .as_ref()
                .is_some_and(|held| held.by == HeldBy::Budget)
    }

    /// Whether a call for it is under way or about to be made.
    pub(super) fn being_tried(&self) -> bool {
        matches!(self.turn, Turn::Ready(_) | Turn::Called(_))
    }
}
