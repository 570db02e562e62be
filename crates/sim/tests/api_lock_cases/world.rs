//! Replicas of the lock API on an API server, and their callers.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_controller::lock::engine::{LockEngine, LockEngineSetup, NoGateChecker};
use dogwatch_controller::lock::service::{
    LockAnswer, LockRequest, LockRequester, LockService as _, UnlockAnswer, WaitMode,
};
use dogwatch_core::fleetlock::FleetlockGroups;
use dogwatch_core::lock::{HolderId, LockRecord, ObservedLease};
use dogwatch_core::name::{GroupName, NodeName, RunId};
use dogwatch_core::reboot::RebootConfig;
use dogwatch_k8s::lock::{BidOutcome, LockClient};
use dogwatch_runtime::clock::ProcessClock;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::drain_cases::world::World as Drained;

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// A namespace, a node whose pods end when they are evicted, and the replicas that a case starts.
pub struct World {
    pub base: Drained,
    pub clock: ProcessClock,
}

impl World {
    pub async fn on(client: kube::Client) -> Self {
        let world = Self {
            base: Drained::on(client).await,
            clock: ProcessClock::system_clock(),
        };
        world.make_ready(&world.base.node).await;
        world
    }

    /// A node that is not Ready counts as unavailable for every host of its group.
    async fn make_ready(&self, node: &str) {
        let ready = json!([{ "type": "Ready", "status": "True", "reason": "Test",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastHeartbeatTime": "2026-01-01T00:00:00Z" }]);
        let status = Patch::Merge(json!({ "status": { "conditions": ready } }));
        let nodes: Api<Node> = Api::all(self.base.client.clone());
        nodes
            .patch_status(node, &PatchParams::default(), &status)
            .await
            .unwrap();
    }

    /// Nodes beside the world's own; [`Self::end`] deletes them.
    pub async fn add_ready_nodes(&self, count: u32) {
        let nodes: Api<Node> = Api::all(self.base.client.clone());
        for number in 0..count {
            let name = format!("{}-{number}", self.base.node);
            let node = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
            let params = PostParams::default();
            nodes.create(&params, &node).await.unwrap();
            self.make_ready(&name).await;
        }
    }

    /// A replica that uses this client.
    pub fn replica_as(&self, client: kube::Client, flags: RebootConfig) -> LockEngine {
        let groups = FleetlockGroups::new(["*", "default", "control-plane"]);
        self.start(client, flags, groups, false)
    }

    /// A replica with these FleetLock groups.
    pub fn replica_serving(&self, groups: &[&str]) -> LockEngine {
        let groups = FleetlockGroups::new(groups.iter().copied());
        self.start_with_defaults(groups, false)
    }

    /// A replica of FleetLock, with or without `--fleetlock-drain`.
    pub fn fleetlock_replica(&self, drains: bool) -> LockEngine {
        self.start_with_defaults(FleetlockGroups::new(["*"]), drains)
    }

    fn start_with_defaults(&self, groups: FleetlockGroups, drains: bool) -> LockEngine {
        let client = self.base.client.clone();
        self.start(client, RebootConfig::default(), groups, drains)
    }

    fn start(
        &self,
        client: kube::Client,
        flags: RebootConfig,
        groups: FleetlockGroups,
        fleetlock_drain: bool,
    ) -> LockEngine {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        LockEngine::start(LockEngineSetup {
            client,
            namespace: self.base.namespace.clone(),
            process: format!("replica{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            clock: self.clock.clone(),
            flags,
            fleetlock_groups: groups,
            fleetlock_drain,
            gate_checker: std::sync::Arc::new(NoGateChecker),
        })
    }

    pub fn replica(&self) -> LockEngine {
        self.replica_as(self.base.client.clone(), RebootConfig::default())
    }

    pub fn replica_with(&self, flags: RebootConfig) -> LockEngine {
        self.replica_as(self.base.client.clone(), flags)
    }

    /// The Leases of every slot of every group.
    pub async fn leases(&self) -> Vec<ObservedLease> {
        let reader = HolderId::for_api_host("reader");
        let locks = LockClient::new(self.base.client.clone(), &self.base.namespace, reader);
        locks.list_all_slots().await.unwrap()
    }

    pub async fn held(&self) -> Vec<(String, Vec<String>)> {
        let leases = self.leases().await.into_iter();
        let runs = |lease: &ObservedLease| {
            let runs = lease.record.iter().flat_map(|record| &record.runs);
            runs.map(ToString::to_string).collect()
        };
        leases
            .filter_map(|lease| Some((lease.holder.as_ref()?.to_string(), runs(&lease))))
            .collect()
    }

    /// How many may hold the lock at once, by the record of each held Lease.
    pub async fn maxima(&self) -> Vec<u32> {
        let leases = self.leases().await.into_iter();
        let held = leases.filter(|lease| lease.holder.is_some());
        held.filter_map(|lease| Some(lease.record?.max)).collect()
    }

    /// The client by which the node, as a host, holds Leases.
    pub fn locks_of_node(&self) -> LockClient {
        let holder = HolderId::for_api_host(&self.base.node);
        LockClient::new(self.base.client.clone(), &self.base.namespace, holder)
    }

    /// Takes the lock of group `old` for the node, as a replica would have done that died before it
    /// cordoned the node. Meanwhile the node has left that group.
    pub async fn hold_in_the_old_group(&self) {
        let (locks, group) = (self.locks_of_node(), GroupName::new("old").unwrap());
        locks.ensure_leases(&group, 1, &[]).await.unwrap();
        let free = locks.list_slots(&group).await.unwrap().remove(0);
        let record = LockRecord {
            node: Some(NodeName::new(self.base.node.as_str()).unwrap()),
            node_uid: self.node().await.metadata.uid,
            boot_id: None,
            group,
            max: 1,
            since: jiff::Timestamp::UNIX_EPOCH,
            runs: vec![RunId::new("api/gone/1").unwrap()],
        };
        let outcome = locks.bid_for_lease(&free, &record).await;
        assert!(matches!(outcome, BidOutcome::Won(_)), "{outcome:?}");
    }

    /// The Lease of [`Self::hold_in_the_old_group`].
    pub async fn old_lease(&self) -> ObservedLease {
        let mut leases = self.leases().await.into_iter();
        let old = leases.find(|lease| lease.name == "dogwatch-old-0");
        old.unwrap()
    }

    /// Waits for a condition on the held Leases, given as holders with their runs.
    pub async fn until_held(&self, what: &str, holds: impl Fn(&[(String, Vec<String>)]) -> bool) {
        let look = async {
            loop {
                let held = self.held().await;
                if holds(&held) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let seen = tokio::time::timeout(PATIENCE, look).await;
        assert!(seen.is_ok(), "{what}: {:?}", self.held().await);
    }

    pub async fn until_free(&self) {
        self.until_held("a lock is left behind", <[_]>::is_empty)
            .await;
    }

    pub async fn node(&self) -> Node {
        Api::<Node>::all(self.base.client.clone())
            .get(&self.base.node)
            .await
            .unwrap()
    }

    /// Whether the node is cordoned, and its annotation `dogwatch.dev/api-lock`.
    pub async fn closed(&self) -> (bool, Option<Value>) {
        let node = self.node().await;
        let lock = node.annotations().get("dogwatch.dev/api-lock");
        let lock = lock.map(|text| serde_json::from_str(text).unwrap());
        (
            node.spec
                .and_then(|spec| spec.unschedulable)
                .unwrap_or(false),
            lock,
        )
    }

    pub async fn patch_node(&self, patch: Value) {
        let nodes: Api<Node> = Api::all(self.base.client.clone());
        let params = PatchParams::default();
        nodes
            .patch(&self.base.node, &params, &Patch::Merge(patch))
            .await
            .unwrap();
    }

    pub async fn until_closed(&self, closed: bool) {
        let look = async {
            while self.closed().await.0 != closed {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        within(look).await;
    }

    /// The Leases by which the replicas show that they run.
    pub async fn replicas(&self) -> Vec<Lease> {
        let leases: Api<Lease> = Api::namespaced(self.base.client.clone(), &self.base.namespace);
        let all = leases.list(&ListParams::default()).await.unwrap();
        let own = |lease: &Lease| lease.name_any().starts_with("api.dogwatch.dev-");
        all.items.into_iter().filter(own).collect()
    }

    pub async fn delete_node(&self) {
        let nodes: Api<Node> = Api::all(self.base.client.clone());
        let params = DeleteParams::default();
        nodes.delete(&self.base.node, &params).await.unwrap();
    }

    /// A Node of the deleted one's name.
    pub async fn create_node_again(&self) {
        let nodes: Api<Node> = Api::all(self.base.client.clone());
        let node = json!({ "metadata": { "name": self.base.node } });
        let node = serde_json::from_value(node).unwrap();
        let params = PostParams::default();
        nodes.create(&params, &node).await.unwrap();
        self.make_ready(&self.base.node).await;
    }

    /// As the node's kubelet reports it.
    pub async fn set_machine_id(&self, node: &str, machine_id: &str) {
        let status = json!({ "status": { "nodeInfo": { "machineID": machine_id } } });
        let status = Patch::Merge(status);
        let nodes: Api<Node> = Api::all(self.base.client.clone());
        let params = PatchParams::default();
        nodes.patch_status(node, &params, &status).await.unwrap();
    }

    /// The remediator takes the node's Lease.
    pub async fn begin_remediation(&self) {
        let lease = json!({
            "metadata": { "name": format!("dogwatch-remedy-{}", self.base.node) },
            "spec": { "holderIdentity": "remedy" },
        });
        let lease = serde_json::from_value(lease).unwrap();
        let params = PostParams::default();
        self.all_leases().create(&params, &lease).await.unwrap();
    }

    /// The remediator releases the node's Lease.
    pub async fn end_remediation(&self) {
        let free = Patch::Merge(json!({ "spec": { "holderIdentity": null } }));
        let name = format!("dogwatch-remedy-{}", self.base.node);
        let params = PatchParams::default();
        let leases = self.all_leases();
        leases.patch(&name, &params, &free).await.unwrap();
    }

    fn all_leases(&self) -> Api<Lease> {
        Api::namespaced(self.base.client.clone(), &self.base.namespace)
    }

    /// Deletes the nodes, so that the next case's groups are empty.
    pub async fn end(&self) {
        let nodes: Api<Node> = Api::all(self.base.client.clone());
        let all = nodes.list(&ListParams::default()).await.unwrap();
        for node in all.items {
            let name = node.name_any();
            if name.starts_with(&self.base.node) {
                let params = DeleteParams::default();
                nodes.delete(&name, &params).await.unwrap();
            }
        }
    }
}

pub fn host(name: &str) -> LockRequester {
    LockRequester::Api {
        host: name.to_owned(),
    }
}

pub async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("it never happened")
}

pub fn lock(
    replica: &LockEngine,
    client: &LockRequester,
) -> impl Future<Output = LockAnswer> + Send + use<> {
    let asked = LockRequest {
        client: client.clone(),
        wait: WaitMode::Always,
    };
    within(replica.lock_host(asked))
}

pub fn try_lock(
    replica: &LockEngine,
    client: &LockRequester,
) -> impl Future<Output = LockAnswer> + Send + use<> {
    let asked = LockRequest {
        client: client.clone(),
        wait: WaitMode::No,
    };
    within(replica.lock_host(asked))
}

pub fn unlock(
    replica: &LockEngine,
    client: &LockRequester,
) -> impl Future<Output = UnlockAnswer> + Send + use<> {
    within(replica.unlock_host(client.clone()))
}

pub fn is_held(answer: &LockAnswer) -> bool {
    matches!(answer, LockAnswer::Held { .. })
}

pub async fn have(replica: &LockEngine, client: &LockRequester) {
    let answer = lock(replica, client).await;
    assert!(is_held(&answer), "{client}: {answer:?}");
}

pub async fn leave(replica: &LockEngine, client: &LockRequester) {
    let answer = unlock(replica, client).await;
    assert!(
        matches!(answer, UnlockAnswer::Free { .. }),
        "{client}: {answer:?}"
    );
}

pub fn all_told(runs: &[String]) -> bool {
    !runs.is_empty() && runs.iter().all(|run| run.starts_with("answered/"))
}

/// A reboot record of the node's own coordinator in this phase.
pub fn coordinator_in(phase: &str) -> Value {
    let record = json!({
        "phase": phase, "run": "coordinator/x", "since": "2026-01-01T00:00:00Z",
        "planned": "2026-01-01T00:00:00Z", "trigger": {"source": "command"}, "bootId": "b",
        "cordonedByUs": true,
    });
    json!({ "metadata": { "annotations": { "dogwatch.dev/reboot": record.to_string() } } })
}
