//! How long a reboot lock stands free between two holders, and how many writes that takes, with
//! 1,000 waiters on the embedded server in real time.
//!
//! A waiter is what the coordinator's loop is while it waits: a watch on the Leases,
//! `when_to_bid`, a bid. All of them share this process' one thread, so the figure includes
//! telling each of them of each change.

#![expect(clippy::disallowed_methods, reason = "real time is what it measures")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use dogwatch_core::Now;
use dogwatch_core::lock::{self, Bid, HINT_LENGTH, HolderId, LeaseSeen, LockRecord};
use dogwatch_core::name::{GroupName, NodeName, RunId};
use dogwatch_core::policy::Policies;
use dogwatch_k8s::lock::{BidOutcome, Leaving, LockClient, ReleaseOutcome, Slots};
use dogwatch_sim::api::{ApiServer, Options, Verb};
use dogwatch_sim::clock::TokioClock;
use dogwatch_sim::seed::Seed;
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::mpsc;

const WAITERS: usize = 1_000;
const HANDOVERS: usize = 200;
/// How long each holder keeps the lock: everybody has heard of it by then.
const HELD_FOR: Duration = Duration::from_millis(150);
const NAMESPACE: &str = "dogwatch";

/// What a holder tells of its turn.
struct Turn {
    won: Instant,
    released: Instant,
    /// Writes to Leases that the server had answered when it had won.
    writes: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let clock = Arc::new(TokioClock::starting_at(Timestamp::now()));
    let server = ApiServer::new(
        clock,
        Options {
            audit: true,
            ..Options::default()
        },
    );
    let first = prepare(&server).await;
    let (told, mut turns) = mpsc::unbounded_channel();
    let (ready, mut watching) = mpsc::unbounded_channel();
    for number in 1..=WAITERS {
        tokio::spawn(wait(server.clone(), number, told.clone(), ready.clone()));
    }
    for _ in 0..WAITERS {
        watching.recv().await;
    }
    leave(&server.client("admin"), &hand(&server, 0), 0, &first).await;
    let mut seen = Vec::with_capacity(HANDOVERS + 1);
    while seen.len() <= HANDOVERS {
        seen.extend(turns.recv().await);
    }
    report(&seen);
}

fn name(number: usize) -> NodeName {
    NodeName::new(format!("node-{number:04}")).expect("letters, digits and a dash")
}

/// The nodes wait by label, in the order of their numbers; the first holds the lock.
async fn prepare(server: &ApiServer) -> LeaseSeen {
    let client = server.client("admin");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace =
        serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } })).expect("a Namespace");
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .expect("an empty cluster takes it");
    let nodes: Api<Node> = Api::all(client);
    for number in 0..=WAITERS {
        let since = Timestamp::from_second(i64::try_from(number).expect("few")).expect("in range");
        let node = serde_json::from_value(json!({ "metadata": {
            "name": name(number).as_str(),
            "labels": { "dogwatch.dev/reboot": "waiting" },
            "annotations": { "dogwatch.dev/reboot": json!({ "since": since }).to_string() },
        }}));
        nodes
            .create(&PostParams::default(), &node.expect("a Node"))
            .await
            .expect("an empty cluster takes it");
    }
    let locks = hand(server, 0);
    let group = GroupName::default_group();
    locks
        .ensure(&group, 1, &[])
        .await
        .expect("an empty cluster takes it");
    let listed = locks.list(&group).await;
    let free = listed.expect("nothing goes wrong here").remove(0);
    match locks.bid(&free, &record(0)).await {
        BidOutcome::Won(won) => *won,
        lost @ (BidOutcome::Lost { .. } | BidOutcome::Unknown(_) | BidOutcome::Refused(_)) => {
            panic!("nobody else bids yet: {lost:?}")
        }
    }
}

fn hand(server: &ApiServer, number: usize) -> LockClient {
    let name = name(number);
    LockClient::new(
        server.client(name.as_str()),
        NAMESPACE,
        HolderId::node(&name),
    )
}

