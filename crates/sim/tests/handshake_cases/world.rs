//! A cluster whose nodes are rebooted as planned and by force, and leaders that tell others of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_controller::handshake;
use dogwatch_core::lock::{self, Budget, Count, HolderId, LeaseSeen, LockRecord, Verdict};
use dogwatch_core::name::{GroupName, NodeName, RunId};
use dogwatch_core::policy::Policies;
use dogwatch_core::reboot::Config;
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_k8s::lock::{BidOutcome, LockClient, RemedyHeld, RemedyLease, Taken};
use dogwatch_process::clock::Clock;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::support::leader::Leader;
use crate::support::objects::{self, CAPI};
use crate::support::until;

/// One server, and a namespace of Dogwatch's.
pub struct World {
    pub client: Client,
    /// What leaders reach the API server with.
    pub leading: Client,
    /// Dogwatch's namespace; what every name of this test begins with.
    pub home: String,
    pub flags: Config,
    pub clock: Clock,
}

impl World {
    pub async fn on(client: Client, clock: Clock, reboot_timeout: Duration) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let home = format!("handshake-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let flags = Config {
            reboot_timeout,
            ..Config::default()
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

    /// Those who listen: medik8s' namespace, and the kind of Cluster API's Machines.
    pub async fn with_listeners(self) -> Self {
        let object = json!({ "metadata": { "name": "medik8s-leases" } });
        let object: Namespace = serde_json::from_value(object).unwrap();
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        // Another case of this server was first.
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
        // The cluster's one view is not what is under test: its rights are proved elsewhere.
        let watches = ClusterWatch::new(self.client.clone(), &self.home, || 0.5);
        leader.run(showing.run(watches));
        leader.run(handshake::run(context));
        leader
    }

    pub fn node_name(&self, short: &str) -> NodeName {
        NodeName::new(format!("{}-{short}", self.home)).unwrap()
    }

    /// A Node in this phase of a planned reboot, Ready.
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

    /// Its coordinator writes this phase, or takes the record away.
    pub async fn set_phase(&self, short: &str, phase: Option<&str>) {
        let record = phase.map(|phase| record(phase, self.clock.now().wall).to_string());
        let body = json!({ "metadata": { "annotations": { "dogwatch.dev/reboot": record } } });
        let name = self.node_name(short);
        objects::change(&self.nodes(), name.as_str(), body).await;
    }

    /// A Machine whose Node this is.
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

    /// The remediator's hand.
    pub fn remedy(&self) -> RemedyLease {
        RemedyLease::new(self.leading.clone(), &self.home)
    }

    pub async fn take(&self, short: &str, control_plane: bool, subject: &str) -> Taken {
        let name = self.node_name(short);
        let now = Timestamp::UNIX_EPOCH;
        let remedy = self.remedy();
        let group = if control_plane {
            GroupName::control_plane()
        } else {
            GroupName::default_group()
        };
        let group = Some(group);
        let taken = remedy.take(&name, control_plane, group, subject, now);
        taken.await.unwrap()
    }

    pub async fn remedy_lease(&self, short: &str) -> Lease {
        let name = format!("dogwatch-remedy-{}", self.node_name(short));
        self.leases().get(&name).await.unwrap()
    }

    /// This node's coordinator.
    pub fn hand(&self, short: &str) -> LockClient {
        let holder = HolderId::node(&self.node_name(short));
        LockClient::new(self.client.clone(), &self.home, holder)
    }

    /// It wins a slot of this group.
    pub async fn win(&self, short: &str, group: &str) -> LeaseSeen {
        let (hand, group) = (self.hand(short), GroupName::new(group).unwrap());
        hand.ensure(&group, 1, &[]).await.unwrap();
        let free = hand.list(&group).await.unwrap().remove(0);
        let record = LockRecord {
            node: Some(self.node_name(short)),
            node_uid: None,
            boot_id: None,
            group,
            max: 2,
            since: Timestamp::UNIX_EPOCH,
            runs: vec![RunId::new("coordinator/a").unwrap()],
        };
        let BidOutcome::Won(lease) = hand.bid(&free, &record).await else {
            panic!("{free:?}")
        };
        *lease
    }

    /// Who is out by its count, and whether it may go ahead where two may be out.
    pub async fn count(&self, short: &str, lease: &LeaseSeen, group: &str) -> (Count, Verdict) {
        let (hand, group) = (self.hand(short), GroupName::new(group).unwrap());
        let policies = Policies::Known(Vec::new());
        let reads = hand.count_reads(lease, &group, &policies).await.unwrap();
        let count = lock::count(&reads, hand.holder());
        let verdict = lock::verdict(Budget { max: 2 }, &count, lease, Duration::MAX);
        (count, verdict)
    }

    pub async fn until<F: Future<Output = bool>>(&self, what: &str, seen: impl Fn() -> F) {
        until(what, seen).await;
    }

    /// The Node is deleted, as a remediation does.
    pub async fn delete_node(&self, short: &str) {
        let (name, params) = (self.node_name(short), DeleteParams::default());
        self.nodes().delete(name.as_str(), &params).await.unwrap();
    }

    /// What of this node's the other one's count names.
    pub async fn counted(
        &self,
        by: &str,
        lease: &LeaseSeen,
        group: &str,
        short: &str,
    ) -> Option<String> {
        let (count, _) = self.count(by, lease, group).await;
        let name = self.node_name(short);
        let mut out = count.unavailable.into_iter();
        Some(out.find(|out| out.name == name.as_str())?.why)
    }

    /// Takes the nodes and Machines away, so that no other case's leader finds them.
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

pub fn held(taken: Taken) -> RemedyHeld {
    match taken {
        Taken::Held(held) => held,
        Taken::Refused { by } => panic!("refused: {by}"),
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
