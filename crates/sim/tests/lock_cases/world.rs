//! One server, a separate namespace, and the objects that every case begins with.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::lock::{HolderId, LockRecord, ObservedLease};
use dogwatch_core::name::{GroupName, NodeName, RunId};
use dogwatch_k8s::lock::{BidOutcome, GroupSlots, LeaveReason, LockClient, ReleaseOutcome};
use dogwatch_k8s::watch::ObjectEvent;
use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::DeleteParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::support::{PATIENCE, objects};

/// One server, a separate namespace, a separate prefix for the names of cluster-scoped objects.
pub struct World {
    client: Client,
    namespace: String,
}

impl World {
    /// A namespace that no other test uses.
    pub async fn on(client: Client) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let namespace = format!("lock-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        objects::make_namespace(&client, &namespace).await;
        Self { client, namespace }
    }

    /// The prefix of every name of this test.
    pub fn prefix(&self) -> &str {
        &self.namespace
    }

    pub fn node_name(&self, short: &str) -> NodeName {
        NodeName::new(format!("{}-{short}", self.namespace)).unwrap()
    }

    pub fn hand(&self, short: &str) -> LockClient {
        let holder = HolderId::for_node(&self.node_name(short));
        LockClient::new(self.client.clone(), &self.namespace, holder)
    }

    pub fn record(&self, short: &str, run: &str) -> LockRecord {
        LockRecord {
            node: Some(self.node_name(short)),
            node_uid: Some(format!("uid-{short}")),
            boot_id: None,
            group: group(),
            max: 1,
            since: Timestamp::UNIX_EPOCH,
            runs: vec![RunId::new(run).unwrap()],
        }
    }

    pub async fn free_lease(&self) -> ObservedLease {
        let hand = self.hand("maker");
        hand.ensure_leases(&group(), 1, &[]).await.unwrap();
        self.lease().await
    }

    pub async fn lease(&self) -> ObservedLease {
        self.hand("reader")
            .list_slots(&group())
            .await
            .unwrap()
            .remove(0)
    }

    pub async fn win(&self, short: &str, lease: &ObservedLease) -> ObservedLease {
        won(self.bid(short, lease).await)
    }

    /// The bid of this node's first run.
    pub async fn bid(&self, short: &str, lease: &ObservedLease) -> BidOutcome {
        let record = self.record(short, "coordinator/a");
        self.hand(short).bid_for_lease(lease, &record).await
    }

    pub async fn delete_lease(&self, lease: &ObservedLease) {
        let (leases, params) = (self.leases(), DeleteParams::default());
        leases.delete(&lease.name, &params).await.unwrap();
    }

    pub fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub async fn make_node(&self, short: &str, labels: &Value, annotations: &Value) {
        let node = json!({ "metadata": {
            "name": self.node_name(short).as_str(), "labels": labels, "annotations": annotations } });
        objects::create(&self.nodes(), node).await;
    }

    pub async fn make_ready(&self, short: &str, ready: &str, unschedulable: bool) {
        let name = self.node_name(short);
        let conditions = json!([{ "type": "Ready", "status": ready, "reason": "Test",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastHeartbeatTime": "2026-01-01T00:00:00Z" }]);
        let status = json!({ "conditions": conditions });
        objects::change_status(&self.nodes(), name.as_str(), status).await;
        let spec = json!({ "spec": { "unschedulable": unschedulable } });
        objects::change(&self.nodes(), name.as_str(), spec).await;
    }

    pub async fn patch_lease(&self, patch: Value) {
        objects::change(&self.leases(), "dogwatch-default-0", patch).await;
    }
}

pub fn group() -> GroupName {
    GroupName::default_group()
}

pub fn at(second: u64) -> Now {
    Now {
        wall: Timestamp::UNIX_EPOCH,
        mono: Duration::from_secs(second),
    }
}

pub fn won(outcome: BidOutcome) -> ObservedLease {
    let BidOutcome::Won(lease) = outcome else {
        panic!("not won: {outcome:?}");
    };
    *lease
}

pub fn lost(outcome: BidOutcome) -> String {
    let BidOutcome::Lost { why } = outcome else {
        panic!("not lost: {outcome:?}");
    };
    why
}

pub fn freed(outcome: ReleaseOutcome) -> ObservedLease {
    let ReleaseOutcome::Freed(lease) = outcome else {
        panic!("not freed: {outcome:?}");
    };
    *lease
}

pub fn assert_changed(outcome: &ReleaseOutcome) {
    assert!(
        matches!(outcome, ReleaseOutcome::Changed { .. }),
        "{outcome:?}"
    );
}

pub fn done() -> LeaveReason {
    LeaveReason::Done { next: Vec::new() }
}

pub async fn until_free<S: Stream<Item = ObjectEvent<Lease>>>(
    watch: &mut Pin<Box<S>>,
    slots: &mut GroupSlots,
    now: Now,
) -> ObservedLease {
    until(watch, slots, now, |lease| lease.holder.is_none()).await
}

pub async fn until_held<S: Stream<Item = ObjectEvent<Lease>>>(
    watch: &mut Pin<Box<S>>,
    slots: &mut GroupSlots,
    now: Now,
) -> ObservedLease {
    until(watch, slots, now, |lease| lease.holder.is_some()).await
}

async fn until<S: Stream<Item = ObjectEvent<Lease>>>(
    watch: &mut Pin<Box<S>>,
    slots: &mut GroupSlots,
    now: Now,
    wanted: impl Fn(&ObservedLease) -> bool,
) -> ObservedLease {
    let wait = async {
        loop {
            let event = watch.next().await.expect("a watch never ends");
            assert!(slots.observe_event(event, now).is_none());
            let lease = slots
                .current_leases()
                .and_then(|leases| leases.into_iter().next());
            if let Some(lease) = lease.filter(|lease| wanted(lease)) {
                return lease;
            }
        }
    };
    let told = tokio::time::timeout(PATIENCE, wait).await;
    told.expect("it is told")
}
