//! A control plane with the shipped rights and policies, a Node with a kubelet, and its host.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_kubesim::clock::{ClusterClock, TokioClock};
use dogwatch_kubesim::machine::{MachineSpec, SimMachine};
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::kubelet::MachinePower;
use dogwatch_kubesim::world::{KubeletConfig, KubeletHandle, SimulatedKubelet};
use dogwatch_sim::bmc::{BmcSpec, SimBmc};
use dogwatch_testbed::{AuditEntry, fixtures};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::form::Form;
use super::hand::Hand;
use crate::metal::{account, apply, metal, put, put_host, served};
use crate::recount::RecountedPlane;
use crate::support::{Controller, eventually};

/// Flags of a controller that need not wait long for a BMC.
pub const QUICK_POWER: [&str; 4] = [
    "--listen=127.0.0.1:0",
    "--power-confirm-interval=1s",
    "--power-settle=3s",
    "--power-poll-interval=5s",
];
pub const LEADS: &str = "became the leader";
pub const NODE: &str = "/api/v1/nodes/worker-0";
const NEED: &str = "host.metal3.io/external-remediation";
const ACCOUNT: &str = "system:serviceaccount:dogwatch:dogwatch-controller";
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
const HOSTS: &str = "/apis/metal3.io/v1alpha1/namespaces/metal/baremetalhosts";
const MACHINES: &str = "/apis/machine.openshift.io/v1beta1/namespaces/metal/machines";
const REQUESTS: &str = "/apis/dogwatch.dev/v1alpha1/namespaces/metal/powerremediations";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/dogwatch/leases";
const ROLE: &str = include_str!("../../../../../deploy/remediation/rbac.yaml");

pub struct Stage {
    pub plane: RecountedPlane,
    pub kubelet: KubeletHandle,
    pub hand: Hand,
    clock: Arc<dyn ClusterClock>,
    kubeconfig: PathBuf,
    form: Form,
}

impl Stage {
    /// The Node is Ready; it has no host yet.
    pub async fn new(form: Form) -> Self {
        let plane = metal().await;
        for manifests in [&fixtures::openshift_machines().to_string(), ROLE] {
            apply(&plane, manifests).await;
        }
        let client = dogwatch_k8s::connect::connect_by_kubeconfig(plane.admin_kubeconfig()).await;
        let client = client.unwrap();
        let clock: Arc<dyn ClusterClock> = Arc::new(TokioClock::starting_at(Timestamp::now()));
        let config = KubeletConfig::new("worker-0", SimulationSeed(1), Arc::clone(&clock));
        let stage = Self {
            kubelet: SimulatedKubelet::start_machine(client.clone(), config),
            hand: Hand(client),
            clock,
            kubeconfig: account(&plane).await,
            plane,
            form,
        };
        eventually(|| stage.is_ready()).await;
        let label = json!({ "metadata": { "labels": { "rack": "r1" } } });
        stage.hand.merge(NODE, &label).await;
        stage
    }

    /// Creates the host with the BMC at this address, linked as the form needs it.
    pub async fn put_host(&self, address: &str) {
        put_host(&self.plane, address).await;
        match self.form {
            Form::Machine => self.put_machine().await,
            Form::Node | Form::Delete | Form::Taint => {
                let carries = json!({ "dogwatch.dev/node": "worker-0" });
                let carries = json!({ "metadata": { "annotations": carries } });
                self.hand.merge(&format!("{HOSTS}/h0"), &carries).await;
            }
        }
    }

