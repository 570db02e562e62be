//! Machines, Nodes and requests over the hosts of [`power_cases`](crate::power_cases), each Node under a
//! kubelet that lives while its machine does, and processes that keep power and remediate.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use dogwatch_api::power_remediation;
use dogwatch_controller::board::Board;
use dogwatch_controller::cluster::Cluster;
use dogwatch_controller::leader::Leadership;
use dogwatch_controller::metrics::Metrics;
use dogwatch_controller::power::{self, PowerBoard};
use dogwatch_controller::remedy::{self, RemediationBoard};
use dogwatch_controller::{Context, Stop, Stopper};
use dogwatch_core::leader::Term;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot;
use dogwatch_core::remedy::Config;
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_process::clock::Clock;
use dogwatch_sim::bmc::{BmcSpec, Machine, MachineSpec, SimBmc};
use dogwatch_sim::clock::Clock as _;
use dogwatch_sim::seed::Seed;
use dogwatch_sim::world::{Kubelet, KubeletConfig, KubeletHandle};
use dogwatch_testbed::fixtures;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::power_cases::world::{World as Metal, term};

pub const NEED: &str = "host.metal3.io/external-remediation";
pub const KEY: &str = "reboot.metal3.io/machine-remediation";

/// One API server, one namespace, its hosts and what runs on them.
pub struct World {
    pub metal: Metal,
    pub config: Config,
    /// Where Dogwatch lives.
    pub home: String,
    kubelets: Mutex<BTreeMap<String, KubeletHandle>>,
}

/// A process that leads; dropped, it is killed.
pub struct Process {
    tasks: Vec<JoinHandle<()>>,
    pub terms: watch::Sender<Option<Term>>,
    pub clock: Clock,
    /// Dropped, it would tell the process to stop.
    _stopper: Stopper,
    pub board: RemediationBoard,
    pub metrics: Metrics,
}

impl Drop for Process {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl World {
    pub async fn on(metal: Metal) -> Self {
        let world = Self {
            home: metal.namespace.clone(),
            metal,
            config: Config::default(),
            kubelets: Mutex::default(),
        };
        world.install().await;
        world
    }

    async fn install(&self) {
        let kinds: Api<CustomResourceDefinition> = Api::all(self.metal.client.clone());
        for kind in [
            power_remediation::crd(),
            fixtures::openshift_machines(),
            fixtures::metal3_machines(),
        ] {
            let kind: CustomResourceDefinition = serde_json::from_value(kind).unwrap();
            // Another case may have installed it.
            let _: kube::Result<_> = kinds.create(&PostParams::default(), &kind).await;
        }
        self.until("the kinds are served", || async {
            let everything = ListParams::default();
            let machines = self.machines().list(&everything).await.is_ok();
            machines && self.requests().list(&everything).await.is_ok()
        })
        .await;
    }

    pub fn machines(&self) -> Api<DynamicObject> {
        self.objects("machine.openshift.io", "v1beta1", "Machine", "machines")
    }

    pub fn requests(&self) -> Api<DynamicObject> {
        let (kind, plural) = ("PowerRemediation", "powerremediations");
        self.objects("dogwatch.dev", "v1alpha1", kind, plural)
    }

    fn objects(&self, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let namespace = &self.metal.namespace;
        Api::namespaced_with(self.metal.client.clone(), namespace, &resource)
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.metal.client.clone())
    }

    pub fn node_name(&self, short: &str) -> NodeName {
        NodeName::new(format!("{}-{short}", self.metal.namespace)).unwrap()
    }

    /// A host whose machine runs a Ready Node. `annotations` are the host's.
    pub async fn host(&self, short: &str, annotations: &Value) -> SimBmc {
        let name = self.node_name(short);
        let clock = Arc::clone(&self.metal.clock) as Arc<dyn dogwatch_sim::clock::Clock>;
        let config = KubeletConfig::new(name.clone(), Seed(7), Arc::clone(&clock));
        let kubelet = Kubelet::start(self.metal.client.clone(), config);
        let mut machine = MachineSpec::new(short, Seed(7), Arc::clone(&clock));
        machine.boots_after = self.metal.config.confirm;
        let machine = Machine::under(&kubelet, machine);
        let bmc = SimBmc::of(BmcSpec::new(short, Seed(7), clock), machine);
        self.metal.park.add(bmc.clone());
        self.kubelets
            .lock()
            .unwrap()
            .insert(short.to_owned(), kubelet);
        let more = json!({ "metadata": { "annotations": annotations } });
        self.metal.put_host(short, &more).await;
        self.until("its Node is Ready", || async {
            self.node(short).await.is_some_and(|node| is_ready(&node))
        })
        .await;
        bmc
    }

