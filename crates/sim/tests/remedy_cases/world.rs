//! Machines, Nodes and requests for the hosts of [`power_cases`](crate::power_cases). Each Node has
//! a kubelet that runs while its machine does. Processes control power and remediate.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dogwatch_api::power_remediation;
use dogwatch_controller::power::{self, HostRegistry};
use dogwatch_controller::remediation::{self, RemediationRegistry};
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot;
use dogwatch_core::remediation::RemediationConfig;
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_k8s::workload_cluster::KubeconfigSecret;
use dogwatch_kubesim::machine::{MachineSpec, SimMachine};
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::{KubeletConfig, KubeletHandle, SimulatedKubelet};
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_sim::bmc::{BmcSpec, SimBmc};
use dogwatch_testbed::fixtures;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::power_cases::assert_cycled_once;
use crate::power_cases::world::World as Metal;
use crate::support::leader::Leader;
use crate::support::objects::{self, OPENSHIFT, REQUEST};

pub const NEED: &str = "host.metal3.io/external-remediation";
pub const KEY: &str = "reboot.metal3.io/machine-remediation";

/// One API server, one namespace, its hosts and their Nodes.
pub struct World {
    pub metal: Metal,
    pub config: RemediationConfig,
    /// The cluster of the Nodes.
    pub node_client: Client,
    /// Dogwatch's namespace.
    pub home: String,
    /// Nodes are in workload clusters.
    pub workload: Option<KubeconfigSecret>,
    kubelets: Mutex<BTreeMap<String, KubeletHandle>>,
}

/// A process that leads; dropping it kills it.
pub struct Process {
    pub leader: Leader,
    pub clock: ProcessClock,
    pub board: RemediationRegistry,
}

/// A host whose machine runs a Node.
pub struct Member {
    pub short: String,
    pub bmc: SimBmc,
    /// UID of the first Node.
    pub uid: String,
}

impl Member {
    /// Checks that the machine was switched off once and on once.
    #[track_caller]
    pub fn assert_cycled_once(&self) {
        assert_cycled_once(&self.bmc);
    }
}

impl World {
    pub async fn on(metal: Metal) -> Self {
        let world = Self {
            node_client: metal.client.clone(),
            home: metal.namespace.clone(),
            metal,
            config: RemediationConfig::default(),
            workload: None,
            kubelets: Mutex::default(),
        };
        world.install().await;
        world
    }

    async fn install(&self) {
        let kinds = [
            power_remediation::remediation_crd(),
            fixtures::openshift_machines(),
            fixtures::metal3_machines(),
        ];
        objects::install(&self.metal.client, kinds).await;
        self.until("the kinds are served", || async {
            let everything = ListParams::default();
            let machines = self.machines().list(&everything).await.is_ok();
            machines && self.requests().list(&everything).await.is_ok()
        })
        .await;
    }

    pub fn machines(&self) -> Api<DynamicObject> {
        objects::objects(&self.metal.client, &self.metal.namespace, OPENSHIFT)
    }

