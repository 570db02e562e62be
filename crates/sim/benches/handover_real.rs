//! How long a reboot lock stands free between two holders, and how many writes that takes, with
//! 1,000 waiters on the real API server.
//!
//! Those who are served next have a thread of their own: what the crowd of the others spends on
//! each change is not theirs, as on a cluster. All share the machine with the API server: each holder
//! keeps the lock for long enough that the crowd has heard of it, even so.
//!
//! `CROWD` and `HANDOVERS` say how many wait and how many are served.

#![expect(clippy::disallowed_methods, reason = "real time is what it measures")]

#[allow(dead_code, reason = "writes are counted in the audit log here")]
#[path = "handover/waiters.rs"]
mod waiters;

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use dogwatch_core::lock::MAX_NEXT_WAITERS;
use dogwatch_k8s::Client;
use dogwatch_k8s::connect::connect_by_kubeconfig;
use dogwatch_testbed::bench::{number_of, print_figure};
use dogwatch_testbed::{AuditEntry, ControlPlane};
use tokio::sync::mpsc::{self, UnboundedSender};

use waiters::{NAMESPACE, Turn, Waiter, hand, in_words, leave, prepare, spread, worst_inversion};

/// Who wait from the first to the last handover.
const CROWD: usize = 1_000;
/// Who are served, before all of the crowd.
const HANDOVERS: usize = 200;
const HELD_FOR: Duration = Duration::from_secs(1);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (crowd, handovers) = (number_of("CROWD", CROWD), number_of("HANDOVERS", HANDOVERS));
    let plane = ControlPlane::builder()
        .with_controllers([])
        .start()
        .await
        .expect("the control plane starts");
    let client = client(plane.admin_kubeconfig()).await;
    let all = crowd + handovers + 1;
    let first = prepare(&client, all).await;
    let (told, mut turns) = mpsc::unbounded_channel();
    let (ready, mut watching) = mpsc::unbounded_channel();
    for numbers in [1..=handovers + 1, handovers + 2..=all] {
        wait_in_a_thread(plane.admin_kubeconfig(), numbers, &ready, &told);
    }
    for _ in 0..all {
        watching.recv().await;
    }
    eprintln!("{all} wait");
    let mark = plane.audit_mark().await.expect("an audit log");
    leave(&client, &hand(&client, 0), 0, &first).await;
    let mut seen = Vec::with_capacity(handovers + 1);
    while seen.len() <= handovers {
        seen.extend(turns.recv().await);
    }
    let asked = plane.audit_entries_since(mark).await.expect("an audit log");
    report(&seen, &writes(&asked));
}

async fn client(kubeconfig: &Path) -> Client {
    connect_by_kubeconfig(kubeconfig)
        .await
        .expect("a kubeconfig")
}

/// They end with the process.
fn wait_in_a_thread(
    kubeconfig: &Path,
    numbers: RangeInclusive<usize>,
    ready: &UnboundedSender<()>,
    told: &UnboundedSender<Turn>,
) {
    let (kubeconfig, ready, told) = (kubeconfig.to_owned(), ready.clone(), told.clone());
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let client = client(&kubeconfig).await;
            let waiters = numbers.map(|number| Waiter {
                client: client.clone(),
                number,
                holds_for: HELD_FOR,
                ready: ready.clone(),
                told: told.clone(),
            });
            let waiting = waiters.map(|waiter| tokio::spawn(waiter.run(|| 0)));
            futures::future::join_all(waiting.collect::<Vec<_>>()).await;
        });
    });
}

/// The writes of each handover, sorted: from one win to the next: the leaver's label, its release, and every bid until one
/// won.
fn writes(asked: &[AuditEntry]) -> Vec<usize> {
    let mut counted = Vec::new();
    let mut holder = None;
    let mut writes = 0;
    for entry in asked.iter().filter(|entry| is_write(entry)) {
        writes += 1;
        let manager = entry
            .uri
            .split(['?', '&'])
            .find_map(|part| part.strip_prefix("fieldManager="));
        if entry.resource == "leases" && entry.code == 200 && manager != holder {
            counted.push(writes);
            (holder, writes) = (manager, 0);
        }
    }
    // The log begins with a release, and its holder's win was before.
    let mut counted = counted.split_off(2);
    counted.sort_unstable();
    counted
}

fn is_write(entry: &AuditEntry) -> bool {
    let write = ["create", "update", "patch", "delete"].contains(&entry.verb.as_str());
    let ours = entry.resource == "nodes" || entry.namespace == NAMESPACE;
    write && ours && entry.stage == "ResponseComplete"
}

fn report(turns: &[Turn], writes: &[usize]) {
    let pairs = || turns.windows(2);
    let gaps = spread(pairs().map(|pair| pair[1].won - pair[0].leaving).collect());
    let worst = worst_inversion(turns);
    let most = writes[writes.len() - 1];
    print_figure(
        "lock handover, 1,000 waiters, real API server",
        &in_words(gaps),
        "p99 <= 100 ms",
        gaps[1] <= Duration::from_millis(100),
    );
    print_figure(
        "writes for it",
        &format!("at most {most}, median {}", writes[writes.len() / 2]),
        "<= 10",
        most <= 10,
    );
    print_figure(
        "worst inversion of their order",
        &format!("{worst} places"),
        // Who was called bids when those before it have not in time; nobody else comes before them.
        "below the number of names in a call",
        worst < MAX_NEXT_WAITERS,
    );
}