    async fn put_machine(&self) {
        let machine = json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": { "name": "m0", "namespace": "metal",
                "annotations": { "metal3.io/BareMetalHost": "metal/h0" } },
            "spec": {} });
        put(&self.plane, &machine).await;
        let node = json!({ "status": { "nodeRef": { "kind": "Node", "name": "worker-0" } } });
        let status = format!("{MACHINES}/m0/status");
        self.hand.merge(&status, &node).await;
    }

    /// Requests the remediation as a health check does.
    pub async fn ask(&self) {
        let need = json!({ "metadata": { "annotations": { NEED: "" } } });
        let strategy = match self.form {
            Form::Machine => return self.hand.merge(&format!("{MACHINES}/m0"), &need).await,
            Form::Node => return self.hand.merge(NODE, &need).await,
            Form::Delete => "DeleteNode",
            Form::Taint => "OutOfServiceTaint",
        };
        self.kubelet_dies().await;
        let request = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "PowerRemediation",
            "metadata": { "name": "worker-0", "namespace": "metal" },
            "spec": { "strategy": { "type": strategy, "timeout": "1h" } } });
        put(&self.plane, &request).await;
    }

    /// Stops the kubelet while its machine runs on; the node controller marks the Node.
    pub async fn kubelet_dies(&self) {
        let mut kubelet = self.kubelet.watch_power();
        self.kubelet.kill_kubelet();
        kubelet
            .wait_for(|it| *it == MachinePower::Off)
            .await
            .unwrap();
        let node = self.node().await;
        let conditions = node["status"]["conditions"].as_array().unwrap();
        let unknown = |condition: &Value| {
            let mut condition = condition.clone();
            if condition["type"] == "Ready" {
                condition["status"] = "Unknown".into();
            }
            condition
        };
        let conditions: Vec<Value> = conditions.iter().map(unknown).collect();
        let status = json!({ "status": { "conditions": conditions } });
        self.hand.merge(&format!("{NODE}/status"), &status).await;
    }

    /// Takes part in the leader election; the leader controls power and remediates.
    pub fn controller(&self) -> Controller {
        let flags = [&["--components=power,remediation"], &QUICK_POWER[..]].concat();
        Controller::with(&self.kubeconfig, &flags)
    }

    /// Frees the leader Lease as its holder would, so that nobody waits until it expires.
    pub async fn free_the_lead(&self) {
        let free = json!({ "spec": { "holderIdentity": null, "leaseDurationSeconds": 1 } });
        let lease = format!("{LEASES}/controller.dogwatch.dev");
        self.hand.merge(&lease, &free).await;
    }

    pub async fn host(&self) -> Value {
        self.hand.get(&format!("{HOSTS}/h0")).await
    }

    pub async fn node(&self) -> Value {
        self.hand.get(NODE).await
    }

    pub async fn is_ready(&self) -> Result<(), String> {
        let node = self.node().await;
        has(&node, "Ready").then_some(()).ok_or(node.to_string())
    }

    pub async fn is_controlled(&self) -> Result<(), String> {
        let host = self.host().await;
        let is = has(&host, "PowerControlReady");
        is.then_some(()).ok_or(host.to_string())
    }

    async fn is_leased(&self) -> bool {
        let lease = format!("{LEASES}/dogwatch-remedy-worker-0");
        let lease = self.hand.get(&lease).await;
        let holder = lease["spec"]["holderIdentity"].as_str();
        holder.is_some_and(|holder| !holder.is_empty())
    }

    /// Succeeds once the node that was `old` is back, and only the record of the remediation is
    /// left.
    pub async fn is_over(&self, old: &Value) -> Result<(), String> {
        let (host, node) = (self.host().await, self.node().await);
        let annotations = &host["metadata"]["annotations"];
        let names = annotations.as_object().into_iter().flatten();
        let mut ours = names.filter(|(name, _)| {
            name.starts_with("reboot.metal3.io") || *name == "dogwatch.dev/node-backup"
        });
        let record = annotations["dogwatch.dev/remediation"].as_str();
        let has_ended = record.is_some_and(|record| record.contains("NodeReady"));
        let uid = |node: &Value| node["metadata"]["uid"].clone();
        let boot = |node: &Value| node["status"]["nodeInfo"]["bootID"].clone();
        let is_back = (uid(&node) == uid(old)) == self.form.taints()
            && boot(&node) != boot(old)
            && node["metadata"]["labels"]["rack"] == "r1"
            && has(&node, "Ready");
        let is_clean = ours.next().is_none()
            && node["metadata"]["annotations"]["dogwatch.dev/fencing"].is_null()
            && tainted_at(&node).is_none();
        let is = has_ended && is_back && is_clean && !self.is_leased().await;
        let is = is && host["status"]["poweredOn"] == true && self.is_answered().await;
        is.then_some(()).ok_or(format!("{host} {node}"))
    }

    /// Whether the requester can see that the remediation is done.
    async fn is_answered(&self) -> bool {
        match self.form {
            Form::Machine => {
                let machine = self.machine().await;
                machine["metadata"]["annotations"][NEED].is_null()
            }
            Form::Node => true,
            Form::Delete | Form::Taint => has(&self.request().await, "Succeeded"),
        }
    }

    pub async fn machine(&self) -> Value {
        self.hand.get(&format!("{MACHINES}/m0")).await
    }

    async fn request(&self) -> Value {
        self.hand.get(&format!("{REQUESTS}/worker-0")).await
    }

    pub async fn delete_request(&self) {
        self.hand.delete(&format!("{REQUESTS}/worker-0")).await;
    }

    pub async fn request_is_gone(&self) -> Result<(), String> {
        let request = self.request().await;
        request.is_null().then_some(()).ok_or(request.to_string())
    }

    pub async fn nothing_was_refused(&self) {
        let asked = self.asked().await;
        let refused = asked.iter().find(|entry| entry.code == 403);
        assert!(refused.is_none(), "{refused:?}");
    }

    /// The number of Node deletions that the API server has carried out.
    pub async fn deletions(&self) -> usize {
        let mut asked = self.asked().await;
        asked.retain(|entry| entry.verb == "delete" && entry.resource == "nodes");
        asked.retain(|entry| entry.code == 200);
        asked.len()
    }

    /// The controllers' calls, in the order of the answers.
    pub async fn asked(&self) -> Vec<AuditEntry> {
        let mut entries = self.plane.audit_entries().await.unwrap();
        entries.retain(|entry| entry.user == ACCOUNT);
        entries
    }

    /// Calls `changed` with the time of Dogwatch's taint, each time that it changes.
    pub async fn watch_taint(&self, mut changed: impl FnMut(Option<String>)) {
        let mut last = None;
        loop {
            let now = tainted_at(&self.node().await);
            if now != last {
                changed(now.clone());
                last = now;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// `timeAdded` of the out-of-service taint.
fn tainted_at(node: &Value) -> Option<String> {
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let taint = taints.find(|taint| taint["key"] == OUT_OF_SERVICE)?;
    Some(taint["timeAdded"].to_string())
}

/// Whether this condition of the object is True.
fn has(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == condition && it["status"] == "True")
}

/// A BMC on loopback, and its address.
pub struct Simulated {
    pub bmc: SimBmc,
    pub address: String,
}

/// Puts a machine with a BMC under this stage's kubelet.
pub async fn simulated_bmc(stage: &Stage) -> Simulated {
    let clock = &stage.clock;
    let mut spec = MachineSpec::new("h0", SimulationSeed(1), Arc::clone(clock));
    spec.boots_after = Duration::from_secs(1);
    let bmc = SimBmc::for_machine(
        BmcSpec::new("h0", SimulationSeed(1), Arc::clone(clock)),
        SimMachine::under_kubelet(&stage.kubelet, spec),
    );
    let address = served(&bmc).await;
    Simulated { bmc, address }
}
