//! The embedded API server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dogwatch_process::clock::Clock;
use dogwatch_sim::api::{ApiServer, AuditEntry, FaultEffect, Options, RequestInfo, Verb};
use dogwatch_sim::clock::TokioClock;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// When the time of [`server`] begins.
pub fn epoch() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

pub fn server() -> ApiServer {
    server_from(epoch())
}

/// One whose time begins then.
pub fn server_from(epoch: Timestamp) -> ApiServer {
    ApiServer::new(Arc::new(TokioClock::starting_at(epoch)), Options::default())
}

/// A wall clock that goes with tokio's, so that a paused one is no special case.
pub fn clock_from(epoch: Timestamp) -> Clock {
    let origin = Instant::now();
    Clock::with_wall(move || epoch + SignedDuration::try_from(origin.elapsed()).unwrap())
}

/// From now on this goes wrong with each such request.
pub fn fail(
    server: &ApiServer,
    effect: FaultEffect,
    is_such: impl Fn(&RequestInfo) -> bool + Send + Sync + 'static,
) {
    server.set_faults(move |request| {
        let effect = is_such(request).then(|| effect.clone());
        effect.into_iter().collect()
    });
}

/// Of such requests the one with this number, from 0, meets with this effect; those that come after it are lost, as
/// of a process that is dead. How many came so far.
pub fn die_at(
    server: &ApiServer,
    last: u32,
    effect: FaultEffect,
    is_such: impl Fn(&RequestInfo) -> bool + Send + Sync + 'static,
) -> Arc<AtomicU32> {
    let sent = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&sent);
    server.set_faults(move |request| {
        if !is_such(request) {
            return Vec::new();
        }
        match count.fetch_add(1, Ordering::Relaxed).cmp(&last) {
            std::cmp::Ordering::Less => Vec::new(),
            std::cmp::Ordering::Equal => vec![effect.clone()],
            std::cmp::Ordering::Greater => vec![FaultEffect::LoseRequest],
        }
    });
    sent
}

/// How many requests with this verb this user has made.
pub fn asked(server: &ApiServer, user: &str, verb: Verb) -> usize {
    let log = server.audit_log();
    let is_it = |entry: &&AuditEntry| entry.user == user && entry.verb == Some(verb);
    log.iter().filter(is_it).count()
}
