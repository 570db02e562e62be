//! A cluster with nodes and NodeReboots, a leader, and a coordinator by hand.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use dogwatch_api::annotation;
use dogwatch_api::node_reboot::{NodeReboot, NodeRebootStatus};
use dogwatch_controller::node_reboot;
use dogwatch_controller::rollout_estimate::{EstimatePublisher, EstimateReceiver};
use dogwatch_core::reboot::RebootConfig;
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_runtime::clock::ProcessClock;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::support::leader::Leader;
use crate::support::{objects, until};

/// What was seen of a condition, without repetitions in a row, until it is dropped.
pub struct FollowedResult {
    seen: Arc<Mutex<Vec<String>>>,
    task: AbortHandle,
}

impl FollowedResult {
    pub fn seen_values(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for FollowedResult {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn describe_condition(status: NodeRebootStatus, kind: &str) -> String {
    let mut all = status.conditions.into_iter();
    let found = all.find(|one| one.type_ == kind);
    found.map_or_else(String::new, |one| format!("{} {}", one.status, one.reason))
}

const AT: &str = "2026-11-21T22:00:00Z";

pub struct World {
    pub client: Client,
    /// The leaders' client.
    pub leading: Client,
    /// Dogwatch's namespace; also the prefix of all names, because both kinds are cluster-scoped.
    pub home: String,
    pub clock: ProcessClock,
    /// What the leaders are told by a planner: at first, nothing was planned.
    pub estimates: (EstimatePublisher, EstimateReceiver),
}

impl World {
    pub async fn on(client: Client, clock: ProcessClock) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let home = format!("reboots-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        objects::make_namespace(&client, &home).await;
        let kinds = [
            dogwatch_api::node_reboot::node_reboot_crd(),
            dogwatch_api::reboot_policy::policy_crd(),
        ];
        objects::install(&client, kinds).await;
        let world = Self {
            leading: client.clone(),
            client,
            home,
            clock,
            estimates: EstimateReceiver::new(),
        };
        objects::until_served(&world.reboots()).await;
        world
    }

    /// A process that leads from now on.
    pub fn leader(&self) -> Leader {
        let (flags, leading) = (RebootConfig::default(), &self.leading);
        let (mut leader, context, showing) = Leader::new(leading, &self.home, &self.clock, &flags);
        let watches = ClusterWatch::new(leading.clone(), &self.home, || 0.5);
        leader.run(showing.publish_watched_views(watches));
        let estimates = self.estimates.1.clone();
        leader.run(node_reboot::run_node_reboots(context, None, estimates));
        leader
    }

    pub fn full_name(&self, short: &str) -> String {
        format!("{}-{short}", self.home)
    }

    pub async fn make_node(&self, short: &str) {
        let node = json!({ "metadata": { "name": self.full_name(short) } });
        objects::create(&self.nodes(), node).await;
        self.boot(short, "boot-1").await;
    }

    pub async fn boot(&self, short: &str, boot_id: &str) {
        let info = json!({ "architecture": "", "bootID": boot_id, "containerRuntimeVersion": "",
            "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "",
            "operatingSystem": "", "osImage": "", "systemUUID": "" });
        let status = json!({ "nodeInfo": info });
        objects::change_status(&self.nodes(), &self.full_name(short), status).await;
    }

    /// A NodeReboot of node `n1`; returns its UID.
    pub async fn ask(&self, short: &str, spec: Value) -> String {
        let mut whole = json!({ "nodeName": self.full_name("n1") });
        let fields = spec.as_object().unwrap().clone();
        whole.as_object_mut().unwrap().extend(fields);
        let spec = serde_json::from_value(whole).unwrap();
        let made = NodeReboot::new(self.full_name(short), spec);
        let made = self.reboots().create(&PostParams::default(), &made).await;
        made.unwrap().uid().unwrap()
    }

    pub async fn status(&self, short: &str) -> NodeRebootStatus {
        let found = self.reboots().get(&self.full_name(short)).await.unwrap();
        found.status.unwrap_or_default()
    }

    /// `STATUS REASON` of this condition.
    pub async fn condition(&self, short: &str, kind: &str) -> String {
        describe_condition(self.status(short).await, kind)
    }

    /// `STATUS REASON` of condition Succeeded.
    pub async fn succeeded(&self, short: &str) -> String {
        self.condition(short, "Succeeded").await
    }

    /// Follows condition Succeeded of this NodeReboot from now on, by a watch.
    pub async fn follow_result(&self, short: &str) -> FollowedResult {
        let reboots = self.reboots();
        let now = reboots.get(&self.full_name(short)).await.unwrap();
        let by_name = format!("metadata.name={}", self.full_name(short));
        let params = WatchParams::default().fields(&by_name);
        let version = now.resource_version().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let events = reboots.watch(&params, &version).await.unwrap();
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                let (WatchEvent::Added(reboot) | WatchEvent::Modified(reboot)) = event else {
                    continue;
                };
                let status = reboot.status.unwrap_or_default();
                let shown = describe_condition(status, "Succeeded");
                let mut seen = to.lock().unwrap();
                if !shown.is_empty() && seen.last() != Some(&shown) {
                    seen.push(shown);
                }
            }
        });
        let task = task.abort_handle();
        FollowedResult { seen, task }
    }

    pub async fn until_succeeded(&self, short: &str, wanted: &str) {
        let is_so = || async { self.succeeded(short).await == wanted };
        until(&format!("{short} is {wanted}"), is_so).await;
    }

