//! Where the time between a sentinel and the request for the lock goes.

use std::time::{Duration, SystemTime};

use dogwatch_testbed::AuditEntry;
use dogwatch_testbed::bench::print_figure;

/// One time of a measurement.
type TimeOf = fn(&LockRequest) -> Duration;

/// One measurement, and its three parts, which follow each other.
pub struct LockRequest {
    pub whole: Duration,
    /// From the sentinel until the API server has the list of Leases.
    until_list: Duration,
    /// The API server's own time for that list.
    list: Duration,
    /// From the list's answer until the API server has the bid.
    until_bid: Duration,
}

impl LockRequest {
    /// Reads what the API server received since the sentinel was created; nothing without a bid.
    pub fn from_audit_log(created: SystemTime, entries: &[AuditEntry]) -> Option<Self> {
        let find = |verb: &str| {
            let mut leases = entries.iter().filter(|entry| entry.resource == "leases");
            leases.find(|entry| entry.verb == verb && entry.stage == "ResponseComplete")
        };
        let bid = time_of(&find("patch")?.received);
        let list = find("list").expect("it lists the Leases before it bids");
        let (asked, answered) = (time_of(&list.received), time_of(&list.reached));
        let between = |from: SystemTime, until: SystemTime| {
            until.duration_since(from).expect("one clock for all")
        };
        Some(Self {
            whole: between(created, bid),
            until_list: between(created, asked),
            list: between(asked, answered),
            until_bid: between(answered, bid),
        })
    }
}

fn time_of(text: &str) -> SystemTime {
    let time: jiff::Timestamp = text.parse().expect("RFC 3339");
    time.into()
}

/// Prints the figure and its parts.
pub fn print_lock_requests(what: &str, requests: &[LockRequest]) {
    let late = nth_percentile(requests, 99, |request| request.whole);
    let kept = late <= Duration::from_millis(10);
    let whole = spread(requests, |request| request.whole);
    print_figure(what, &whole, "p99 ≤ 10 ms", kept);
    print_parts(requests);
}

/// Prints the parts of the median, and those of the slowest request.
pub fn print_parts(requests: &[LockRequest]) {
    let parts: [(&str, TimeOf); 3] = [
        ("sentinel → list of Leases arrives", |request| {
            request.until_list
        }),
        ("the API server answers it", |request| request.list),
        ("answer → bid arrives", |request| request.until_bid),
    ];
    let slowest = requests.iter().max_by_key(|request| request.whole);
    for (part, of) in parts {
        let slowest = slowest.map(of).unwrap_or_default();
        eprintln!(
            "  {part}: {}; {:.1} ms in the slowest",
            spread(requests, of),
            milliseconds(slowest)
        );
    }
}

pub fn spread(requests: &[LockRequest], of: TimeOf) -> String {
    let [median, late, most] = [50, 99, 100].map(|n| milliseconds(nth_percentile(requests, n, of)));
    format!(
        "median {median:.1} ms, p99 {late:.1} ms, max {most:.1} ms of {}",
        requests.len()
    )
}

fn nth_percentile(requests: &[LockRequest], percent: usize, of: TimeOf) -> Duration {
    let mut taken: Vec<Duration> = requests.iter().map(of).collect();
    taken.sort_unstable();
    let place = (taken.len() * percent).div_ceil(100).max(1);
    taken[place - 1]
}

fn milliseconds(taken: Duration) -> f64 {
    taken.as_secs_f64() * 1e3
}
