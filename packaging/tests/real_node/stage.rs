//! A real control plane with a scheduler, a real node that has joined it, the chart, and a controller on the host.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use dogwatch_packaging::{
    image::{ImageSources, write_images},
    shipped_program::ShippedProgram,
    workspace_root,
};
use dogwatch_testbed::{
    ControlPlane,
    helm::run_helm,
    ipmi_sim::{PASSWORD, USERNAME},
    real_node::{NODE_NAME, RealNode, RealScheduler},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Child;

use crate::support::{QUICK_ZSTD_LEVEL, stripped_programs};

/// Longer than any step takes under emulation, on a machine that compiles beside it.
const PATIENCE: Duration = Duration::from_mins(15);
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const HOSTS_ROLE: &str = include_str!("../../../deploy/hosts/rbac.yaml");
const COORDINATOR: &str = "system:serviceaccount:dogwatch:dogwatch-coordinator";
const CONTROLLER: &str = "system:serviceaccount:dogwatch:dogwatch-controller";

/// Everything runs; the coordinator's pod is Ready on the node.
pub struct RealStage {
    // Drop order: the controller and the node before their API server.
    _controller: Child,
    node: RealNode,
    _scheduler: RealScheduler,
    pub plane: ControlPlane,
    /// helm's files, and the archive of the coordinator's image.
    _folder: TempDir,
    begun: Instant,
}

impl RealStage {
    pub async fn start() -> Self {
        let begun = Instant::now();
        let folder = TempDir::new().unwrap();
        let images = write_coordinator_image(folder.path());
        let plane = ControlPlane::builder().with_real_kubelets().start();
        let plane = plane.await.unwrap();
        let scheduler = RealScheduler::start(&plane).await.unwrap();
        let node = RealNode::start(&plane, &images).await.unwrap();
        install_chart(&plane, folder.path()).await;
        let stage = Self {
            _controller: start_controller(&plane).await,
            node,
            _scheduler: scheduler,
            plane,
            _folder: folder,
            begun,
        };
        stage.report("the control plane runs, the chart is installed");
        stage
            .until("the node is Ready", async || stage.is_ready().await)
            .await;
        stage.report("the node is Ready");
        stage
            .until("the coordinator is Ready", async || {
                stage.has_ready_coordinator().await
            })
            .await;
        stage.report("the coordinator is Ready");
        stage
    }

    /// Prints how long it took so far, for docs/numbers.md.
    pub fn report(&self, what: &str) {
        eprintln!("{:4} s: {what}", self.begun.elapsed().as_secs());
    }

    /// Waits until `ask` succeeds.
    pub async fn until<T>(&self, what: &str, ask: impl AsyncFn() -> Result<T, String>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match ask().await {
                Ok(found) => return found,
                Err(why) => assert!(
                    Instant::now() < deadline,
                    "never: {what}: {why}\n{}",
                    self.console()
                ),
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    pub async fn get(&self, words: &[&str]) -> Result<Value, String> {
        let words = [&["get", "-o", "json"], words].concat();
        let text = self.plane.run_kubectl(&words, "").await;
        let text = text.map_err(|error| error.to_string())?;
        Ok(serde_json::from_str(&text).unwrap())
    }

    pub async fn apply(&self, objects: &[Value]) {
        for object in objects {
            let object = object.to_string();
            let applied = self.plane.run_kubectl(&["apply", "-f", "-"], &object).await;
            applied.unwrap();
        }
    }

    pub async fn node(&self) -> Value {
        self.get(&["node", NODE_NAME]).await.unwrap()
    }

    pub async fn patch_node(&self, change: &Value) {
        let change = change.to_string();
        let words = ["patch", "node", NODE_NAME, "--type=merge", "-p", &change];
        self.plane.run_kubectl(&words, "").await.unwrap();
    }

    async fn is_ready(&self) -> Result<(), String> {
        let node = self.get(&["node", NODE_NAME]).await?;
        let is = has_condition(&node, "Ready", "True");
        is.then_some(()).ok_or(node.to_string())
    }

    /// The DaemonSet of the chart, as its own controller reports it.
    async fn has_ready_coordinator(&self) -> Result<(), String> {
        let set = self.get(&["daemonset", "dogwatch-coordinator", "-n", "dogwatch"]);
        let set = set.await?;
        let status = &set["status"];
        let is = status["desiredNumberScheduled"] == 1 && status["numberReady"] == 1;
        let pods = self.get(&["pods", "-n", "dogwatch"]).await?;
        is.then_some(()).ok_or(format!("{status} {pods}"))
    }

    /// Waits until the Node was deleted, made anew by its kubelet, and has its label again.
    pub async fn until_another_node_is_ready(&self, old: &Value) -> Value {
        let ask = async || {
            let node = self.get(&["node", NODE_NAME]).await?;
            let is_other = node["metadata"]["uid"] != old["metadata"]["uid"];
            let is_back = node["metadata"]["labels"]["rack"] == "r1";
            let is = is_other && is_back && has_condition(&node, "Ready", "True");
            let host = self.get(&["bmh", "-n", "metal"]).await?;
            if is {
                Ok(node)
            } else {
                Err(format!("{host} {node}"))
            }
        };
        let node = self.until("the node is back", ask).await;
        self.report("the Node was made anew, and is Ready");
        node
    }

    pub fn console(&self) -> String {
        self.node.machine().console_output()
    }

    /// The process that is the machine; another one runs after each cut of its power.
    pub fn node_process(&self) -> String {
        self.node.machine().process_id().expect("it is on")
    }

    /// The machine stays on.
    pub async fn stop_processors(&self) {
        self.node.stop_processors().await.unwrap();
        self.report("the processors have stopped");
    }

    /// Creates the host of the node, and waits until its power is controlled.
    pub async fn put_host(&self) {
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "metal" } });
        let secret = json!({ "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "bmc", "namespace": "metal" },
            "stringData": { "username": USERNAME, "password": PASSWORD } });
        let host = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": "h0", "namespace": "metal",
                "annotations": { "dogwatch.dev/node": NODE_NAME } },
            "spec": { "online": true, "externallyProvisioned": true,
                "bmc": { "address": self.node.machine().address(), "credentialsName": "bmc" } } });
        self.apply(&[namespace]).await;
        let role = ["apply", "-n", "metal", "-f", "-"];
        self.plane.run_kubectl(&role, HOSTS_ROLE).await.unwrap();
        self.apply(&[secret, host]).await;
        self.until("the host's power is controlled", async || {
            let host = self.get(&["bmh", "h0", "-n", "metal"]).await?;
            let is = has_condition(&host, "PowerControlReady", "True");
            is.then_some(()).ok_or(host.to_string())
        })
        .await;
        self.report("the host's power is controlled");
    }

    /// Runs `dogwatch` as the administrator.
    pub fn spawn_dogwatch(&self, arguments: &[&str]) -> Child {
        let mut command = dogwatch_command(self.plane.admin_kubeconfig());
        command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        tokio::process::Command::from(command)
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    /// Waits until the command ends, and prints what it printed.
    pub async fn succeed(&self, command: Child) {
        let ended = tokio::time::timeout(PATIENCE, command.wait_with_output()).await;
        let Ok(output) = ended else {
            let (node, console) = (self.node().await, self.console());
            panic!("the command does not end: {node}\n{console}");
        };
        let output = output.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let printed = text(&output.stdout) + &text(&output.stderr);
        eprintln!("{printed}");
        assert!(output.status.success(), "{printed}\n{}", self.console());
        self.report("the command has ended");
    }

    /// Waits until the API server has refused an eviction for a budget.
    pub async fn until_an_eviction_is_refused(&self) {
        self.until("an eviction is refused", async || {
            let asked = self.plane.audit_entries_of(COORDINATOR).await.unwrap();
            let mut evictions = asked.iter().filter(|it| it.subresource == "eviction");
            let is = evictions.any(|it| it.code == 429);
            is.then_some(()).ok_or(format!("{:#?}", asked.last()))
        })
        .await;
        self.report("the budget has refused an eviction");
    }

    /// The rights of the chart are enough for all that was done.
    pub async fn assert_nothing_was_forbidden(&self) {
        for account in [COORDINATOR, CONTROLLER] {
            let asked = self.plane.audit_entries_of(account).await.unwrap();
            assert!(!asked.is_empty(), "{account} did nothing");
            let forbidden = asked.iter().find(|entry| entry.code == 403);
            assert!(forbidden.is_none(), "{forbidden:?}");
        }
    }
}