    /// The leader answers another NodeReboot, which was made after everything else.
    pub async fn until_leader_has_seen_all(&self, short: &str) {
        self.ask(short, json!({ "nodeName": "no-such-node" })).await;
        self.until_succeeded(short, "False NodeNotFound").await;
    }

    pub async fn exists(&self, short: &str) -> bool {
        let found = self.reboots().get_opt(&self.full_name(short)).await;
        found.unwrap().is_some()
    }

    pub async fn delete(&self, short: &str) {
        let (name, params) = (self.full_name(short), DeleteParams::default());
        self.reboots().delete(&name, &params).await.unwrap();
    }

    pub async fn cancel(&self, short: &str) {
        let body = json!({ "spec": { "cancel": true } });
        objects::change(&self.reboots(), &self.full_name(short), body).await;
    }

    pub async fn request(&self) -> Option<Value> {
        self.read_annotation(annotation::REBOOT_REQUESTED).await
    }

    async fn read_annotation(&self, key: &str) -> Option<Value> {
        let node = self.nodes().get(&self.full_name("n1")).await.unwrap();
        let text = node.annotations().get(key)?;
        Some(serde_json::from_str(text).unwrap())
    }

    pub async fn until_asked(&self) {
        until("the Node is asked", || async {
            self.request().await.is_some()
        })
        .await;
    }

    /// The coordinator writes its record in this phase, for what the request lists now.
    pub async fn record(&self, phase: &str) {
        let (trigger, boot_id) = match self.read_annotation(annotation::REBOOT).await {
            Some(record) if phase != "draining" => {
                (record["trigger"].clone(), record["bootId"].clone())
            }
            _ => (self.trigger().await, json!(self.boot_id().await)),
        };
        let record = json!({
            "phase": phase, "run": "coordinator/a", "since": AT, "planned": AT,
            "trigger": trigger, "bootId": boot_id, "cordonedByUs": true, "attempts": 0,
            "message": format!("is {phase}"), "began": { phase: AT },
        });
        self.annotate(json!({ annotation::REBOOT: record.to_string() }))
            .await;
    }

    async fn trigger(&self) -> Value {
        let request = self.request().await.unwrap();
        let mut trigger = json!({ "source": "request", "reason": request["reason"],
            "requester": request["requester"], "nodeReboots": request["nodeReboots"] });
        if !request["method"].is_null() {
            trigger["method"] = request["method"].clone();
        }
        trigger
    }

    /// The coordinator has finished: one patch, as the real one writes it.
    pub async fn finish(&self, outcome: &str, boot_id: &str) {
        let record = self.read_annotation(annotation::REBOOT).await.unwrap();
        let last = json!({ "outcome": outcome, "planned": AT, "finished": AT,
            "oldBootId": record["bootId"], "newBootId": boot_id, "trigger": record["trigger"] });
        self.annotate(json!({
            annotation::REBOOT: null,
            annotation::REBOOT_REQUESTED: null,
            annotation::LAST_REBOOT: last.to_string(),
        }))
        .await;
    }

    async fn annotate(&self, annotations: Value) {
        let body = json!({ "metadata": { "annotations": annotations } });
        objects::change(&self.nodes(), &self.full_name("n1"), body).await;
    }

    /// The coordinator's whole reboot.
    pub async fn reboot(&self) {
        self.record("draining").await;
        self.record("rebooting").await;
        self.boot_anew().await;
        self.record("returning").await;
        self.finish_rebooted().await;
    }

    /// Node `n1` has a boot that it never had: `boot-2` after `boot-1`.
    pub async fn boot_anew(&self) {
        let boot_id = self.boot_id().await;
        let number: u32 = boot_id.trim_start_matches("boot-").parse().unwrap();
        self.boot("n1", &format!("boot-{}", number + 1)).await;
    }

    /// The coordinator has rebooted the node into its boot of now.
    pub async fn finish_rebooted(&self) {
        let boot_id = self.boot_id().await;
        self.finish("Rebooted", &boot_id).await;
    }

    async fn boot_id(&self) -> String {
        let node = self.nodes().get(&self.full_name("n1")).await.unwrap();
        node.status.unwrap().node_info.unwrap().boot_id
    }

    /// Node `n1` has this condition.
    pub async fn set_condition(&self, kind: &str, status: &str) {
        let condition = json!({ "type": kind, "status": status, "reason": "Test", "message": "" });
        let body = json!({ "conditions": [condition] });
        objects::change_status(&self.nodes(), &self.full_name("n1"), body).await;
    }

    /// The reasons of the Events about a NodeReboot.
    pub async fn events(&self, short: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let about = format!("involvedObject.name={}", self.full_name(short));
        let params = ListParams::default().fields(&about);
        let all = events.list(&params).await.unwrap().items.into_iter();
        all.filter_map(|event| event.reason).collect()
    }

    /// Deletes what other cases' leaders would find.
    pub async fn end(&self) {
        for reboot in self.reboots().list(&ListParams::default()).await.unwrap() {
            let body = json!({ "metadata": { "finalizers": null } });
            objects::change(&self.reboots(), &reboot.name_any(), body).await;
            let params = DeleteParams::default();
            let _ = self.reboots().delete(&reboot.name_any(), &params).await;
        }
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub fn reboots(&self) -> Api<NodeReboot> {
        Api::all(self.client.clone())
    }
}
