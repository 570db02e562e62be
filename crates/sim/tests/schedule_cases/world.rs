//! A cluster with nodes, hosts and schedules, and leaders that run them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_api::reboot_schedule::{Occurrence, RebootSchedule, RebootScheduleStatus};
use dogwatch_controller::board::Board;
use dogwatch_controller::cluster::Cluster;
use dogwatch_controller::leader::Leadership;
use dogwatch_controller::metrics::Metrics;
use dogwatch_controller::{Context, Stop, Stopper, schedule};
use dogwatch_core::Now;
use dogwatch_core::leader::Term;
use dogwatch_process::clock::Clock;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event, Namespace, Node};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_millis(50);

/// One server, Dogwatch's namespace, and one more with hosts.
pub struct World {
    pub client: Client,
    /// What leaders reach the API server with.
    pub leading: Client,
    /// Dogwatch's.
    pub home: String,
    /// Another one.
    pub racks: String,
    pub clock: Clock,
}

/// A process that leads, until it is dropped: killed.
pub struct Leader {
    task: JoinHandle<()>,
    pub metrics: Metrics,
    _told: (watch::Sender<Option<Term>>, Stopper),
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl World {
    pub async fn on(client: Client, clock: Clock) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let home = format!("schedules-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let world = Self {
            leading: client.clone(),
            racks: format!("{home}-racks"),
            client,
            home,
            clock,
        };
        let namespaces: Api<Namespace> = Api::all(world.client.clone());
        for name in [&world.home, &world.racks] {
            let object = json!({ "metadata": { "name": name } });
            let object = serde_json::from_value(object).unwrap();
            namespaces
                .create(&PostParams::default(), &object)
                .await
                .unwrap();
        }
        world.install_the_kinds().await;
        world
    }

    async fn install_the_kinds(&self) {
        let kinds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for kind in [
            dogwatch_api::bare_metal_host::crd(),
            dogwatch_api::reboot_schedule::crd(),
        ] {
            let kind = serde_json::from_value(kind).unwrap();
            // It may be there.
            let _: kube::Result<_> = kinds.create(&PostParams::default(), &kind).await;
        }
        self.until("the kinds are served", || async {
            let everything = ListParams::default();
            let schedules = self.schedules(&self.home).list(&everything).await.is_ok();
            schedules && self.hosts(&self.home).list(&everything).await.is_ok()
        })
        .await;
    }

    /// A process that leads from now on.
    pub fn leader(&self) -> Leader {
        let (terms, leadership) = Leadership::new(self.clock.clone());
        let far = Now {
            wall: Timestamp::MAX,
            mono: Duration::from_hours(100_000),
        };
        terms.send_replace(Some(Term {
            number: 1,
            until: far,
        }));
        let (_, cluster) = Cluster::new();
        let (stopper, stop) = Stop::new();
        let metrics = Metrics::default();
        let context = Context {
            client: self.leading.clone(),
            namespace: self.home.clone(),
            clock: self.clock.clone(),
            flags: dogwatch_core::reboot::Config::default(),
            process: "test".into(),
            leadership,
            cluster,
            board: Board::new(metrics.clone()),
            metrics: metrics.clone(),
            stop,
        };
        Leader {
            task: tokio::spawn(schedule::run(context)),
            metrics,
            _told: (terms, stopper),
        }
    }

    /// A whole second from now.
    pub fn at(&self, ahead: SignedDuration) -> Timestamp {
        let at = self.clock.now().wall + ahead;
        Timestamp::from_second(at.as_second()).unwrap()
    }

    /// So far ahead that what a test prepares is there in time.
    pub fn soon(&self) -> Timestamp {
        self.at(SignedDuration::from_secs(8))
    }

    pub fn node_name(&self, short: &str) -> String {
        format!("{}-{short}", self.home)
    }

    pub async fn make_node(&self, short: &str, annotations: &Value) {
        let node = json!({ "metadata": { "name": self.node_name(short),
            "labels": { "pool": self.home }, "annotations": annotations } });
        let node: Node = serde_json::from_value(node).unwrap();
        self.nodes()
            .create(&PostParams::default(), &node)
            .await
            .unwrap();
    }

    pub async fn make_host(&self, namespace: &str, name: &str, annotations: &Value) {
        let host = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": name, "annotations": annotations }, "spec": { "online": true },
        });
        let host = serde_json::from_value(host).unwrap();
        self.hosts(namespace)
            .create(&PostParams::default(), &host)
            .await
            .unwrap();
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
        let patch = Patch::Merge(json!({ "spec": spec }));
        let params = PatchParams::default();
        self.schedules(namespace)
            .patch(name, &params, &patch)
            .await
            .unwrap();
    }

    pub async fn delete(&self, namespace: &str, name: &str) {
        let params = DeleteParams::default();
        self.schedules(namespace)
            .delete(name, &params)
            .await
            .unwrap();
    }

    pub async fn write_status(&self, name: &str, status: &Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        let params = PatchParams::default();
        let schedules = self.schedules(&self.home);
        schedules.patch_status(name, &params, &patch).await.unwrap();
    }

    pub async fn status(&self, namespace: &str, name: &str) -> RebootScheduleStatus {
        let schedule = self.schedules(namespace).get(name).await.unwrap();
        schedule.status.unwrap_or_default()
    }

    /// Waits until so many past occurrences are recorded.
    pub async fn records(&self, namespace: &str, name: &str, count: usize) -> Vec<Occurrence> {
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

    /// The node's coordinator has rebooted it: the request is gone.
    pub async fn serve(&self, short: &str) {
        self.annotate(short, "dogwatch.dev/reboot-requested", &Value::Null)
            .await;
    }

    pub async fn annotate(&self, short: &str, key: &str, value: &Value) {
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { key: value } } }));
        let params = PatchParams::default();
        let name = self.node_name(short);
        self.nodes().patch(&name, &params, &patch).await.unwrap();
    }

    pub async fn on_host(&self, namespace: &str, name: &str, key: &str) -> Option<String> {
        let host = self.hosts(namespace).get(name).await.unwrap();
        host.annotations().get(key).cloned()
    }

    /// What is said about a schedule, as `(type, reason)`.
    pub async fn said(&self, namespace: &str, name: &str) -> Vec<(String, String)> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let about = format!("involvedObject.name={name}");
        let all = events
            .list(&ListParams::default().fields(&about))
            .await
            .unwrap();
        let said = all.items.into_iter();
        said.map(|event| {
            (
                event.type_.unwrap_or_default(),
                event.reason.unwrap_or_default(),
            )
        })
        .collect()
    }

    /// Waits for what is to be observed.
    pub async fn until<F: Future<Output = bool>>(&self, what: &str, seen: impl Fn() -> F) {
        let deadline = Instant::now() + PATIENCE;
        while !seen().await {
            assert!(Instant::now() < deadline, "never: {what}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Takes away what other cases' leaders would find.
    pub async fn end(&self) {
        for namespace in [&self.home, &self.racks] {
            let schedules = self.schedules(namespace);
            for schedule in schedules.list(&ListParams::default()).await.unwrap() {
                self.delete(namespace, &schedule.name_any()).await;
            }
        }
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub fn schedules(&self, namespace: &str) -> Api<RebootSchedule> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub fn hosts(&self, namespace: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("metal3.io", "v1alpha1", "BareMetalHost");
        let resource = ApiResource::from_gvk_with_plural(&kind, "baremetalhosts");
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }
}
