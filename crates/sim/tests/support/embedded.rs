//! Embedded API servers and their faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dogwatch_kubesim::api::{
    ApiServer, ApiServerOptions, ApiVerb, FaultEffect, RequestAuditEntry, RequestInfo,
};
use dogwatch_kubesim::clock::TokioClock;
use dogwatch_runtime::clock::ProcessClock;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Start time of [`server`].
pub fn epoch() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

pub fn server() -> ApiServer {
    server_from(epoch())
}

/// A server whose time starts at `epoch`.
pub fn server_from(epoch: Timestamp) -> ApiServer {
    ApiServer::new(
        Arc::new(TokioClock::starting_at(epoch)),
        ApiServerOptions::default(),
    )
}

/// A wall clock that follows tokio's, so that a paused clock is no special case.
pub fn clock_from(epoch: Timestamp) -> ProcessClock {
    let origin = Instant::now();
    ProcessClock::with_wall_clock(move || {
        epoch + SignedDuration::try_from(origin.elapsed()).unwrap()
    })
}

/// Adds this fault to each such request.
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

/// The request with this number (from 0) gets this fault; later ones are lost, as from a dead
/// process. Returns the counter of requests.
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

/// Number of requests with this verb by this user.
pub fn asked(server: &ApiServer, user: &str, verb: ApiVerb) -> usize {
    let log = server.audit_log();
    let is_it = |entry: &&RequestAuditEntry| entry.user == user && entry.verb == Some(verb);
    log.iter().filter(is_it).count()
}
