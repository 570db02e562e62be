//! A cluster with one node whose coordinator is gone, its kubelet, and leaders that heal.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_controller::healer;
use dogwatch_core::healer::HealerConfig;
use dogwatch_core::lock::{HolderId, LockRecord, ObservedLease};
use dogwatch_core::name::{BootId, GroupName, NodeName, RunId};
use dogwatch_core::reboot::{ObservedNode, RebootPhase, RebootRecord, RebootTrigger};
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_k8s::lock::{BidOutcome, LockClient, PresenceLease};
use dogwatch_k8s::node::{get_node, observed_node};
use dogwatch_runtime::clock::ProcessClock;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::embedded::clock_from;
use crate::support::leader::Leader;
use crate::support::{objects, until_by};

/// One server, one namespace, one node under test.
pub struct World {
    pub client: Client,
    /// The leaders' client.
    pub leading: Client,
    pub namespace: String,
    pub config: HealerConfig,
    clock: ProcessClock,
    posts: Arc<AtomicU32>,
}

impl World {
    pub async fn on(client: Client, config: HealerConfig) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let namespace = format!("heal-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        objects::make_namespace(&client, &namespace).await;
        Self {
            leading: client.clone(),
            client,
            namespace,
            config,
            clock: clock_from("2026-01-02T00:00:00Z".parse().unwrap()),
            posts: Arc::default(),
        }
    }

    pub fn node_name(&self, short: &str) -> NodeName {
        NodeName::new(format!("{}-{short}", self.namespace)).unwrap()
    }

    /// A process that leads from now on, with new watches.
    pub fn leader(&self) -> Leader {
        self.leader_by(&self.leading)
    }

    /// The same, but its writes to Leases are lost, as if it had died before.
    pub fn leader_that_cannot_write_leases(&self) -> Leader {
        let client = self.leading.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let stays =
                request.method() != http::Method::GET && request.uri().path().contains("/leases/");
            let client = client.clone();
            async move {
                if stays {
                    std::future::pending::<()>().await;
                }
                client.send(request).await
            }
        });
        self.leader_by(&Client::new(service, "default"))
    }

    fn leader_by(&self, client: &Client) -> Leader {
        let (namespace, flags) = (&self.namespace, &self.config.flags);
        let (mut leader, context, showing) = Leader::new(client, namespace, &self.clock, flags);
        let watches = ClusterWatch::new(client.clone(), namespace, || 0.5);
        leader.run(showing.publish_watched_views(watches));
        leader.run(healer::run_healer(context, self.config.clone()));
        leader
    }

    /// A kubelet that posts the node's status several times within `healAfter`, in this boot.
    pub fn kubelet(&self, short: &str, boot: &'static str) -> Kubelet {
        let (client, name) = (self.client.clone(), self.node_name(short));
        let (every, posts) = (self.config.heal_after / 4, Arc::clone(&self.posts));
        Kubelet(tokio::spawn(async move {
            loop {
                post(&client, &name, boot, posts.fetch_add(1, Ordering::Relaxed)).await;
                tokio::time::sleep(every).await;
            }
        }))
    }

    /// A Node whose coordinator has written this record and is gone, in boot `boot-1`.
    pub async fn make_node(&self, short: &str, phase: RebootPhase) -> ObservedNode {
        let record = serde_json::to_string(&record(phase)).unwrap();
        self.make_node_with(
            short,
            phase != RebootPhase::Waiting,
            &json!({ "dogwatch.dev/reboot": record }),
        )
        .await
    }

    pub async fn make_node_with(
        &self,
        short: &str,
        unschedulable: bool,
        annotations: &Value,
    ) -> ObservedNode {
        let name = self.node_name(short);
        let node = json!({
            "metadata": { "name": name.as_str(), "annotations": annotations },
            "spec": { "unschedulable": unschedulable },
        });
        objects::create(&self.nodes(), node).await;
        let number = self.posts.fetch_add(1, Ordering::Relaxed);
        post(&self.client, &name, "boot-1", number).await;
        self.say_at_work(short).await;
        self.node(short).await.unwrap()
    }

    /// Writes the leading condition of an active coordinator.
    async fn say_at_work(&self, short: &str) {
        let at = "2026-01-01T00:00:00Z";
        let body = json!({ "status": { "conditions": [{
            "type": "MaintenanceInProgress", "status": "True", "reason": "Rebooting", "message": "",
            "lastHeartbeatTime": at, "lastTransitionTime": at }] } });
        self.patch_status(short, body).await;
    }

    async fn patch_status(&self, short: &str, body: Value) {
        let name = self.node_name(short);
        self.nodes()
            .patch_status(
                name.as_str(),
                &PatchParams::default(),
                &Patch::Strategic(body),
            )
            .await
            .unwrap();
    }

    /// A node that waits for the lock, to be next in line.
    pub async fn make_waiter(&self, short: &str) {
        let node = json!({ "metadata": {
            "name": self.node_name(short).as_str(), "labels": { "dogwatch.dev/reboot": "waiting" } } });
        objects::create(&self.nodes(), node).await;
    }

    /// Slot 0, held for this Node by the run of its record.
    pub async fn hold(&self, node: &ObservedNode) -> ObservedLease {
        let holder = HolderId::for_node(&node.name);
        self.hold_as(holder, Some(node), "coordinator/a").await
    }

    pub async fn hold_as(
        &self,
        holder: HolderId,
        node: Option<&ObservedNode>,
        run: &str,
    ) -> ObservedLease {
        let hand = LockClient::new(self.client.clone(), &self.namespace, holder);
        let group = GroupName::default_group();
        hand.ensure_leases(&group, 1, &[]).await.unwrap();
        let free = hand.list_slots(&group).await.unwrap().remove(0);
        let record = LockRecord {
            node: node.map(|node| node.name.clone()),
            node_uid: node.map(|node| node.uid.clone()),
            boot_id: None,
            group,
            max: 1,
            since: Timestamp::UNIX_EPOCH,
            runs: vec![RunId::new(run).unwrap()],
        };
        let outcome = hand.bid_for_lease(&free, &record).await;
        let BidOutcome::Won(lease) = outcome else {
            panic!("not won: {outcome:?}");
        };
        *lease
    }

    /// A process of the lock API has written its Lease once.
    pub async fn make_presence(&self, process: &str) {
        let presence = PresenceLease::new(self.client.clone(), &self.namespace, process);
        let nobody_waits = BTreeMap::new();
        presence
            .renew_presence(&nobody_waits, &[], Timestamp::UNIX_EPOCH)
            .await
            .unwrap();
    }

    pub async fn is_present(&self, process: &str) -> bool {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let name = dogwatch_api::lease::presence_name(process);
        leases.get_opt(&name).await.unwrap().is_some()
    }

    pub async fn lease(&self) -> ObservedLease {
        let me = HolderId::new("reader").unwrap();
        let hand = LockClient::new(self.client.clone(), &self.namespace, me);
        hand.list_slots(&GroupName::default_group())
            .await
            .unwrap()
            .remove(0)
    }

    pub async fn node(&self, short: &str) -> Option<ObservedNode> {
        let name = self.node_name(short);
        let node = get_node(&self.client, name.as_str()).await.unwrap();
        node.map(|node| observed_node(&node).unwrap())
    }

    pub async fn annotation(&self, short: &str, key: &str) -> Option<String> {
        let name = self.node_name(short);
        let node = get_node(&self.client, name.as_str()).await.unwrap()?;
        node.metadata.annotations?.remove(key)
    }

    pub async fn annotate(&self, short: &str, key: &str, text: &str) {
        let name = self.node_name(short);
        let body = json!({ "metadata": { "annotations": { key: text } } });
        objects::change(&self.nodes(), name.as_str(), body).await;
    }

    /// The reasons of the healer's Events about this node.
    pub async fn said(&self, short: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let about = format!("involvedObject.name={}", self.node_name(short));
        let all = events
            .list(&ListParams::default().fields(&about))
            .await
            .unwrap();
        all.items
            .into_iter()
            .filter_map(|event| event.reason)
            .collect()
    }

    /// Waits until `seen` is true.
    pub async fn until<F: Future<Output = bool>>(&self, what: &str, seen: impl Fn() -> F) {
        let patience = self.config.heal_after * 20 + Duration::from_mins(1);
        until_by(patience, self.config.heal_after / 200, what, seen).await;
    }

    /// Waits for an Event about this node with this reason.
    pub async fn until_said(&self, short: &str, reason: &str) {
        self.until(reason, || async {
            self.said(short).await.iter().any(|said| said == reason)
        })
        .await;
    }

    pub async fn until_free(&self) -> ObservedLease {
        self.until("the Lease is free", || async {
            self.lease().await.holder.is_none()
        })
        .await;
        self.lease().await
    }

    /// Sleeps several times `healAfter`.
    pub async fn time_passes(&self) {
        tokio::time::sleep(self.config.heal_after * 3).await;
    }

    /// Deletes the node, so that no other case's leader finds it.
    pub async fn end(&self) {
        let all = self.nodes().list(&ListParams::default()).await.unwrap();
        for node in all.items {
            let name = node.metadata.name.unwrap();
            if name.starts_with(&self.namespace) {
                let gone = self.nodes().delete(&name, &DeleteParams::default()).await;
                assert!(gone.is_ok(), "{gone:?}");
            }
        }
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }
}

