//! A cluster with nodes, hosts and schedules, and leaders that run them.

use std::sync::atomic::{AtomicU32, Ordering};

use dogwatch_api::node_reboot::{CRD_NAME, NodeReboot, NodeRebootSpec};
use dogwatch_api::reboot_schedule::{
    OccurrenceRebootsStatus, OccurrenceStatus, RebootSchedule, RebootScheduleStatus,
};
use dogwatch_controller::schedule;
use dogwatch_core::reboot::RebootConfig;
use dogwatch_runtime::clock::ProcessClock;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event, Node};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::support::leader::Leader;
use crate::support::objects::{self, HOST};
use crate::support::until;

/// One server, Dogwatch's namespace, and another one with hosts.
pub struct World {
    pub client: Client,
    /// The leaders' client.
    pub leading: Client,
    /// Dogwatch's namespace.
    pub home: String,
    /// Another namespace.
    pub racks: String,
    pub clock: ProcessClock,
}

impl World {
    pub async fn on(client: Client, clock: ProcessClock) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let home = format!("schedules-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let world = Self {
            leading: client.clone(),
            racks: format!("{home}-racks"),
            client,
            home,
            clock,
        };
        for name in [&world.home, &world.racks] {
            objects::make_namespace(&world.client, name).await;
        }
        world.install_the_kinds().await;
        world
    }

    async fn install_the_kinds(&self) {
        let kinds = [
            dogwatch_api::bare_metal_host::host_crd(),
            dogwatch_api::reboot_schedule::schedule_crd(),
        ];
        objects::install(&self.client, kinds).await;
        self.until("the kinds are served", || async {
            let everything = ListParams::default();
            let schedules = self.schedules(&self.home).list(&everything).await.is_ok();
            schedules && self.hosts(&self.home).list(&everything).await.is_ok()
        })
        .await;
    }

    /// Until the end of the case: other cases have nodes requested by annotation.
    pub async fn install_node_reboots(&self) {
        let kinds = [dogwatch_api::node_reboot::node_reboot_crd()];
        objects::install(&self.client, kinds).await;
        objects::until_served(&self.reboots()).await;
    }

    /// The schedule's NodeReboots, by the name of the node.
    pub async fn node_reboots(&self, schedule_uid: &str) -> Vec<NodeReboot> {
        let ours = format!("dogwatch.dev/schedule-uid={schedule_uid}");
        let ours = ListParams::default().labels(&ours);
        let mut made = self.reboots().list(&ours).await.unwrap().items;
        made.sort_by(|one, other| one.spec.node_name.cmp(&other.spec.node_name));
        made
    }

    /// As the controller does that carries it.
    pub async fn end_node_reboot(&self, one: &NodeReboot, status: &str, reason: &str) {
        let at = self.at(SignedDuration::ZERO).to_string();
        let condition = json!({ "type": "Succeeded", "status": status, "reason": reason,
            "message": "m", "lastTransitionTime": at });
        let status = json!({ "phase": "Finished", "conditions": [condition] });
        objects::change_status(&self.reboots(), &one.name_any(), status).await;
    }

    pub async fn delete_node_reboot(&self, one: &NodeReboot) {
        let (name, params) = (one.name_any(), DeleteParams::default());
        self.reboots().delete(&name, &params).await.unwrap();
    }

    /// One of the same name that no schedule has made.
    pub async fn make_strange_node_reboot(&self, like: &NodeReboot) {
        let spec = NodeRebootSpec {
            node_name: like.spec.node_name.clone(),
            ..NodeRebootSpec::default()
        };
        let strange = NodeReboot::new(like.name_any(), spec);
        let params = PostParams::default();
        self.reboots().create(&params, &strange).await.unwrap();
    }

    /// Waits until all NodeReboots of the newest occurrence have ended.
    pub async fn reboots_ended(&self, namespace: &str, name: &str) -> OccurrenceRebootsStatus {
        let reboots = || async {
            let status = self.status(namespace, name).await;
            let newest = status.history.into_iter().next()?;
            newest.reboots.filter(|reboots| reboots.ended.is_some())
        };
        // They are read once a minute.
        for _ in 0..100 {
            if let Some(reboots) = reboots().await {
                return reboots;
            }
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
        panic!("not ended: {:?}", self.status(namespace, name).await);
    }

    fn reboots(&self) -> Api<NodeReboot> {
        Api::all(self.client.clone())
    }

    /// A process that leads from now on.
    pub fn leader(&self) -> Leader {
        let flags = RebootConfig::default();
        let (mut leader, context, _) = Leader::new(&self.leading, &self.home, &self.clock, &flags);
        let carrier = schedule::NodeRebootCarrier::ThisProcess;
        leader.run(schedule::run_schedules(context, carrier));
        leader
    }

    /// A whole second, this long from now.
    pub fn at(&self, ahead: SignedDuration) -> Timestamp {
        let at = self.clock.now().wall + ahead;
        Timestamp::from_second(at.as_second()).unwrap()
    }

    /// Far enough ahead for a test to prepare its objects.
    pub fn soon(&self) -> Timestamp {
        self.at(SignedDuration::from_secs(8))
    }

    pub fn node_name(&self, short: &str) -> String {
        format!("{}-{short}", self.home)
    }

    pub async fn make_node(&self, short: &str, annotations: &Value) {
        let node = json!({ "metadata": { "name": self.node_name(short),
            "labels": { "pool": self.home }, "annotations": annotations } });
        objects::create(&self.nodes(), node).await;
    }

    pub async fn make_host(&self, namespace: &str, name: &str, annotations: &Value) {
        let host = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": name, "annotations": annotations }, "spec": { "online": true },
        });
        objects::create(&self.hosts(namespace), host).await;
    }

    pub async fn make_schedule(&self, namespace: &str, name: &str, spec: &Value) -> String {
        let spec = serde_json::from_value(spec.clone()).unwrap();
        let schedule = RebootSchedule::new(namespace, name, spec);
        let params = PostParams::default();
        let schedules = self.schedules(namespace);
        let made = schedules.create(&params, &schedule).await.unwrap();
        made.uid().unwrap()
    }

    /// As a person would: `kubectl patch`.
    pub async fn change(&self, namespace: &str, name: &str, spec: &Value) {
        let body = json!({ "spec": spec });
        objects::change(&self.schedules(namespace), name, body).await;
    }

    pub async fn delete(&self, namespace: &str, name: &str) {
        let params = DeleteParams::default();
        self.schedules(namespace)
            .delete(name, &params)
            .await
            .unwrap();
    }

    pub async fn write_status(&self, name: &str, status: &Value) {
        objects::change_status(&self.schedules(&self.home), name, status.clone()).await;
    }

    pub async fn status(&self, namespace: &str, name: &str) -> RebootScheduleStatus {
        let schedule = self.schedules(namespace).get(name).await.unwrap();
        schedule.status.unwrap_or_default()
    }

    /// Waits until this number of past occurrences is recorded.
    pub async fn records(
        &self,
        namespace: &str,
        name: &str,
        count: usize,
    ) -> Vec<OccurrenceStatus> {
        self.until("the record is written", || async {
            self.status(namespace, name).await.history.len() >= count
        })
        .await;
        let status = self.status(namespace, name).await;
        assert_eq!(status.current, None);
        assert_eq!(status.history.len(), count, "{status:?}");
        status.history
    }

    pub async fn on_node(&self, short: &str, key: &str) -> Option<String> {
        let node = self.nodes().get(&self.node_name(short)).await.unwrap();
        node.annotations().get(key).cloned()
    }

    pub async fn request_on(&self, short: &str) -> Option<Value> {
        let text = self.on_node(short, "dogwatch.dev/reboot-requested").await?;
        Some(serde_json::from_str(&text).unwrap())
    }

    pub async fn delete_node(&self, short: &str) {
        let params = DeleteParams::default();
        let name = self.node_name(short);
        self.nodes().delete(&name, &params).await.unwrap();
    }

    pub async fn change_host(&self, namespace: &str, name: &str, body: &Value) {
        objects::change(&self.hosts(namespace), name, body.clone()).await;
    }

    pub async fn change_host_status(&self, namespace: &str, name: &str, status: &Value) {
        objects::change_status(&self.hosts(namespace), name, status.clone()).await;
    }

    /// The node's coordinator has rebooted it: the request is removed.
    pub async fn serve(&self, short: &str) {
        self.annotate(short, "dogwatch.dev/reboot-requested", &Value::Null)
            .await;
    }

    pub async fn annotate(&self, short: &str, key: &str, value: &Value) {
        let body = json!({ "metadata": { "annotations": { key: value } } });
        objects::change(&self.nodes(), &self.node_name(short), body).await;
    }

    pub async fn on_host(&self, namespace: &str, name: &str, key: &str) -> Option<String> {
        let host = self.hosts(namespace).get(name).await.unwrap();
        host.annotations().get(key).cloned()
    }

    /// The Events about a schedule, as `(type, reason)`.
    pub async fn said(&self, namespace: &str, name: &str) -> Vec<(String, String)> {
        let said = self.events_about(namespace, name).await.into_iter();
        said.map(|event| {
            (
                event.type_.unwrap_or_default(),
                event.reason.unwrap_or_default(),
            )
        })
        .collect()
    }

    async fn events_about(&self, namespace: &str, name: &str) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        events.list(&about).await.unwrap().items
    }

    /// Somebody else puts an Event of their own in the place of each one about a schedule.
    pub async fn take_event_names(&self, namespace: &str, name: &str) {
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let message = Patch::Merge(json!({ "message": "somebody else's" }));
        for event in self.events_about(namespace, name).await {
            events
                .patch(&event.name_any(), &PatchParams::default(), &message)
                .await
                .unwrap();
        }
    }

    /// Waits until `seen` is true.
    pub async fn until<F: Future<Output = bool>>(&self, what: &str, seen: impl Fn() -> F) {
        until(what, seen).await;
    }

    /// Deletes what other cases' leaders would find.
    pub async fn end(&self) {
        for namespace in [&self.home, &self.racks] {
            let schedules = self.schedules(namespace);
            for schedule in schedules.list(&ListParams::default()).await.unwrap() {
                self.delete(namespace, &schedule.name_any()).await;
            }
        }
        let kinds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        if kinds.get_opt(CRD_NAME).await.unwrap().is_some() {
            let params = DeleteParams::default();
            kinds.delete(CRD_NAME, &params).await.unwrap();
            self.until("the kind is gone", || async {
                kinds.get_opt(CRD_NAME).await.unwrap().is_none()
                    && self.reboots().list(&ListParams::default()).await.is_err()
            })
            .await;
        }
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub fn schedules(&self, namespace: &str) -> Api<RebootSchedule> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub fn hosts(&self, namespace: &str) -> Api<DynamicObject> {
        objects::objects(&self.client, namespace, HOST)
    }
}
