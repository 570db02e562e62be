//! Remediation by real processes over a network, with the rights and policies that are shipped.

use std::path::PathBuf;
use std::sync::Arc;

use dogwatch_core::name::NodeName;
use dogwatch_sim::bmc::{BmcSpec, Machine, MachineSpec, SimBmc};
use dogwatch_sim::clock::{Clock, TokioClock};
use dogwatch_sim::seed::Seed;
use dogwatch_sim::world::{Kubelet, KubeletConfig, KubeletHandle};
use dogwatch_testbed::{ControlPlane, fixtures};
use jiff::Timestamp;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::metal::{PASSWORD, account, apply, host, metal, put, put_host, served};
use crate::support::{Controller, eventually, get};

const LEADS: &str = "leads";
const NEED: &str = "host.metal3.io/external-remediation";
const KEY: &str = "reboot.metal3.io/machine-remediation";
const ACCOUNT: &str = "system:serviceaccount:dogwatch:dogwatch-controller";
const ROLE: &str = include_str!("../../../../deploy/remediation/rbac.yaml");

/// In this order. One that was passed between two looks counts as reached.
const STEPS: [&str; 7] = [
    "the Lease is held",
    "the key is there",
    "off is confirmed",
    "the backup is kept",
    "the Node is gone",
    "the need is gone",
    "the host is on",
];

#[tokio::test]
async fn every_leader_killed_at_the_next_step_of_a_remediation_it_is_one_power_off_and_the_node_back()
 {
    let stage = Stage::new().await;
    let mut leader = stage.controller();
    leader.until(LEADS, 1).await;
    eventually(|| stage.is_controlled()).await;
    let old = stage.node_uid().await.unwrap();
    stage.mark().await;
    for step in STEPS {
        let next = stage.controller();
        next.until("hosts are in sync", 1).await;
        eventually(|| stage.has_come_to(step, &old)).await;
        leader.signal(Signal::KILL);
        next.until(LEADS, 1).await;
        leader = next;
    }
    eventually(|| stage.is_back(&old)).await;
    let log = stage.bmc.machine().log();
    assert_eq!((log.power_offs(), log.power_ons()), (1, 1), "{log}");
    let node = stage.node().await;
    assert_eq!(node["metadata"]["labels"]["rack"], "r1", "{node}");
    assert!(!leader.log().contains(PASSWORD));
    let entries = stage.plane.audit().await.unwrap();
    let mut refused = entries.iter().filter(|entry| entry.code == 403);
    let refused = refused.find(|entry| entry.user == ACCOUNT);
    assert!(refused.is_none(), "{refused:?}");
    leader.signal(Signal::TERM);
    assert!(leader.ended().await.success());
}

struct Stage {
    plane: ControlPlane,
    bmc: SimBmc,
    kubeconfig: PathBuf,
    _kubelet: KubeletHandle,
}

