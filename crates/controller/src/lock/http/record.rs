//! What is counted: `dogwatch_lock_requests_total{protocol,answer}`, their duration, and who waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::Response;

use crate::metrics::{Family, Metrics, Shape};

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

static REQUESTS: Family = Family {
    name: "dogwatch_lock_requests_total",
    help: "Requests of the lock API and of FleetLock that came to their end, by answer.",
    shape: Shape::Counter,
};

/// From an answer at once to a day in the queue.
static DURATION: Family = Family {
    name: "dogwatch_lock_request_duration_seconds",
    help: "How long requests of the lock API and of FleetLock took, waiting included.",
    shape: Shape::Seconds(&[
        0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 21_600.0, 86_400.0,
    ]),
};

static WAITING: Family = Family {
    name: "dogwatch_lock_requests_waiting",
    help: "Requests for the lock under way in this replica: waiting, or draining.",
    shape: Shape::Gauge,
};

impl Record for Metrics {
    fn answered(&self, protocol: Protocol, answer: &'static str, took: Duration) {
        let protocol = ("protocol", protocol.as_str());
        self.add(&REQUESTS, &[protocol, ("answer", answer)], 1);
        self.observe(&DURATION, &[protocol], took);
    }

    fn waiting(&self, now: usize) {
        let now = u32::try_from(now).unwrap_or(u32::MAX);
        self.set(&WAITING, &[], f64::from(now));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_protocol_and_answer() {
        let metrics = Metrics::default();
        let record: &dyn Record = &metrics;
        record.answered(Protocol::Api, "held", Duration::from_millis(50));
        record.answered(Protocol::FleetLock, "gone", Duration::from_mins(2));
        record.waiting(7);
        let page = metrics.render();
        for line in [
            "dogwatch_lock_requests_total{protocol=\"api\",answer=\"held\"} 1",
            "dogwatch_lock_requests_total{protocol=\"fleetlock\",answer=\"gone\"} 1",
            "dogwatch_lock_request_duration_seconds_count{protocol=\"api\"} 1",
            "dogwatch_lock_requests_waiting 7",
        ] {
            assert!(page.contains(line), "{page}");
        }
    }
}
