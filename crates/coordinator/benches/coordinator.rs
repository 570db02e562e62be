//! Measures the coordinator's figures of specification §9, with the shipped program and a real API
//! server: how soon it requests the lock, its cost while idle, and its size.

#[path = "../tests/real/support/api.rs"]
#[expect(dead_code, reason = "the tests watch, this only asks")]
mod api;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use dogwatch_testbed::ControlPlane;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use api::Api;

/// How often the time from the sentinel to the lock is measured, each time with a new process.
const RUNS: usize = 15;
/// How long a coordinator runs before its memory is read: its first lists and reports are done by
/// then.
const LEFT_ALONE: Duration = Duration::from_secs(3);
/// Limit for each wait.
const PATIENCE: Duration = Duration::from_mins(1);

const NODES: &str = "/api/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/dogwatch/leases";
const NODE: &str = "bench";
/// Where a kubelet mounts the files of a pod's service account.
const MOUNTED_ACCOUNT: &str = "/run/secrets/kubernetes.io/serviceaccount";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let program = shipped();
    let plane = ControlPlane::builder()
        .with_controllers([])
        .start()
        .await
        .expect("the real control plane starts");
    let client = dogwatch_k8s::connect::connect_by_kubeconfig(plane.admin_kubeconfig())
        .await
        .expect("a kubeconfig");
    let bench = Bench {
        api: Api(client),
        plane,
        program,
    };
    bench.size();
    bench.memory().await;
    bench.lock_requests().await;
}