/// Writes the images as `cargo xtask image` does; returns a folder with the coordinator's archive alone.
fn write_coordinator_image(folder: &Path) -> PathBuf {
    let sources = ImageSources {
        ca_certificates: PathBuf::from("/etc/ssl/certs/ca-certificates.crt"),
        source_date: 1_700_000_000,
        zstd_level: QUICK_ZSTD_LEVEL,
    };
    let all = folder.join("all-images");
    write_images(stripped_programs(), &sources, &all).unwrap();
    let images = folder.join("images");
    fs::create_dir(&images).unwrap();
    // Beside it are a folder and a list of parts, without a version in their names.
    for entry in fs::read_dir(&all).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with("dogwatch-coordinator-") {
            fs::rename(entry.path(), images.join(name)).unwrap();
        }
    }
    assert_eq!(fs::read_dir(&images).unwrap().count(), 1);
    images
}

/// Installs the chart by helm. The controller's Deployment is scaled to zero: the only node is the one that is switched off.
async fn install_chart(plane: &ControlPlane, home: &Path) {
    let chart = workspace_root().join("deploy/chart").display().to_string();
    let version = dogwatch_packaging::VERSION;
    let images = format!(
        "--set=coordinatorImage=dogwatch-coordinator:{version},controllerImage=dogwatch:{version}"
    );
    let words = [
        "install",
        "dogwatch",
        &chart,
        "--namespace=dogwatch",
        "--create-namespace",
        &images,
        "--set=admissionPolicies=deny,remediation=true,hostCrd=true",
    ];
    let output = run_helm(&words, plane.admin_kubeconfig(), home).await;
    let output = output.unwrap();
    assert!(output.is_success, "{}", output.stderr);
    let scale = [
        "scale",
        "-n",
        "dogwatch",
        "deployment/dogwatch-controller",
        "--replicas=0",
    ];
    plane.run_kubectl(&scale, "").await.unwrap();
}

/// The controller with the rights of the chart, as a process of this host, where the BMC listens.
async fn start_controller(plane: &ControlPlane) -> Child {
    let kubeconfig = plane.kubeconfig_of("dogwatch", "dogwatch-controller");
    let kubeconfig = kubeconfig.await.unwrap();
    let mut command = dogwatch_command(&kubeconfig);
    let log = fs::File::create(plane.folder().join("controller.log")).unwrap();
    command
        .args(["controller", "--components=power,remediation,healer"])
        .args(["--listen=off", "--probe-listen=off"])
        .stderr(log);
    tokio::process::Command::from(command)
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

fn dogwatch_command(kubeconfig: &Path) -> Command {
    let mut command = Command::new(stripped_programs().program_path(ShippedProgram::Dogwatch));
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .env("USER", "tester")
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null());
    command
}

/// Whether the object has this condition with this status.
pub fn has_condition(object: &Value, condition: &str, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == condition && it["status"] == status)
}
