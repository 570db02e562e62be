//! Who waits for a reboot lock, each with what the coordinator's loop has meanwhile: a watch on the
//! Leases, `when_to_bid`, a bid. And the one way in which they leave.

use std::time::{Duration, Instant};

use dogwatch_core::Now;
use dogwatch_core::lock::{
    self, BidDecision, HolderId, LockRecord, MAX_NEXT_WAITERS, ObservedLease,
};
use dogwatch_core::name::{GroupName, NodeName, RunId};
use dogwatch_core::policy::ClusterPolicies;
use dogwatch_k8s::lock::{BidOutcome, GroupSlots, LeaveReason, LockClient, ReleaseOutcome};
use dogwatch_kubesim::seed::SimulationSeed;
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;

pub const NAMESPACE: &str = "dogwatch";
/// How many Nodes are made at a time.
const MADE_AT_ONCE: usize = 16;

/// What a holder tells of its turn.
pub struct Turn {
    /// Whose: the lower, the longer it had waited.
    pub number: usize,
    /// When the answer to its bid came.
    pub won: Instant,
    /// When it sent its release.
    pub leaving: Instant,
    /// Writes that were counted when it had won.
    pub writes: usize,
}

/// One who waits.
pub struct Waiter {
    pub client: Client,
    pub number: usize,
    /// How long it keeps the lock: everybody has heard of it by then.
    pub holds_for: Duration,
    /// Told once it has seen the Leases.
    pub ready: UnboundedSender<()>,
    pub told: UnboundedSender<Turn>,
}

fn name(number: usize) -> NodeName {
    NodeName::new(format!("node-{number:04}")).expect("letters, digits and a dash")
}

/// The hand of the node of this number.
pub fn hand(client: &Client, number: usize) -> LockClient {
    LockClient::new(client.clone(), NAMESPACE, HolderId::for_node(&name(number)))
}

/// The nodes wait by label, in the order of their numbers; number 0 holds the lock.
pub async fn prepare(client: &Client, waiters: usize) -> ObservedLease {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace =
        serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } })).expect("a Namespace");
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .expect("an empty cluster takes it");
    let made = (0..=waiters).map(|number| make_node(client, number));
    futures::stream::iter(made)
        .buffer_unordered(MADE_AT_ONCE)
        .collect::<Vec<()>>()
        .await;
    let locks = hand(client, 0);
    let group = GroupName::default_group();
    locks
        .ensure_leases(&group, 1, &[])
        .await
        .expect("an empty cluster takes it");
    let listed = locks.list_slots(&group).await;
    let free = listed.expect("nothing goes wrong here").remove(0);
    match locks.bid_for_lease(&free, &record(0)).await {
        BidOutcome::Won(won) => *won,
        lost @ (BidOutcome::Lost { .. } | BidOutcome::Unknown(_) | BidOutcome::Refused(_)) => {
            panic!("nobody else bids yet: {lost:?}")
        }
    }
}

async fn make_node(client: &Client, number: usize) {
    let nodes: Api<Node> = Api::all(client.clone());
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

impl Waiter {
    /// Waits, holds, leaves. `writes` is asked when it has won.
    pub async fn run(self, writes: impl Fn() -> usize) {
        let me = HolderId::for_node(&name(self.number));
        let group = GroupName::default_group();
        let origin = Instant::now();
        let now = || Now {
            wall: Timestamp::now(),
            mono: origin.elapsed(),
        };
        let locks = hand(&self.client, self.number);
        let mut ready = Some(&self.ready);
        let mut events = std::pin::pin!(locks.watch_slots(&group, || 0.5));
        let mut slots = GroupSlots::new(group.clone());
        let jitter = SimulationSeed(1)
            .stream_for_actor(me.as_str())
            .next_fraction();
        loop {
            let leases = slots.current_leases().unwrap_or_default();
            if !leases.is_empty()
                && let Some(ready) = ready.take()
            {
                // The main task listens until everybody is ready.
                let _ = ready.send(());
            }
            let (due, lease) = match lock::decide_bid(&leases, &me, 1, jitter, now()) {
                BidDecision::Now { lease } => (Duration::ZERO, Some(lease)),
                BidDecision::Later { at, lease } => (at.saturating_sub(now().mono), Some(lease)),
                BidDecision::AllHeld | BidDecision::MaxReached { .. } => {
                    (Duration::from_hours(1), None)
                }
            };
            tokio::select! {
                biased;
                Some(event) = events.next() => { slots.observe_event(event, now()); }
                () = tokio::time::sleep(due) => {
                    let Some(lease) = lease else { continue };
                    if let BidOutcome::Won(won) = locks.bid_for_lease(&lease, &record(self.number)).await {
                        let won_at = Instant::now();
                        return self.hold(&locks, &won, won_at, writes()).await;
                    }
                }
            }
        }
    }

    async fn hold(&self, locks: &LockClient, won: &ObservedLease, won_at: Instant, writes: usize) {
        tokio::time::sleep(self.holds_for).await;
        let leaving = leave(&self.client, locks, self.number, won).await;
        // The receiver is gone once enough was measured.
        let _ = self.told.send(Turn {
            number: self.number,
            won: won_at,
            leaving,
            writes,
        });
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
/// Answers when the release was sent.
pub async fn leave(
    client: &Client,
    locks: &LockClient,
    number: usize,
    won: &ObservedLease,
) -> Instant {
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
        .list_waiters(
            &GroupName::default_group(),
            &ClusterPolicies::Known(Vec::new()),
        )
        .await
        .expect("nothing goes wrong here");
    let next = lock::order_next_waiters(
        &waiters,
        &HolderId::for_node(&name(number)),
        None,
        MAX_NEXT_WAITERS,
    );
    let leaving = Instant::now();
    let outcome = locks.release_lease(won, &LeaveReason::Done { next }).await;
    assert!(matches!(outcome, ReleaseOutcome::Freed(_)), "{outcome:?}");
    leaving
}

/// How long something took: median, 99th percentile, most.
pub fn spread(mut taken: Vec<Duration>) -> [Duration; 3] {
    taken.sort();
    let at = |part: usize| taken[(taken.len() - 1) * part / 100];
    [at(50), at(99), at(100)]
}

/// By how many places somebody was served before another one who had waited longer.
pub fn worst_inversion(turns: &[Turn]) -> usize {
    let mut latest = 0;
    turns
        .iter()
        .map(|turn| {
            latest = latest.max(turn.number);
            latest - turn.number
        })
        .max()
        .unwrap_or(0)
}

/// `p99 1.0 ms, median 1.0 ms, most 1.0 ms`
pub fn in_words([median, p99, most]: [Duration; 3]) -> String {
    let millis = |time: Duration| time.as_secs_f64() * 1_000.0;
    format!(
        "p99 {:.1} ms, median {:.1} ms, most {:.1} ms",
        millis(p99),
        millis(median),
        millis(most)
    )
}