/// Builds the shipped binary. The binary that cargo builds beside this bench would differ: the
/// tests' dependencies enable features of shared dependencies.
fn shipped() -> PathBuf {
    let cargo = Command::new(env!("CARGO"))
        .args([
            "build",
            "--release",
            "--package",
            "dogwatch-coordinator",
            "--bin",
            "dogwatch-coordinator",
        ])
        .args(["--quiet", "--message-format=json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(cargo.status.success(), "cargo ended with {}", cargo.status);
    let messages = String::from_utf8(cargo.stdout).expect("cargo writes UTF-8");
    let built = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "dogwatch-coordinator")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    built.expect("cargo names what it has built")
}

struct Bench {
    api: Api,
    plane: ControlPlane,
    program: PathBuf,
}

/// How a coordinator is started: program and first arguments, and what it finds its API server by.
struct CoordinatorCommand {
    words: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

/// A coordinator that has read its Node.
struct Running {
    child: Child,
    host: TempDir,
}

impl Bench {
    fn size(&self) {
        let bytes = fs::metadata(&self.program).expect("it was built").len();
        let megabytes = number(bytes) / 1e6;
        figure(
            "coordinator, stripped",
            &format!("{megabytes:.2} MB"),
            "≤ 10 MB",
            megabytes <= 10.0,
        );
    }

    /// The memory of a coordinator that runs as in its pod; that of one with a kubeconfig, which is
    /// YAML, is printed beside it.
    async fn memory(&self) {
        self.install_rights().await;
        let rollup = self.idle_memory(&self.as_in_pod().await).await;
        let resident = mebibytes(&rollup, "Rss:");
        let anonymous = mebibytes(&rollup, "Anonymous:");
        figure(
            "idle coordinator: RSS",
            &format!("{resident:.2} MiB"),
            "≤ 8 MiB",
            resident <= 8.0,
        );
        figure(
            "idle coordinator: anonymous",
            &format!("{anonymous:.2} MiB"),
            "≤ 2 MiB",
            anonymous <= 2.0,
        );
        let rollup = self.idle_memory(&self.with_kubeconfig()).await;
        let resident = mebibytes(&rollup, "Rss:");
        eprintln!("the same, started with a kubeconfig: {resident:.2} MiB");
    }

    async fn idle_memory(&self, program: &CoordinatorCommand) -> String {
        let running = self.start(program).await;
        tokio::time::sleep(LEFT_ALONE).await;
        let id = running.child.id().expect("it runs");
        let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup"));
        let rollup = rollup.expect("our own child");
        self.clean(running).await;
        rollup
    }

    /// The shipped account of the coordinators, with its rights.
    async fn install_rights(&self) {
        let manifests = [
            include_str!("../../../deploy/base/namespace.yaml"),
            include_str!("../../../deploy/base/rbac.yaml"),
        ]
        .join("\n---\n");
        let installed = self.plane.install_manifests(&manifests, &[]);
        installed.await.expect("the shipped manifests");
        let in_force = self.plane.wait_until_rights_are_in_force();
        in_force.await.expect("the rights are in force");
    }

    fn with_kubeconfig(&self) -> CoordinatorCommand {
        let kubeconfig = self.plane.admin_kubeconfig().display().to_string();
        CoordinatorCommand {
            words: vec![self.program.display().to_string()],
            environment: vec![("KUBECONFIG", kubeconfig)],
        }
    }

    /// With a service account's files where a kubelet mounts them, in a mount namespace of its own.
    async fn as_in_pod(&self) -> CoordinatorCommand {
        let token = self
            .plane
            .service_account_token("dogwatch", "dogwatch-coordinator", None);
        let token = token.await.expect("the account is installed");
        let account = self.plane.folder().join("service-account");
        fs::create_dir_all(&account).expect("a folder");
        fs::copy(self.plane.folder().join("ca.crt"), account.join("ca.crt")).expect("a file");
        fs::write(account.join("token"), token).expect("a file");
        fs::write(account.join("namespace"), "dogwatch").expect("a file");
        let script = format!(
            "mount -t tmpfs pod /run; mkdir -p {MOUNTED_ACCOUNT}; cp {}/* {MOUNTED_ACCOUNT}; exec \"$@\"",
            account.display()
        );
        let url = self.plane.api_url();
        let (_, port) = url.rsplit_once(':').expect("https://127.0.0.1:PORT");
        let namespace = ["unshare", "--map-root-user", "--mount", "sh", "-ec"];
        let mut words: Vec<String> = namespace.map(String::from).to_vec();
        words.extend([script, "sh".to_owned(), self.program.display().to_string()]);
        CoordinatorCommand {
            words,
            environment: vec![
                ("KUBERNETES_SERVICE_HOST", "127.0.0.1".to_owned()),
                ("KUBERNETES_SERVICE_PORT", port.to_owned()),
            ],
        }
    }

    async fn lock_requests(&self) {
        let mut first = Vec::new();
        let mut later = Vec::new();
        for _ in 0..RUNS {
            self.api.delete(LEASES).await;
            first.push(self.lock_request().await);
            self.free().await;
            later.push(self.lock_request().await);
        }
        say("sentinel → lock request", &later);
        // The first coordinator of a group also has to create its Lease.
        eprintln!(
            "the same for a group's first reboot ever: {}",
            spread(&first)
        );
    }

    /// The time from just before the sentinel is created until the API server has the request.
    async fn lock_request(&self) -> Duration {
        let running = self.start(&self.with_kubeconfig()).await;
        let mark = self.plane.audit_mark().await.expect("an audit log");
        let made = SystemTime::now();
        fs::write(running.host.path().join("reboot-needed"), "new kernel").expect("a file");
        let asked = tokio::time::timeout(PATIENCE, async {
            loop {
                let entries = self
                    .plane
                    .audit_entries_since(mark)
                    .await
                    .expect("an audit log");
                let bid = entries
                    .into_iter()
                    .find(|entry| entry.verb == "patch" && entry.resource == "leases");
                if let Some(bid) = bid {
                    return bid.received.parse::<jiff::Timestamp>().expect("RFC 3339");
                }
            }
        });
        let asked = SystemTime::from(asked.await.expect("it asks"));
        self.clean(running).await;
        asked.duration_since(made).expect("one clock for both")
    }

    /// A Node with its coordinator, which has read it.
    async fn start(&self, program: &CoordinatorCommand) -> Running {
        self.api
            .create(NODES, &json!({ "metadata": { "name": NODE } }))
            .await;
        let host = tempfile::tempdir().expect("a folder");
        let sentinel = format!("--sentinel={}", host.path().join("reboot-needed").display());
        let mut child = tokio::process::Command::new(&program.words[0])
            .args(&program.words[1..])
            .env_remove("KUBECONFIG")
            .envs(program.environment.iter().cloned())
            .args([
                "--node-name",
                NODE,
                "--reboot-command=true",
                "--listen=127.0.0.1:0",
                "--probe-listen=127.0.0.1:0",
                &sentinel,
            ])
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it was built");
        let mut log = BufReader::new(child.stderr.take().expect("asked for above")).lines();
        let idle = async {
            while let Some(line) = log.next_line().await.expect("it logs UTF-8") {
                if line.contains("NoRebootWanted") {
                    break;
                }
            }
        };
        tokio::time::timeout(PATIENCE, idle)
            .await
            .expect("it sees its Node");
        // Later log lines are discarded, as for a pod whose log nobody reads.
        tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
        Running { child, host }
    }

    async fn clean(&self, mut running: Running) {
        running.child.kill().await.expect("a child can be killed");
        self.api.delete(&format!("{NODES}/{NODE}")).await;
    }

    /// Frees the lock of the coordinator that was killed while it held it.
    async fn free(&self) {
        let annotations = json!({ "dogwatch.dev/holder": null });
        let free = json!({ "metadata": { "annotations": annotations }, "spec": { "holderIdentity": null } });
        self.api
            .merge(&format!("{LEASES}/dogwatch-default-0"), &free)
            .await;
    }
}

fn say(what: &str, taken: &[Duration]) {
    let kept = median(taken) <= Duration::from_millis(10);
    figure(what, &spread(taken), "≤ 10 ms", kept);
}

fn median(taken: &[Duration]) -> Duration {
    let mut taken = taken.to_vec();
    taken.sort_unstable();
    taken[taken.len() / 2]
}

fn spread(taken: &[Duration]) -> String {
    let milliseconds = |taken: Duration| taken.as_secs_f64() * 1e3;
    let most = taken.iter().copied().max().unwrap_or_default();
    let (median, most) = (milliseconds(median(taken)), milliseconds(most));
    format!("median {median:.1} ms, max {most:.1} ms of {}", taken.len())
}

/// One line of `/proc`, converted from kibibytes.
fn mebibytes(rollup: &str, field: &str) -> f64 {
    let line = rollup
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .expect("a field of smaps_rollup");
    let kibibytes = line
        .split_whitespace()
        .next()
        .and_then(|text| text.parse().ok())
        .expect("a number");
    number(kibibytes) / 1024.0
}

fn number(count: u64) -> f64 {
    u32::try_from(count).expect("below 4 Gi").into()
}

/// One line for `cargo xtask bench`.
fn figure(what: &str, measured: &str, reach: &str, kept: bool) {
    println!(
        "{}",
        json!({ "what": what, "measured": measured, "reach": reach, "kept": kept })
    );
}