/// A kubelet that posts heartbeats until it is dropped.
pub struct Kubelet(JoinHandle<()>);

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn post(client: &Client, name: &NodeName, boot: &str, number: u32) {
    let at = Timestamp::from_second(1_800_000_000 + i64::from(number)).unwrap();
    let info = [
        "architecture",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ];
    let mut info: serde_json::Map<String, Value> = info
        .iter()
        .map(|key| ((*key).to_owned(), json!("x")))
        .collect();
    info.insert("bootID".into(), json!(boot));
    let body = json!({ "status": { "nodeInfo": info, "conditions": [{
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
        "lastHeartbeatTime": at.to_string(), "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
    let nodes: Api<Node> = Api::all(client.clone());
    // A Node may be deleted when its case ends.
    let _ = nodes
        .patch_status(
            name.as_str(),
            &PatchParams::default(),
            &Patch::Strategic(body),
        )
        .await;
}

pub fn record(phase: RebootPhase) -> RebootRecord {
    let since: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let trigger = RebootTrigger {
        source: "request".into(),
        reason: "kernel".into(),
        requester: None,
        ..RebootTrigger::default()
    };
    let planned = RebootRecord::new_waiting(
        RunId::new("coordinator/a").unwrap(),
        trigger,
        std::collections::BTreeMap::new(),
        BootId::new("boot-1").unwrap(),
        since,
    );
    RebootRecord {
        phase,
        cordoned_by_us: phase != RebootPhase::Waiting,
        lease: (phase != RebootPhase::Waiting).then(|| "dogwatch-default-0".into()),
        attempts: u32::from(phase >= RebootPhase::Rebooting),
        ..planned
    }
}
