//! Lock calls of hosts, and the answers.
//!
//! The HTTP protocols are tested elsewhere with real sockets; here the callers use the lock engine
//! itself, under virtual time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dogwatch_controller::lock::service::{LockAnswer, LockRequest, LockRequester, UnlockAnswer};

use super::controller_process::lock_mutex;
use super::decision_log::DecisionLog;

pub(super) struct LockCall {
    /// The caller's name in the script.
    pub(super) client: String,
    pub(super) kind: LockCallKind,
}

pub(super) enum LockCallKind {
    Lock(LockRequest),
    /// Release the lock.
    Unlock(LockRequester),
}

/// `HOST` is a host of the lock API, `GROUP/ID` one of FleetLock.
pub(super) fn parse_client(name: &str) -> LockRequester {
    match name.split_once('/') {
        None => LockRequester::Api { host: name.into() },
        Some((group, id)) => LockRequester::FleetLock {
            group: group.into(),
            id: id.into(),
        },
    }
}

/// An answer: one word for conditions, and a line for the timeline.
pub(super) struct LockCallAnswer {
    word: &'static str,
    line: String,
}

/// Every possible word of an answer.
pub(super) const ANSWER_WORDS: [&str; 9] = [
    "held",
    "busy",
    "not-allowed",
    "drain-failed",
    "refused",
    "too-many",
    "unavailable",
    "free",
    "failed",
];

impl From<LockAnswer> for LockCallAnswer {
    fn from(answer: LockAnswer) -> Self {
        let (word, line) = match answer {
            LockAnswer::Held { why } => ("held", why),
            LockAnswer::Busy { why } => ("busy", why),
            LockAnswer::NotAllowed { why, .. } => ("not-allowed", why),
            LockAnswer::DrainFailed { why } => ("drain-failed", why),
            LockAnswer::Refused { why } => ("refused", why),
            LockAnswer::TooMany { why } => ("too-many", why),
            LockAnswer::Unavailable { why } => ("unavailable", why),
        };
        Self { word, line }
    }
}

impl From<UnlockAnswer> for LockCallAnswer {
    fn from(answer: UnlockAnswer) -> Self {
        let (word, line) = match answer {
            UnlockAnswer::Free { why } => ("free", why),
            UnlockAnswer::Failed { why } => ("failed", why),
            UnlockAnswer::Unavailable { why } => ("unavailable", why),
        };
        Self { word, line }
    }
}

/// The latest answer to each host. Clones share them.
#[derive(Clone, Default)]
pub(super) struct LockCallAnswers(Arc<Mutex<BTreeMap<String, &'static str>>>);

impl LockCallAnswers {
    /// Forgets the answer, because the host calls again.
    pub(super) fn forget_answer(&self, client: &str) {
        lock_mutex(&self.0).remove(client);
    }

    pub(super) fn record_answer(&self, client: &str, told: &LockCallAnswer, minds: &DecisionLog) {
        lock_mutex(&self.0).insert(client.to_owned(), told.word);
        minds.record_note(client, format!("is told {}: {}", told.word, told.line));
    }

    /// The word of the latest answer; `None` while the host waits.
    pub(super) fn answer_of_client(&self, client: &str) -> Option<&'static str> {
        lock_mutex(&self.0).get(client).copied()
    }
}