    pub fn requests(&self) -> Api<DynamicObject> {
        objects::objects(&self.metal.client, &self.metal.namespace, REQUEST)
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.node_client.clone())
    }

    pub fn node_name(&self, short: &str) -> NodeName {
        NodeName::new(format!("{}-{short}", self.metal.namespace)).unwrap()
    }

    /// A member with a Machine that is not marked.
    pub async fn member(&self, short: &str) -> Member {
        let member = self.host(short, &json!({})).await;
        self.machine(short).await;
        member
    }

    /// A member without a Machine: the host names the Node that it carries.
    pub async fn named_member(&self, short: &str) -> Member {
        let name = self.node_name(short);
        let names = json!({ "dogwatch.dev/node": name.as_str() });
        self.host(short, &names).await
    }

    /// A host whose Node is Ready. `annotations` are the host's.
    pub async fn host(&self, short: &str, annotations: &Value) -> Member {
        let name = self.node_name(short);
        let clock = Arc::clone(&self.metal.clock) as Arc<dyn dogwatch_kubesim::clock::ClusterClock>;
        let config = KubeletConfig::new(name.clone(), SimulationSeed(7), Arc::clone(&clock));
        let kubelet = SimulatedKubelet::start_machine(self.node_client.clone(), config);
        let mut machine = MachineSpec::new(short, SimulationSeed(7), Arc::clone(&clock));
        machine.boots_after = self.metal.config.confirm;
        let machine = SimMachine::under_kubelet(&kubelet, machine);
        let bmc = SimBmc::for_machine(BmcSpec::new(short, SimulationSeed(7), clock), machine);
        self.metal.park.add_bmc(bmc.clone());
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
        Member {
            short: short.to_owned(),
            bmc,
            uid: self.node_uid(short).await,
        }
    }

    /// A Machine that is linked to the host and the Node of its name.
    async fn machine(&self, short: &str) {
        let host = format!("{}/{short}", self.metal.namespace);
        let machine = json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": { "name": short, "annotations": { "metal3.io/BareMetalHost": host } },
            "spec": {},
        });
        objects::create(&self.machines(), machine).await;
        let node = self.node_name(short);
        let status = json!({ "nodeRef": { "kind": "Node", "name": node.as_str() } });
        objects::change_status(&self.machines(), short, status).await;
    }

    /// `None` removes the mark.
    pub async fn mark_machine(&self, short: &str, value: Option<&str>) {
        let body = json!({ "metadata": { "annotations": { NEED: value } } });
        objects::change(&self.machines(), short, body).await;
    }

    pub async fn mark_node(&self, short: &str) {
        self.change_node(
            short,
            json!({ "metadata": { "annotations": { NEED: "" } } }),
        )
        .await;
    }

    pub async fn change_node(&self, short: &str, body: Value) {
        objects::change(&self.nodes(), self.node_name(short).as_str(), body).await;
    }

    pub async fn request(&self, short: &str, kind: &str) {
        let node = self.node_name(short);
        let request = json!({
            "apiVersion": power_remediation::API_VERSION, "kind": power_remediation::KIND,
            "metadata": { "name": short,
                "annotations": { "remediation.medik8s.io/node-name": node.as_str() } },
            "spec": { "strategy": { "type": kind, "timeout": "10m" } },
        });
        objects::create(&self.requests(), request).await;
    }

    pub async fn node(&self, short: &str) -> Option<Node> {
        let name = self.node_name(short);
        self.nodes().get_opt(name.as_str()).await.unwrap()
    }

    pub async fn node_uid(&self, short: &str) -> String {
        self.node(short).await.unwrap().uid().unwrap()
    }

    /// Kills the kubelet, and sets the Node's condition as the node controller does.
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

    /// Waits until [`Self::is_back`].
    pub async fn until_back(&self, member: &Member) {
        let what = format!("{} is back", member.short);
        self.until(&what, || self.is_back(member)).await;
    }

    /// Whether another Node of its name is Ready, and nothing of ours is left on it or its host.
    pub async fn is_back(&self, member: &Member) -> bool {
        let Some(node) = self.node(&member.short).await else {
            return false;
        };
        let is_new = node.uid().as_ref() != Some(&member.uid);
        is_new && is_ready(&node) && self.is_clean(member).await
    }

    /// Whether nothing of ours is left on host, Node and Lease, and the host is on.
    pub async fn is_clean(&self, member: &Member) -> bool {
        let short = &member.short;
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
            && self.kept(short).await.is_none()
            && member.bmc.machine().power_state().running_boot().is_some()
    }

    /// The backup of this member's Node.
    pub async fn kept(&self, short: &str) -> Option<ConfigMap> {
        let host = self.metal.read(short).await;
        let name = format!("node-backup-{}", host.uid);
        self.backups().get_opt(&name).await.unwrap()
    }

    pub fn backups(&self) -> Api<ConfigMap> {
        Api::namespaced(self.metal.client.clone(), &self.home)
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.node_client.clone(), &self.home)
    }

    fn lease_name(&self, short: &str) -> String {
        format!("dogwatch-remedy-{}", self.node_name(short))
    }

    /// The group in the record on the held Lease of this member's Node.
    pub async fn group_in_lease(&self, short: &str) -> Option<String> {
        let lease = self.leases().get(&self.lease_name(short)).await.unwrap();
        let record = &lease.annotations()["dogwatch.dev/holder"];
        let record: Value = serde_json::from_str(record).unwrap();
        record["group"].as_str().map(str::to_owned)
    }

    pub async fn delete_lease(&self, short: &str) {
        let (name, params) = (self.lease_name(short), DeleteParams::default());
        self.leases().delete(&name, &params).await.unwrap();
    }

    pub async fn is_leased(&self, short: &str) -> bool {
        let name = self.lease_name(short);
        let lease = self.leases().get_opt(&name).await.unwrap();
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

    /// A process that leads from now on; returns once it controls the power of these members.
    pub async fn process_over(&self, name: &str, members: &[&Member]) -> Process {
        let process = self.process(name);
        for member in members {
            self.metal.until_ready(&member.short).await;
        }
        process
    }

    /// A process that has seen nothing yet.
    pub fn process(&self, name: &str) -> Process {
        let (clock, flags) = (self.metal.wall(), reboot::RebootConfig::default());
        let leading = &self.metal.leading;
        let (mut leader, mut context, showing) = Leader::new(leading, &self.home, &clock, &flags);
        context.process = name.into();
        let (power, board) = (HostRegistry::default(), RemediationRegistry::default());
        let remediation = remediation::RemediationSettings {
            config: self.config.clone(),
            power: power.clone(),
            power_config: self.metal.config,
            board: board.clone(),
            workload: self.workload,
        };
        leader.run(showing.publish_watched_views(ClusterWatch::new(
            leading.clone(),
            &self.home,
            || 0.5,
        )));
        leader.run(power::run_power_controller(
            context.clone(),
            self.metal.settings(&power),
        ));
        leader.run(remediation::run_remediation(context, remediation));
        Process {
            leader,
            clock,
            board,
        }
    }

    pub async fn until<F: Future<Output = bool>>(&self, what: &str, seen: impl Fn() -> F) {
        self.metal.until(what, seen).await;
    }

    /// Deletes everything, so that no other case's process finds it.
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
