//! The audit log: who asked what, and what came of it.

use jiff::Timestamp;

use super::route::Verb;

/// One answered request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// When it was answered, by the server's clock.
    pub time: Timestamp,
    /// Who asked.
    pub user: String,
    /// What was asked for; None for a path that is no resource.
    pub verb: Option<Verb>,
    /// The plural; the path when it is no resource.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Empty when there is none.
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
    /// The HTTP status code.
    pub code: u16,
}

/// The log, which can be off.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    on: bool,
    entries: Vec<AuditEntry>,
    answered: u64,
}

impl Audit {
    pub(crate) fn new(on: bool) -> Self {
        Self {
            on,
            ..Self::default()
        }
    }

    /// Counts a request, and notes it when the log is on.
    pub(crate) fn note(&mut self, entry: impl FnOnce() -> AuditEntry) {
        self.answered += 1;
        if self.on {
            self.entries.push(entry());
        }
    }

    pub(crate) fn entries(&self) -> &[AuditEntry] {
        &self.entries
    }

    pub(crate) fn answered(&self) -> u64 {
        self.answered
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}