async fn wait(
    server: ApiServer,
    number: usize,
    told: mpsc::UnboundedSender<Turn>,
    ready: mpsc::UnboundedSender<()>,
) {
    let me = HolderId::node(&name(number));
    let group = GroupName::default_group();
    let origin = Instant::now();
    let now = || Now {
        wall: Timestamp::now(),
        mono: origin.elapsed(),
    };
    let client = server.client(me.as_str());
    let locks = hand(&server, number);
    let mut ready = Some(ready);
    let mut events = std::pin::pin!(locks.watch(&group, || 0.5));
    let mut slots = Slots::new(group.clone());
    let jitter = Seed(1).stream(me.as_str()).fraction();
    loop {
        let leases = slots.leases().unwrap_or_default();
        if !leases.is_empty()
            && let Some(ready) = ready.take()
        {
            // The main task listens until everybody is ready.
            let _ = ready.send(());
        }
        let (due, lease) = match lock::when_to_bid(&leases, &me, 1, jitter, now()) {
            Bid::Now { lease } => (Duration::ZERO, Some(lease)),
            Bid::Later { at, lease } => (at.saturating_sub(now().mono), Some(lease)),
            Bid::AllHeld => (Duration::from_hours(1), None),
        };
        tokio::select! {
            biased;
            Some(event) = events.next() => { slots.observe(event, now()); }
            () = tokio::time::sleep(due) => {
                let Some(lease) = lease else { continue };
                if let BidOutcome::Won(won) = locks.bid(&lease, &record(number)).await {
                    let won_at = Instant::now();
                    let writes = writes(&server);
                    tokio::time::sleep(HELD_FOR).await;
                    leave(&client, &locks, number, &won).await;
                    // The receiver is gone once enough was measured.
                    let _ = told.send(Turn { won: won_at, released: Instant::now(), writes });
                    return;
                }
            }
        }
    }
}

fn record(number: usize) -> LockRecord {
    LockRecord {
        node: Some(name(number)),
        node_uid: Some("uid".into()),
        boot_id: None,
        group: GroupName::default_group(),
        max: 1,
        since: Timestamp::UNIX_EPOCH,
        runs: vec![RunId::new(format!("coordinator/{number}")).expect("letters and digits")],
    }
}

/// As the coordinator leaves: it waits no longer, lists who does, and calls them as it lets go.
async fn leave(client: &kube::Client, locks: &LockClient, number: usize, won: &LeaseSeen) {
    let nodes: Api<Node> = Api::all(client.clone());
    let done = json!({ "metadata": { "labels": { "dogwatch.dev/reboot": null } } });
    nodes
        .patch(
            name(number).as_str(),
            &PatchParams::default(),
            &Patch::Merge(done),
        )
        .await
        .expect("it is there");
    let waiters = locks
        .waiting_nodes(&GroupName::default_group(), &Policies::Known(Vec::new()))
        .await
        .expect("nothing goes wrong here");
    let next = lock::hint(&waiters, &HolderId::node(&name(number)), None, HINT_LENGTH);
    let outcome = locks.release(won, &Leaving::Done { next }).await;
    assert!(matches!(outcome, ReleaseOutcome::Freed(_)), "{outcome:?}");
}

fn writes(server: &ApiServer) -> usize {
    let log = server.audit_log();
    log.iter()
        .filter(|entry| entry.resource == "leases" && entry.verb == Some(Verb::Patch))
        .count()
}

fn report(turns: &[Turn]) {
    let mut gaps: Vec<Duration> = turns
        .windows(2)
        .map(|pair| pair[1].won - pair[0].released)
        .collect();
    // From one win to the next: the release, and every bid until one won.
    let most = turns
        .windows(2)
        .map(|pair| pair[1].writes - pair[0].writes)
        .max()
        .unwrap_or(0);
    gaps.sort();
    let at = |part: usize| gaps[(gaps.len() - 1) * part / 100];
    let measured = format!(
        "p99 {:.1} ms, median {:.1} ms",
        millis(at(99)),
        millis(at(50))
    );
    let figure = |what: &str, measured: String, reach: &str, kept: bool| {
        println!(
            "{}",
            json!({ "what": what, "measured": measured, "reach": reach, "kept": kept })
        );
    };
    figure(
        "lock handover, 1,000 waiters",
        measured,
        "p99 <= 100 ms",
        at(99) <= Duration::from_millis(100),
    );
    figure(
        "writes for a handover, 1,000 waiters",
        format!("at most {most}"),
        "<= 10",
        most <= 10,
    );
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
