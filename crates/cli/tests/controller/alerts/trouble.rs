//! A cluster whose programs are well at first: a controller with all components that alerts are about, coordinators of six Nodes, and
//! a Node with a host.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dogwatch_sim::bmc::{BmcFaultKind, SimBmc};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::lock::call;
use crate::metal::{bare_metal_host, put};
use crate::policies::policy;
use crate::remedy::form::Form;
use crate::remedy::stage::{QUICK_POWER, Stage, simulated_bmc};
use crate::support::{Controller, eventually};

const POLICIES: &str = "/apis/dogwatch.dev/v1alpha1/rebootpolicies";
const HOST: &str = "/apis/metal3.io/v1alpha1/namespaces/metal/baremetalhosts/h0";
/// The coordinators' Nodes, and the policy that has each; no policy has those of `plain`.
const GROUPS: [(&str, &str); 6] = [
    ("n1", "plain"),
    ("n2", "drains"),
    ("n3", "drains"),
    ("n4", "plain"),
    ("n5", "gated"),
    ("n6", "plain"),
];
const SERVES_METRICS: &str = "serves /metrics, /healthz and /readyz";
/// A port of loopback on which nobody listens.
const NOBODY: &str = "127.0.0.1:9";

pub struct TroubledCluster {
    stage: Stage,
    bmc: SimBmc,
    pub controller: Controller,
    files: TempDir,
    coordinators: BTreeMap<String, Controller>,
    addresses: BTreeMap<String, String>,
}

impl TroubledCluster {
    pub async fn start() -> Self {
        let stage = Stage::new(Form::Delete).await;
        let simulated = simulated_bmc(&stage).await;
        stage.put_host(&simulated.address).await;
        for policy in policies() {
            put(&stage.plane, &policy).await;
        }
        let controller = start_controller(&stage);
        let mut cluster = Self {
            stage,
            bmc: simulated.bmc,
            controller,
            files: tempfile::tempdir().unwrap(),
            coordinators: BTreeMap::new(),
            addresses: BTreeMap::new(),
        };
        let serves = cluster.controller.field(SERVES_METRICS, "address").await;
        cluster.addresses.insert("controller".into(), serves);
        for (node, group) in GROUPS {
            cluster.put_node(node, group).await;
            cluster.start_coordinator(node).await;
        }
        cluster.reboot_a_node("n6").await;
        eventually(|| cluster.stage.is_controlled()).await;
        cluster
    }

    pub fn list_targets(&self) -> BTreeMap<String, String> {
        self.addresses.clone()
    }

    /// Fences `worker-0`, deletes its Node, and waits until it is back.
    pub async fn remediate_a_node(&self) {
        let old = self.stage.node().await;
        self.stage.ask().await;
        eventually(|| self.stage.is_over(&old)).await;
    }

    /// One host gets the lock.
    pub async fn call_the_lock_api(&self) {
        let address = self
            .controller
            .field("serves the lock API", "address")
            .await;
        let output = call("lock", &address, "a.example").await;
        assert!(output.status.success(), "{output:?}");
    }

    pub async fn make_trouble(&mut self) {
        self.block_the_drain_of("n2").await;
        self.request_reboot("n2").await;
        self.until_annotated("n2", "dogwatch.dev/reboot", "\"phase\":\"draining\"")
            .await;
        self.request_reboot("n3").await;
        self.request_reboot("n5").await;
        self.annotate(&node_path("n1"), "dogwatch.dev/reboot", "no record")
            .await;
        // A case of the healer.
        self.annotate(&node_path("n6"), "dogwatch.dev/api-lock", "no record")
            .await;
        // Even root finds no file below a file.
        fs::remove_dir(self.folder("n4").join("run")).unwrap();
        fs::write(self.folder("n4").join("run"), "").unwrap();
        let window = json!({ "start": "22:00", "end": "04:00", "timeZone": "Mars/Olympus" });
        let unclear = policy_of_pool("unclear", &json!({ "windows": [window] }));
        put(&self.stage.plane, &unclear).await;
        self.halt_a_rollout().await;
        self.bmc.add_fault(BmcFaultKind::OffIgnored);
        self.annotate(HOST, "reboot.metal3.io", r#"{"mode":"hard"}"#)
            .await;
        let address = format!("redfish+http://{NOBODY}/redfish/v1/Systems/h1");
        let without_secret = bare_metal_host("h1", &address, "none");
        put(&self.stage.plane, &without_secret).await;
    }

    /// The coordinator of n4 has something to write meanwhile.
    pub fn stop_the_api_server(&self) {
        self.stage.plane.stop_api();
        let run = self.folder("n4").join("run");
        fs::remove_file(&run).unwrap();
        fs::create_dir(&run).unwrap();
        fs::write(run.join("reboot-needed"), "new kernel").unwrap();
    }

    fn folder(&self, node: &str) -> PathBuf {
        self.files.path().join(node)
    }

    async fn put_node(&self, name: &str, group: &str) {
        let node = json!({ "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": { "pool": group } } });
        put(&self.stage.plane, &node).await;
        self.report_boot(name, "1").await;
        let folder = self.folder(name);
        fs::create_dir_all(folder.join("run")).unwrap();
        fs::write(folder.join("boot-id"), boot_id("1")).unwrap();
    }

