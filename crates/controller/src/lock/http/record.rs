//! What is counted: `dogwatch_lock_requests_total{protocol,answer}`, their duration, and who waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::Response;

/// A protocol, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// The lock API.
    Api,
    /// FleetLock.
    FleetLock,
}

impl Protocol {
    /// The label's value.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Api => "api",
            Protocol::FleetLock => "fleetlock",
        }
    }
}

/// Told of each request; must not block.
pub trait Record: Send + Sync + 'static {
    /// A request came to its end. `answer` is one of about twenty words (`held`, `busy`, …; `gone` where
    /// the client went before its answer).
    fn answered(&self, protocol: Protocol, answer: &'static str, took: Duration);

    /// So many requests for the lock are under way now, of both protocols together.
    fn waiting(&self, now: usize);
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Record for Nobody {
    fn answered(&self, _: Protocol, _: &'static str, _: Duration) {}
    fn waiting(&self, _: usize) {}
}

/// The word for an answer, carried by the response.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word(pub(super) &'static str);

/// Tells of one request when it ends, however that is.
pub(super) struct Tally {
    record: Arc<dyn Record>,
    protocol: Protocol,
    since: Instant,
    answer: &'static str,
}

impl Tally {
    pub(super) fn begin(record: Arc<dyn Record>, protocol: Protocol) -> Self {
        Self {
            record,
            protocol,
            since: Instant::now(),
            answer: "gone",
        }
    }

    pub(super) fn answered(mut self, response: &Response) {
        self.answer = response.extensions().get().map_or("ok", |Word(word)| word);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.record
            .answered(self.protocol, self.answer, self.since.elapsed());
    }
}
