//! Hosts that call the lock over HTTP: what they ask, and what they were told.
//!
//! The protocols' own bytes are tested with real sockets elsewhere; here their callers meet the lock
//! itself, under virtual time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dogwatch_controller::lock::service::{Client, LockAnswer, LockRequest, UnlockAnswer};

use super::minds::Minds;
use super::process::lock;

/// One call.
pub(super) struct Asked {
    /// Who calls, as the script names it.
    pub(super) client: String,
    /// What for.
    pub(super) wish: CallWish,
}

/// What is asked for.
pub(super) enum CallWish {
    /// The lock.
    Lock(LockRequest),
    /// To give it up.
    Unlock(Client),
}

/// `HOST` is one of the lock API, `GROUP/ID` one of FleetLock.
pub(super) fn client(name: &str) -> Client {
    match name.split_once('/') {
        None => Client::Api { host: name.into() },
        Some((group, id)) => Client::FleetLock {
            group: group.into(),
            id: id.into(),
        },
    }
}

/// An answer: one word, and its line.
pub(super) struct Told {
    word: &'static str,
    line: String,
}

/// Every word of an answer.
pub(super) const WORDS: [&str; 9] = [
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

impl From<LockAnswer> for Told {
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

impl From<UnlockAnswer> for Told {
    fn from(answer: UnlockAnswer) -> Self {
        let (word, line) = match answer {
            UnlockAnswer::Free { why } => ("free", why),
            UnlockAnswer::Failed { why } => ("failed", why),
            UnlockAnswer::Unavailable { why } => ("unavailable", why),
        };
        Self { word, line }
    }
}

/// The newest answer of each host. Clones are one.
#[derive(Clone, Default)]
pub(super) struct Answers(Arc<Mutex<BTreeMap<String, &'static str>>>);

impl Answers {
    /// It has asked anew.
    pub(super) fn forget(&self, client: &str) {
        lock(&self.0).remove(client);
    }

    pub(super) fn told(&self, client: &str, told: &Told, minds: &Minds) {
        lock(&self.0).insert(client.to_owned(), told.word);
        minds.note(client, format!("is told {}: {}", told.word, told.line));
    }

    /// The word that it was told; `None` while it waits.
    pub(super) fn of(&self, client: &str) -> Option<&'static str> {
        lock(&self.0).get(client).copied()
    }
}
