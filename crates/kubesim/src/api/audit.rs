//! The audit log: who sent which request, and its status code.

use jiff::Timestamp;

use super::route::ApiVerb;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestAuditEntry {
    /// When the request was answered, by the server's clock.
    pub time: Timestamp,
    pub user: String,
    /// None for a path that names no resource.
    pub verb: Option<ApiVerb>,
    /// The plural, or the path when it names no resource.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
    pub code: u16,
}

/// Counts requests, and records them when logging is on.
#[derive(Debug, Default)]
pub(crate) struct RequestAuditLog {
    on: bool,
    entries: Vec<RequestAuditEntry>,
    answered: u64,
}

impl RequestAuditLog {
    pub(crate) fn new(on: bool) -> Self {
        Self {
            on,
            ..Self::default()
        }
    }

    /// Counts a request, and records it when the log is on.
    pub(crate) fn record_request(&mut self, entry: impl FnOnce() -> RequestAuditEntry) {
        self.answered += 1;
        if self.on {
            self.entries.push(entry());
        }
    }

    pub(crate) fn entries(&self) -> &[RequestAuditEntry] {
        &self.entries
    }

    pub(crate) fn answered_count(&self) -> u64 {
        self.answered
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}