impl Stage {
    async fn new() -> Self {
        let plane = metal().await;
        for manifests in [&fixtures::openshift_machines().to_string(), ROLE] {
            apply(&plane, manifests).await;
        }
        let client = dogwatch_k8s::connect::connect_by(plane.kubeconfig()).await;
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(Timestamp::now()));
        let name = NodeName::new("worker-0").unwrap();
        let config = KubeletConfig::new(name, Seed(1), Arc::clone(&clock));
        let kubelet = Kubelet::start(client.unwrap(), config);
        let (bmc, address) = bmc(&kubelet, clock).await;
        let stage = Self {
            kubeconfig: account(&plane).await,
            plane,
            bmc,
            _kubelet: kubelet,
        };
        stage.put(&address).await;
        stage
    }

    async fn put(&self, address: &str) {
        put_host(&self.plane, address).await;
        let machine = json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
            "metadata": { "name": "m0", "namespace": "metal",
                "annotations": { "metal3.io/BareMetalHost": "metal/h0" } },
            "spec": {} });
        put(&self.plane, &machine).await;
        let node = json!({ "status": { "nodeRef": { "kind": "Node", "name": "worker-0" } } });
        let status = [
            "machine.machine.openshift.io",
            "m0",
            "-n",
            "metal",
            "--subresource=status",
        ];
        self.patch(&status, &node).await;
        eventually(|| self.is_ready()).await;
        let label = json!({ "metadata": { "labels": { "rack": "r1" } } });
        self.patch(&["node", "worker-0"], &label).await;
    }

    async fn patch(&self, what: &[&str], body: &Value) {
        let body = body.to_string();
        let words: Vec<&str> = ["patch"]
            .into_iter()
            .chain(what.iter().copied())
            .chain(["--type=merge", "-p", &body])
            .collect();
        self.plane.run_kubectl(&words, "").await.unwrap();
    }

    async fn mark(&self) {
        let need = json!({ "metadata": { "annotations": { NEED: "" } } });
        let machine = ["machine.machine.openshift.io", "m0", "-n", "metal"];
        self.patch(&machine, &need).await;
    }

    fn controller(&self) -> Controller {
        let flags = [
            "--components=power,remediation",
            "--listen=127.0.0.1:0",
            "--power-confirm-interval=2s",
            "--power-settle=5s",
            "--power-poll-interval=10s",
        ];
        Controller::with(&self.kubeconfig, &flags)
    }

    async fn host(&self) -> Value {
        host(&self.plane).await
    }

    async fn node(&self) -> Value {
        let words = [
            "get",
            "node",
            "worker-0",
            "--ignore-not-found",
            "-o",
            "json",
        ];
        let text = self.plane.run_kubectl(&words, "").await.unwrap();
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    async fn node_uid(&self) -> Option<String> {
        let node = self.node().await;
        node["metadata"]["uid"].as_str().map(str::to_owned)
    }

    async fn is_ready(&self) -> Result<(), String> {
        let node = self.node().await;
        let conditions = node["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let is = conditions.any(|it| it["type"] == "Ready" && it["status"] == "True");
        is.then_some(()).ok_or(node.to_string())
    }

    async fn is_controlled(&self) -> Result<(), String> {
        let host = self.host().await;
        let conditions = host["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let is = conditions.any(|it| it["type"] == "PowerControlReady" && it["status"] == "True");
        is.then_some(()).ok_or(host.to_string())
    }

    async fn is_leased(&self) -> bool {
        let leases = get(&self.plane, &["leases", "-n", "dogwatch"]).await;
        let mut all = leases["items"].as_array().unwrap().iter();
        let is_held = |lease: &&Value| {
            let holder = lease["spec"]["holderIdentity"].as_str();
            holder.is_some_and(|holder| !holder.is_empty())
        };
        let lease = all.find(|it| it["metadata"]["name"] == "dogwatch-remedy-worker-0");
        lease.as_ref().is_some_and(is_held)
    }

    async fn has_need(&self) -> bool {
        let machine = get(
            &self.plane,
            &["machine.machine.openshift.io", "m0", "-n", "metal"],
        )
        .await;
        machine["metadata"]["annotations"][NEED].is_string()
    }

    async fn has_come_to(&self, step: &str, old: &str) -> Result<(), String> {
        let host = self.host().await;
        let annotations = &host["metadata"]["annotations"];
        let uid = self.node_uid().await;
        let is_released = uid.as_deref() != Some(old);
        let is_backed = annotations["dogwatch.dev/node-backup"].is_string();
        let has_key = annotations[KEY].is_string();
        let is_off = host["status"]["power"]["offConfirmedAt"].is_string();
        let has = match step {
            "the Lease is held" => self.is_leased().await || has_key || is_released,
            "the key is there" => has_key || is_released,
            "off is confirmed" => is_off || is_backed || is_released,
            "the backup is kept" => is_backed || is_released,
            "the Node is gone" => is_released,
            "the need is gone" => !self.has_need().await,
            _ => !has_key && self.bmc.machine().state().is_powered(),
        };
        has.then_some(()).ok_or(format!("{step}: {uid:?} {host}"))
    }

    async fn is_back(&self, old: &str) -> Result<(), String> {
        let (host, node) = (self.host().await, self.node().await);
        let annotations = &host["metadata"]["annotations"];
        let record = annotations["dogwatch.dev/remediation"].as_str();
        let has_ended = record.is_some_and(|record| record.contains("NodeReady"));
        let is_clean = annotations[KEY].is_null()
            && annotations["dogwatch.dev/node-backup"].is_null()
            && node["metadata"]["annotations"]["dogwatch.dev/fencing"].is_null();
        let is_new = node["metadata"]["uid"] != old && self.is_ready().await.is_ok();
        let is = has_ended && is_clean && is_new && !self.is_leased().await;
        is.then_some(()).ok_or(format!("{host} {node}"))
    }
}

/// The machine under this kubelet, and the address of its BMC on loopback.
async fn bmc(kubelet: &KubeletHandle, clock: Arc<dyn Clock>) -> (SimBmc, String) {
    let mut spec = MachineSpec::new("h0", Seed(1), Arc::clone(&clock));
    spec.boots_after = std::time::Duration::from_secs(2);
    let bmc = SimBmc::of(
        BmcSpec::new("h0", Seed(1), clock),
        Machine::under(kubelet, spec),
    );
    let address = served(&bmc).await;
    (bmc, address)
}
