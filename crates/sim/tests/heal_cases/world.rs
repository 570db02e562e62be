//! A cluster with one node that needs somebody, its kubelet, and leaders that heal.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_controller::healer;
use dogwatch_core::heal::Config;
use dogwatch_core::lock::{HolderId, LeaseSeen, LockRecord};
use dogwatch_core::name::{BootId, GroupName, NodeName, RunId};
use dogwatch_core::reboot::{NodeSeen, Phase, Record, Trigger};
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_k8s::lock::{BidOutcome, LockClient, Presence};
use dogwatch_k8s::node::{get_node, node_seen};
use dogwatch_process::clock::Clock;
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
    /// What leaders reach the API server with.
    pub leading: Client,
    pub namespace: String,
    pub config: Config,
    clock: Clock,
    posts: Arc<AtomicU32>,
}

impl World {
    pub async fn on(client: Client, config: Config) -> Self {
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

    /// A process that leads from now on and watches everything anew.
    pub fn leader(&self) -> Leader {
        self.leader_by(&self.leading)
    }

    /// The same, but what it writes to Leases never leaves it: as if it died before.
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
        leader.run(showing.run(watches));
        leader.run(healer::run(context, self.config.clone()));
        leader
    }

    /// The node's kubelet posts its status several times within `healAfter`, in this boot.
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
    pub async fn make_node(&self, short: &str, phase: Phase) -> NodeSeen {
        let record = serde_json::to_string(&record(phase)).unwrap();
        self.make_node_with(
            short,
            phase != Phase::Waiting,
            &json!({ "dogwatch.dev/reboot": record }),
        )
        .await
    }

    pub async fn make_node_with(
        &self,
        short: &str,
        unschedulable: bool,
        annotations: &Value,
    ) -> NodeSeen {
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

    /// The leading condition of a coordinator at work.
    async fn say_at_work(&self, short: &str) {
        let at = "2026-01-01T00:00:00Z";
        let body = json!({ "status": { "conditions": [{
            "type": "MaintenanceInProgress", "status": "True", "reason": "AtWork", "message": "",
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

    /// A node that waits for the lock: the one to call.
    pub async fn make_waiter(&self, short: &str) {
        let node = json!({ "metadata": {
            "name": self.node_name(short).as_str(), "labels": { "dogwatch.dev/reboot": "waiting" } } });
        objects::create(&self.nodes(), node).await;
    }

    /// Slot 0, held for this Node by the run of its record.
    pub async fn hold(&self, node: &NodeSeen) -> LeaseSeen {
        let holder = HolderId::node(&node.name);
        self.hold_as(holder, Some(node), "coordinator/a").await
    }

    pub async fn hold_as(&self, holder: HolderId, node: Option<&NodeSeen>, run: &str) -> LeaseSeen {
        let hand = LockClient::new(self.client.clone(), &self.namespace, holder);
        let group = GroupName::default_group();
        hand.ensure(&group, 1, &[]).await.unwrap();
        let free = hand.list(&group).await.unwrap().remove(0);
        let record = LockRecord {
            node: node.map(|node| node.name.clone()),
            node_uid: node.map(|node| node.uid.clone()),
            boot_id: None,
            group,
            max: 1,
            since: Timestamp::UNIX_EPOCH,
            runs: vec![RunId::new(run).unwrap()],
        };
        let outcome = hand.bid(&free, &record).await;
        let BidOutcome::Won(lease) = outcome else {
            panic!("not won: {outcome:?}");
        };
        *lease
    }

    /// A process of the lock API has shown itself once.
    pub async fn make_presence(&self, process: &str) {
        let presence = Presence::new(self.client.clone(), &self.namespace, process);
        let nobody_waits = BTreeMap::new();
        presence
            .renew(&nobody_waits, &[], Timestamp::UNIX_EPOCH)
            .await
            .unwrap();
    }

    pub async fn is_present(&self, process: &str) -> bool {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let name = dogwatch_api::lease::presence_name(process);
        leases.get_opt(&name).await.unwrap().is_some()
    }

    pub async fn lease(&self) -> LeaseSeen {
        let me = HolderId::new("reader").unwrap();
        let hand = LockClient::new(self.client.clone(), &self.namespace, me);
        hand.list(&GroupName::default_group())
            .await
            .unwrap()
            .remove(0)
    }

    pub async fn node(&self, short: &str) -> Option<NodeSeen> {
        let name = self.node_name(short);
        let node = get_node(&self.client, name.as_str()).await.unwrap();
        node.map(|node| node_seen(&node).unwrap())
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

    /// What the healer has said about this node, as `reason`s.
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

    /// Waits for what is to be observed.
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

    pub async fn until_free(&self) -> LeaseSeen {
        self.until("the Lease is free", || async {
            self.lease().await.holder.is_none()
        })
        .await;
        self.lease().await
    }

    /// Several times `healAfter` pass.
    pub async fn time_passes(&self) {
        tokio::time::sleep(self.config.heal_after * 3).await;
    }

    /// Takes the node away, so that no other case's leader finds it.
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

/// A kubelet that posts; gone when it is dropped.
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
    // A Node that is deleted meanwhile is the end of its case.
    let _ = nodes
        .patch_status(
            name.as_str(),
            &PatchParams::default(),
            &Patch::Strategic(body),
        )
        .await;
}

pub fn record(phase: Phase) -> Record {
    let since: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    Record {
        phase,
        run: RunId::new("coordinator/a").unwrap(),
        since,
        planned: since,
        trigger: Trigger {
            source: "request".into(),
            reason: "kernel".into(),
            requester: None,
        },
        boot_id: BootId::new("boot-1").unwrap(),
        cordoned_by_us: phase != Phase::Waiting,
        lease: (phase != Phase::Waiting).then(|| "dogwatch-default-0".into()),
        attempts: u32::from(phase >= Phase::Rebooting),
        message: String::new(),
        serves: std::collections::BTreeMap::new(),
        failures: 0,
        retry_after: None,
        forced: false,
        deleting: false,
        budgets: Vec::new(),
        began: std::collections::BTreeMap::new(),
    }
}
