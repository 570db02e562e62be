//! How long a reboot lock stands free between two holders, and how many writes that takes, with
//! 1,000 waiters on the embedded server in real time.
//!
//! All of them share this process' one thread, so the figure includes telling each of them of each
//! change.

#![expect(clippy::disallowed_methods, reason = "real time is what it measures")]

#[path = "handover/waiters.rs"]
mod waiters;

use std::sync::Arc;
use std::time::Duration;

use dogwatch_kubesim::api::{ApiServer, ApiServerOptions, ApiVerb};
use dogwatch_kubesim::clock::TokioClock;
use dogwatch_testbed::bench::print_figure;
use jiff::Timestamp;
use tokio::sync::mpsc;

use waiters::{Turn, Waiter, hand, in_words, leave, prepare, spread, worst_inversion};

const WAITERS: usize = 1_000;
const HANDOVERS: usize = 200;
const HELD_FOR: Duration = Duration::from_millis(150);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let clock = Arc::new(TokioClock::starting_at(Timestamp::now()));
    let server = ApiServer::new(
        clock,
        ApiServerOptions {
            audit: true,
            ..ApiServerOptions::default()
        },
    );
    let admin = server.client_for_user("admin");
    let first = prepare(&admin, WAITERS).await;
    let (told, mut turns) = mpsc::unbounded_channel();
    let (ready, mut watching) = mpsc::unbounded_channel();
    for number in 1..=WAITERS {
        let waiter = Waiter {
            client: server.client_for_user(&format!("node-{number}")),
            number,
            holds_for: HELD_FOR,
            ready: ready.clone(),
            told: told.clone(),
        };
        let server = server.clone();
        tokio::spawn(waiter.run(move || writes(&server)));
    }
    for _ in 0..WAITERS {
        watching.recv().await;
    }
    leave(&admin, &hand(&admin, 0), 0, &first).await;
    let mut seen = Vec::with_capacity(HANDOVERS + 1);
    while seen.len() <= HANDOVERS {
        seen.extend(turns.recv().await);
    }
    report(&seen);
}

fn writes(server: &ApiServer) -> usize {
    let log = server.audit_log();
    log.iter()
        .filter(|entry| entry.resource == "leases" && entry.verb == Some(ApiVerb::Patch))
        .count()
}

fn report(turns: &[Turn]) {
    let pairs = || turns.windows(2);
    let gaps = spread(pairs().map(|pair| pair[1].won - pair[0].leaving).collect());
    // From one win to the next: the release, and every bid until one won.
    let most = pairs().map(|pair| pair[1].writes - pair[0].writes).max();
    let most = most.unwrap_or(0);
    let worst = worst_inversion(turns);
    print_figure(
        "lock handover, 1,000 waiters",
        &in_words(gaps),
        "p99 <= 100 ms",
        gaps[1] <= Duration::from_millis(100),
    );
    print_figure(
        "writes for a handover, 1,000 waiters",
        &format!("at most {most}"),
        "<= 10",
        most <= 10,
    );
    print_figure(
        "worst inversion of their order",
        &format!("{worst} places"),
        "0 places",
        worst == 0,
    );
}
