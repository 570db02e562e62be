//! Counts requests: `dogwatch_lock_requests_total{protocol,answer}`, their duration, and how many
//! wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::Response;

use crate::metrics::{MetricFamily, MetricShape, MetricsRegistry};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockProtocol {
    Api,
    FleetLock,
}

impl LockProtocol {
    pub fn as_str(self) -> &'static str {
        match self {
            LockProtocol::Api => "api",
            LockProtocol::FleetLock => "fleetlock",
        }
    }
}

/// Receives the result of each request; must not block.
pub trait RequestMetrics: Send + Sync + 'static {
    /// A request ended. `answer` is one of about twenty words (`held`, `refused`, …; `gone` if the
    /// client disconnected before its answer).
    fn record_answer(&self, protocol: LockProtocol, answer: &'static str, took: Duration);

    /// The number of lock requests under way, of both protocols together.
    fn set_waiting_count(&self, now: usize);
}

#[derive(Debug, Clone, Copy, Default)]
pub struct NoRequestMetrics;

impl RequestMetrics for NoRequestMetrics {
    fn record_answer(&self, _: LockProtocol, _: &'static str, _: Duration) {}
    fn set_waiting_count(&self, _: usize) {}
}

static LOCK_REQUESTS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_lock_requests_total",
    help: "Finished requests of the lock API and of FleetLock, by answer.",
    shape: MetricShape::Counter,
};

/// From an immediate answer to a day in the queue.
static LOCK_REQUEST_DURATION_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_lock_request_duration_seconds",
    help: "Duration of the requests of the lock API and of FleetLock, including the time they wait for the lock.",
    shape: MetricShape::Seconds(&[
        0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 21_600.0, 86_400.0,
    ]),
};

static LOCK_REQUESTS_WAITING_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_lock_requests_waiting",
    help: "Lock requests in progress in this replica: waiting, or draining.",
    shape: MetricShape::Gauge,
};

impl RequestMetrics for MetricsRegistry {
    fn record_answer(&self, protocol: LockProtocol, answer: &'static str, took: Duration) {
        let protocol = ("protocol", protocol.as_str());
        self.add_to_counter(&LOCK_REQUESTS_METRIC, &[protocol, ("answer", answer)], 1);
        self.observe_duration(&LOCK_REQUEST_DURATION_METRIC, &[protocol], took);
    }

    fn set_waiting_count(&self, now: usize) {
        let now = u32::try_from(now).unwrap_or(u32::MAX);
        self.set_gauge(&LOCK_REQUESTS_WAITING_METRIC, &[], f64::from(now));
    }
}

/// The answer's word for the metric, carried by the response.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutcomeLabel(pub(super) &'static str);

/// Records one request when it is dropped, however the request ends.
pub(super) struct RequestTimer {
    record: Arc<dyn RequestMetrics>,
    protocol: LockProtocol,
    since: Instant,
    answer: &'static str,
}

impl RequestTimer {
    pub(super) fn start_timer(record: Arc<dyn RequestMetrics>, protocol: LockProtocol) -> Self {
        Self {
            record,
            protocol,
            since: Instant::now(),
            answer: "gone",
        }
    }

    pub(super) fn set_answer(mut self, response: &Response) {
        self.answer = response
            .extensions()
            .get()
            .map_or("ok", |OutcomeLabel(word)| word);
    }
}

impl Drop for RequestTimer {
    fn drop(&mut self) {
        self.record
            .record_answer(self.protocol, self.answer, self.since.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_protocol_and_answer() {
        let metrics = MetricsRegistry::default();
        let record: &dyn RequestMetrics = &metrics;
        record.record_answer(LockProtocol::Api, "held", Duration::from_millis(50));
        record.record_answer(LockProtocol::FleetLock, "gone", Duration::from_mins(2));
        record.set_waiting_count(7);
        let page = metrics.render_page();
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