    /// Writes the Node's status as its kubelet would.
    async fn report_boot(&self, name: &str, boot: &str) {
        let status = json!({ "status": {
            "nodeInfo": { "bootID": boot_id(boot) },
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }] } });
        let path = format!("{}/status", node_path(name));
        self.stage.hand.merge(&path, &status).await;
    }

    /// Its metrics are served at the same address after each start.
    async fn start_coordinator(&mut self, node: &str) {
        let folder = self.folder(node);
        let listen = self
            .addresses
            .get(node)
            .map_or("127.0.0.1:0", String::as_str);
        let mut command = Command::new(coordinator_program());
        command.args([
            format!("--node-name={node}"),
            format!("--sentinel={}", folder.join("run/reboot-needed").display()),
            format!("--boot-id-file={}", folder.join("boot-id").display()),
            format!(
                "--reboot-command=touch {}",
                folder.join("rebooted").display()
            ),
            format!("--listen={listen}"),
            "--settle=100ms".to_owned(),
        ]);
        let coordinator = Controller::spawn(command, self.stage.plane.admin_kubeconfig());
        let serves = coordinator.field(SERVES_METRICS, "address").await;
        self.addresses.insert(node.to_owned(), serves);
        self.coordinators.insert(node.to_owned(), coordinator);
    }

    /// Its coordinator and its boot end with the reboot command.
    async fn reboot_a_node(&mut self, node: &str) {
        self.request_reboot(node).await;
        let rebooted = self.folder(node).join("rebooted");
        eventually(|| async {
            let is_there = rebooted.exists();
            is_there
                .then_some(())
                .ok_or("no reboot command yet".to_owned())
        })
        .await;
        drop(self.coordinators.remove(node));
        fs::write(self.folder(node).join("boot-id"), boot_id("2")).unwrap();
        self.report_boot(node, "2").await;
        self.start_coordinator(node).await;
        self.until_annotated(node, "dogwatch.dev/last-reboot", "Rebooted")
            .await;
    }

    async fn annotate(&self, path: &str, annotation: &str, value: &str) {
        let change = json!({ "metadata": { "annotations": { annotation: value } } });
        self.stage.hand.merge(path, &change).await;
    }

    async fn request_reboot(&self, node: &str) {
        let request = json!({ "reason": "new kernel" }).to_string();
        let annotation = "dogwatch.dev/reboot-requested";
        self.annotate(&node_path(node), annotation, &request).await;
    }

    async fn until_annotated(&self, node: &str, annotation: &str, words: &str) {
        self.until_object(&node_path(node), |node| {
            let value = node["metadata"]["annotations"][annotation].as_str();
            value.is_some_and(|value| value.contains(words))
        })
        .await;
    }

    async fn until_object(&self, path: &str, is_it: impl Fn(&Value) -> bool) {
        eventually(|| async {
            let object = self.stage.hand.get(path).await;
            is_it(&object).then_some(()).ok_or(object.to_string())
        })
        .await;
    }

    /// A pod of the node whose PodDisruptionBudget allows no disruption. No disruption controller runs, so the budget's status is
    /// the test's.
    async fn block_the_drain_of(&self, node: &str) {
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": "default", "namespace": "default" } });
        let labels = json!({ "app": "db" });
        let pod = json!({ "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "db", "namespace": "default", "labels": labels },
            "spec": { "nodeName": node, "containers": [{ "name": "db", "image": "none" }] } });
        let budget = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "name": "db", "namespace": "default" },
            "spec": { "minAvailable": 1, "selector": { "matchLabels": labels } } });
        for object in [account, pod, budget] {
            put(&self.stage.plane, &object).await;
        }
        let status = json!({ "status": { "observedGeneration": 1, "currentHealthy": 1,
            "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 0 } });
        let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/db/status";
        self.stage.hand.merge(path, &status).await;
        let ready = json!({ "status": { "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True" }] } });
        let path = "/api/v1/namespaces/default/pods/db/status";
        self.stage.hand.merge(path, &ready).await;
    }

    /// As the controller writes it after a failure.
    async fn halt_a_rollout(&self) {
        let path = format!("{POLICIES}/careful");
        self.until_object(&path, |policy| policy["status"]["rollout"].is_object())
            .await;
        let halted =
            json!({ "since": jiff::Timestamp::now().to_string(), "reason": "n7: RebootFailed" });
        let status = json!({ "status": { "rollout": { "halted": halted } } });
        self.stage
            .hand
            .merge(&format!("{path}/status"), &status)
            .await;
    }
}

fn node_path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

fn boot_id(boot: &str) -> String {
    format!("00000000-0000-4000-8000-{boot:0>12}")
}

fn policies() -> [Value; 3] {
    let gate = json!({ "url": format!("http://{NOBODY}"), "query": "up == 0" });
    [
        policy_of_pool("drains", &json!({})),
        policy_of_pool("gated", &json!({ "gates": [{ "prometheus": gate }] })),
        policy_of_pool("careful", &json!({ "rollout": { "haltAfterFailures": 1 } })),
    ]
}

/// A policy for the Nodes whose label `pool` is its name.
fn policy_of_pool(name: &str, fields: &Value) -> Value {
    let mut spec = fields.clone();
    spec["nodeSelector"] = json!({ "matchLabels": { "pool": name } });
    policy(name, &spec)
}

fn start_controller(stage: &Stage) -> Controller {
    let components = [
        "--components=healer,lock,power,remediation",
        "--lock-auth=none",
        "--lock-listen=127.0.0.1:0",
    ];
    let flags = [&components[..], &QUICK_POWER].concat();
    Controller::with(stage.plane.admin_kubeconfig(), &flags)
}

/// Cargo puts it beside the program of this package.
fn coordinator_program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_dogwatch")).with_file_name("dogwatch-coordinator");
    assert!(
        program.is_file(),
        "{}: run cargo build -p dogwatch-coordinator",
        program.display()
    );
    program
}