    /// A Machine that is linked to the host and the Node of its name.
    pub async fn machine(&self, short: &str) {
        let host = format!("{}/{short}", self.metal.namespace);
        let machine = json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": { "name": short, "annotations": { "metal3.io/BareMetalHost": host } },
            "spec": {},
        });
        let machine: DynamicObject = serde_json::from_value(machine).unwrap();
        let params = PostParams::default();
        self.machines().create(&params, &machine).await.unwrap();
        let node = self.node_name(short);
        let body = json!({ "status": { "nodeRef": { "kind": "Node", "name": node.as_str() } } });
        let (params, body) = (PatchParams::default(), Patch::Merge(body));
        self.machines()
            .patch_status(short, &params, &body)
            .await
            .unwrap();
    }

    /// `None` takes it away.
    pub async fn mark_machine(&self, short: &str, value: Option<&str>) {
        let body = json!({ "metadata": { "annotations": { NEED: value } } });
        let (params, body) = (PatchParams::default(), Patch::Merge(body));
        self.machines().patch(short, &params, &body).await.unwrap();
    }

    pub async fn mark_node(&self, short: &str) {
        self.change_node(
            short,
            json!({ "metadata": { "annotations": { NEED: "" } } }),
        )
        .await;
    }

    pub async fn change_node(&self, short: &str, body: Value) {
        let name = self.node_name(short);
        let (params, body) = (PatchParams::default(), Patch::Merge(body));
        self.nodes()
            .patch(name.as_str(), &params, &body)
            .await
            .unwrap();
    }

    /// A request for the Node of this name.
    pub async fn request(&self, short: &str, kind: &str) {
        let node = self.node_name(short);
        let request = json!({
            "apiVersion": power_remediation::API_VERSION, "kind": power_remediation::KIND,
            "metadata": { "name": short,
                "annotations": { "remediation.medik8s.io/node-name": node.as_str() } },
            "spec": { "strategy": { "type": kind, "timeout": "10m" } },
        });
        let request: DynamicObject = serde_json::from_value(request).unwrap();
        let params = PostParams::default();
        self.requests().create(&params, &request).await.unwrap();
    }

    pub async fn node(&self, short: &str) -> Option<Node> {
        let name = self.node_name(short);
        self.nodes().get_opt(name.as_str()).await.unwrap()
    }

    pub async fn node_uid(&self, short: &str) -> String {
        self.node(short).await.unwrap().uid().unwrap()
    }

    /// Its kubelet is taken for dead, as the node controller says it.
    pub async fn kubelet_dies(&self, short: &str) {
        let name = self.node_name(short);
        let at = "2025-12-31T00:00:00Z";
        let body = json!({ "status": { "conditions": [{
            "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "",
            "lastHeartbeatTime": at, "lastTransitionTime": at }] } });
        let (params, body) = (PatchParams::default(), Patch::Strategic(body));
        self.nodes()
            .patch_status(name.as_str(), &params, &body)
            .await
            .unwrap();
    }

    pub async fn machine_needs(&self, short: &str) -> bool {
        let machine = self.machines().get(short).await.unwrap();
        machine.annotations().contains_key(NEED)
    }

    /// Another Node of this name is Ready, and nothing of ours is left on it or its host.
    pub async fn is_back(&self, short: &str, old_uid: &str, bmc: &SimBmc) -> bool {
        let Some(node) = self.node(short).await else {
            return false;
        };
        let is_new = node.uid().as_deref() != Some(old_uid);
        is_new && is_ready(&node) && self.is_clean(short, bmc).await
    }

    /// Nothing of ours is left on host, Node and Lease, and the host is on.
    pub async fn is_clean(&self, short: &str, bmc: &SimBmc) -> bool {
        let host = self.metal.read(short).await;
        let mut annotations = host.annotations.keys();
        let has_ours = annotations
            .any(|name| name.starts_with("reboot.metal3.io") || name == "dogwatch.dev/node-backup");
        let node = self.node(short).await;
        let is_fenced =
            node.is_some_and(|node| node.annotations().contains_key("dogwatch.dev/fencing"));
        !has_ours
            && !is_fenced
            && !self.is_leased(short).await
            && bmc.machine().state().living().is_some()
    }

    async fn is_leased(&self, short: &str) -> bool {
        let leases: Api<Lease> = Api::namespaced(self.metal.client.clone(), &self.metal.namespace);
        let name = format!("dogwatch-remedy-{}", self.node_name(short));
        let lease = leases.get_opt(&name).await.unwrap();
        let holder = lease.and_then(|lease| lease.spec?.holder_identity);
        holder.is_some_and(|holder| !holder.is_empty())
    }

    pub async fn said(&self) -> Vec<Event> {
        let events: Api<Event> = Api::all(self.metal.client.clone());
        let all = events.list(&ListParams::default()).await.unwrap().items;
        let is_its = |event: &Event| {
            let about = &event.involved_object;
            let name = about.name.as_deref().unwrap_or_default();
            about.namespace.as_ref() == Some(&self.metal.namespace)
                || name.starts_with(&self.metal.namespace)
        };
        all.into_iter().filter(is_its).collect()
    }

    /// A process that leads from now on.
    pub fn process(&self, name: &str) -> Process {
        let wall = Arc::clone(&self.metal.clock);
        let clock = Clock::with_wall(move || wall.now());
        let (terms, leadership) = Leadership::new(clock.clone());
        terms.send_replace(Some(term(1)));
        let (showing, cluster) = Cluster::new();
        let (stopper, stop) = Stop::new();
        let (metrics, power) = (Metrics::default(), PowerBoard::default());
        let context = Context {
            client: self.metal.leading.clone(),
            namespace: self.home.clone(),
            clock: clock.clone(),
            flags: reboot::Config::default(),
            process: name.into(),
            leadership,
            cluster,
            metrics: metrics.clone(),
            board: Board::new(metrics.clone()),
            stop,
        };
        let board = RemediationBoard::default();
        let remediation = remedy::Settings {
            config: self.config.clone(),
            power: power.clone(),
            power_config: self.metal.config,
            board: board.clone(),
        };
        let watches = ClusterWatch::new(self.metal.leading.clone(), &self.home, || 0.5);
        let tasks = vec![
            tokio::spawn(showing.run(watches)),
            tokio::spawn(power::run(context.clone(), self.power(&power))),
            tokio::spawn(remedy::run(context, remediation)),
        ];
        Process {
            tasks,
            terms,
            clock,
            _stopper: stopper,
            board,
            metrics,
        }
    }

    fn power(&self, board: &PowerBoard) -> power::Settings {
        power::Settings {
            config: self.metal.config,
            max_concurrent: NonZeroUsize::new(100).unwrap(),
            host_namespaces: BTreeSet::new(),
            connect: self.metal.connect(),
            board: board.clone(),
        }
    }

    pub async fn until<F: Future<Output = bool>>(&self, what: &str, seen: impl Fn() -> F) {
        self.metal.until(what, seen).await;
    }

    /// Takes everything away, so that no other case's process finds it.
    pub async fn end(&self) {
        let params = DeleteParams::default();
        self.metal.end().await;
        for api in [self.machines(), self.requests()] {
            for object in api.list(&ListParams::default()).await.unwrap() {
                let name = object.name_any();
                let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
                let _: kube::Result<_> = api.patch(&name, &PatchParams::default(), &none).await;
                let _: kube::Result<_> = api.delete(&name, &params).await;
            }
        }
        let shorts: Vec<String> = self.kubelets.lock().unwrap().keys().cloned().collect();
        self.kubelets.lock().unwrap().clear();
        for short in shorts {
            let name = self.node_name(&short);
            let _: kube::Result<_> = self.nodes().delete(name.as_str(), &params).await;
        }
    }
}

pub fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    ready.any(|condition| condition.status == "True")
}
