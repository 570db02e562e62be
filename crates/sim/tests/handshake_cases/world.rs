//! A cluster whose nodes are rebooted and remediated, and leaders that mark this for other
//! operators.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_controller::maintenance_markers;
use dogwatch_core::lock::{
    self, BudgetVerdict, GroupBudget, HolderId, LockRecord, ObservedLease, UnavailableCount,
};
use dogwatch_core::name::{GroupName, NodeName, RunId};
use dogwatch_core::policy::ClusterPolicies;
use dogwatch_core::reboot::RebootConfig;
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_k8s::lock::{
    BidOutcome, LeaseTakeOutcome, LockClient, RemediationLeaseClient, RemediationLeaseHold,
};
use dogwatch_runtime::clock::ProcessClock;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::support::leader::Leader;
use crate::support::objects::{self, CAPI};
use crate::support::until;

/// One server and a Dogwatch namespace.
pub struct World {
    pub client: Client,
    /// The leaders' client.
    pub leading: Client,
    /// Dogwatch's namespace, and the prefix of every name of this test.
    pub home: String,
    pub flags: RebootConfig,
    pub clock: ProcessClock,
}

impl World {
    pub async fn on(client: Client, clock: ProcessClock, reboot_timeout: Duration) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let home = format!("handshake-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let flags = RebootConfig {
            reboot_timeout,
            ..RebootConfig::default()
        };
        let world = Self {
            leading: client.clone(),
            client,
            home,
            flags,
            clock,
        };
        objects::make_namespace(&world.client, &world.home).await;
        world
    }

    /// Installs what other operators have: medik8s' namespace, and the kind of Cluster API's
    /// Machines.
    pub async fn with_listeners(self) -> Self {
        let object = json!({ "metadata": { "name": "medik8s-leases" } });
        let object: Namespace = serde_json::from_value(object).unwrap();
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        // Another case on this server may have created it.
        let _: kube::Result<_> = namespaces.create(&PostParams::default(), &object).await;
        let kind = dogwatch_testbed::fixtures::cluster_api_machines();
        objects::install(&self.client, [kind]).await;
        self.until("the kind is served", || async {
            let machines = self.machines().list(&ListParams::default()).await;
            machines.is_ok()
        })
        .await;
        self
    }

    /// A process that leads from now on and has seen nothing yet.
    pub fn leader(&self) -> Leader {
        let (mut leader, context, showing) =
            Leader::new(&self.leading, &self.home, &self.clock, &self.flags);
        // The cluster watch is not under test; other tests cover its rights.
        let watches = ClusterWatch::new(self.client.clone(), &self.home, || 0.5);
        leader.run(showing.publish_watched_views(watches));
        leader.run(maintenance_markers::run_maintenance_markers(context));
        leader
    }

    pub fn node_name(&self, short: &str) -> NodeName {
        NodeName::new(format!("{}-{short}", self.home)).unwrap()
    }

    /// A Ready Node in this phase of a planned reboot.
    pub async fn make_node(&self, short: &str, labels: &Value, phase: Option<&str>) -> String {
        let name = self.node_name(short);
        let record = phase.map(|phase| record(phase, self.clock.now().wall).to_string());
        let node = json!({ "metadata": { "name": name.as_str(), "labels": labels,
            "annotations": { "dogwatch.dev/reboot": record } } });
        let node = objects::create(&self.nodes(), without_nulls(node)).await;
        let ready = json!({ "conditions": [{ "type": "Ready", "status": "True",
            "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z" }] });
        objects::change_status(&self.nodes(), name.as_str(), ready).await;
        node.uid().unwrap()
    }

    /// Writes this phase as the node's coordinator, or deletes the record.
    pub async fn set_phase(&self, short: &str, phase: Option<&str>) {
        let record = phase.map(|phase| record(phase, self.clock.now().wall).to_string());
        let body = json!({ "metadata": { "annotations": { "dogwatch.dev/reboot": record } } });
        let name = self.node_name(short);
        objects::change(&self.nodes(), name.as_str(), body).await;
    }

    /// A Machine with this Node.
    pub async fn make_machine(&self, short: &str, annotations: &Value) {
        let machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": { "name": short, "namespace": self.home, "annotations": annotations },
            "spec": {
                "clusterName": "test",
                "bootstrap": { "dataSecretName": "none" },
                "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "Metal3Machine", "name": short },
            },
        });
        objects::create(&self.machines(), machine).await;
        let name = self.node_name(short);
        let status = json!({ "nodeRef": { "name": name.as_str() } });
        objects::change_status(&self.machines(), short, status).await;
    }

    /// Annotation `cluster.x-k8s.io/skip-remediation` of a Machine.
    pub async fn skip(&self, short: &str) -> Option<String> {
        let machine = self.machines().get(short).await.unwrap();
        let key = "cluster.x-k8s.io/skip-remediation";
        machine.annotations().get(key).cloned()
    }

    /// medik8s' Lease of a node.
    pub async fn node_lease(&self, short: &str) -> Option<Lease> {
        let name = format!("node-{}", self.node_name(short));
        self.node_leases().get_opt(&name).await.unwrap()
    }

    pub async fn make_node_lease(
        &self,
        short: &str,
        holder: &str,
        renewed: Timestamp,
        seconds: i64,
    ) {
        let name = format!("node-{}", self.node_name(short));
        let lease = json!({ "metadata": { "name": name }, "spec": { "holderIdentity": holder,
            "leaseDurationSeconds": seconds, "renewTime": format!("{renewed:.6}") } });
        objects::create(&self.node_leases(), lease).await;
    }

    pub fn node_leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), "medik8s-leases")
    }

    fn machines(&self) -> Api<DynamicObject> {
        objects::objects(&self.client, &self.home, CAPI)
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.home)
    }

    /// The remediator's Lease client.
    pub fn remedy(&self) -> RemediationLeaseClient {
        RemediationLeaseClient::new(self.leading.clone(), &self.home)
    }

    pub async fn take(&self, short: &str, control_plane: bool, subject: &str) -> LeaseTakeOutcome {
        let name = self.node_name(short);
        let now = Timestamp::UNIX_EPOCH;
        let remedy = self.remedy();
        let group = if control_plane {
            GroupName::control_plane_group()
        } else {
            GroupName::default_group()
        };
        let group = Some(group);
        let taken = remedy.take_lease(&name, control_plane, group, subject, now);
        taken.await.unwrap()
    }

    pub async fn remedy_lease(&self, short: &str) -> Lease {
        let name = format!("dogwatch-remedy-{}", self.node_name(short));
        self.leases().get(&name).await.unwrap()
    }

    /// The lock client of this node's coordinator.
    pub fn hand(&self, short: &str) -> LockClient {
        let holder = HolderId::for_node(&self.node_name(short));
        LockClient::new(self.client.clone(), &self.home, holder)
    }

    /// The node takes a slot of this group.
    pub async fn win(&self, short: &str, group: &str) -> ObservedLease {
        let (hand, group) = (self.hand(short), GroupName::new(group).unwrap());
        hand.ensure_leases(&group, 1, &[]).await.unwrap();
        let free = hand.list_slots(&group).await.unwrap().remove(0);
        let record = LockRecord {
            node: Some(self.node_name(short)),
            node_uid: None,
            boot_id: None,
            group,
            max: 2,
            since: Timestamp::UNIX_EPOCH,
            runs: vec![RunId::new("coordinator/a").unwrap()],
        };
        let BidOutcome::Won(lease) = hand.bid_for_lease(&free, &record).await else {
            panic!("{free:?}")
        };
        *lease
    }

    /// Counts the unavailable nodes, and whether the reboot may begin if two may be unavailable.
    pub async fn count(
        &self,
        short: &str,
        lease: &ObservedLease,
        group: &str,
    ) -> (UnavailableCount, BudgetVerdict) {
        let (hand, group) = (self.hand(short), GroupName::new(group).unwrap());
        let policies = ClusterPolicies::Known(Vec::new());
        let reads = hand
            .read_budget_inputs(lease, &group, &policies)
            .await
            .unwrap();
        let count = lock::count_unavailable(&reads, hand.holder_id());
        let verdict = lock::decide_budget(GroupBudget { max: 2 }, &count, lease, Duration::MAX);
        (count, verdict)
    }

    pub async fn until<F: Future<Output = bool>>(&self, what: &str, seen: impl Fn() -> F) {
        until(what, seen).await;
    }

    /// Deletes the Node, as a remediation does.
    pub async fn delete_node(&self, short: &str) {
        let (name, params) = (self.node_name(short), DeleteParams::default());
        self.nodes().delete(name.as_str(), &params).await.unwrap();
    }

    /// Why the count names the node as unavailable, if it does.
    pub async fn counted(
        &self,
        by: &str,
        lease: &ObservedLease,
        group: &str,
        short: &str,
    ) -> Option<String> {
        let (count, _) = self.count(by, lease, group).await;
        let name = self.node_name(short);
        let mut out = count.unavailable.into_iter();
        Some(out.find(|out| out.name == name.as_str())?.why)
    }

    /// Deletes the nodes and Machines, so that no other case's leader finds them.
    pub async fn end(&self) {
        let all = self.nodes().list(&ListParams::default()).await.unwrap();
        for node in all.items {
            let name = node.name_any();
            if name.starts_with(&format!("{}-", self.home)) {
                let gone = self.nodes().delete(&name, &DeleteParams::default()).await;
                assert!(gone.is_ok(), "{gone:?}");
            }
        }
        let (gone, all) = (DeleteParams::default(), ListParams::default());
        let _ = self.machines().delete_collection(&gone, &all).await;
        let _ = self.node_leases().delete_collection(&gone, &all).await;
    }
}

pub fn held(taken: LeaseTakeOutcome) -> RemediationLeaseHold {
    match taken {
        LeaseTakeOutcome::Held(held) => held,
        LeaseTakeOutcome::HeldWithConflict { by, .. } | LeaseTakeOutcome::Refused { by } => {
            panic!("refused: {by}")
        }
    }
}

pub fn control_plane() -> Value {
    json!({ "node-role.kubernetes.io/control-plane": "" })
}

fn record(phase: &str, since: Timestamp) -> Value {
    json!({ "phase": phase, "run": "coordinator/a", "since": since, "planned": since, "trigger": { "source": "request", "reason": "kernel" },
        "bootId": "boot-1", "cordonedByUs": true, "lease": "dogwatch-default-0", "attempts": 1 })
}

fn without_nulls(mut node: Value) -> Value {
    let annotations = node["metadata"]["annotations"].as_object_mut().unwrap();
    let kept: BTreeMap<_, _> = std::mem::take(annotations).into_iter().collect();
    annotations.extend(kept.into_iter().filter(|(_, value)| !value.is_null()));
    node
}
