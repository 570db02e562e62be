//! Measures the coordinator's figures of specification §9, with the shipped program and a real API
//! server: how soon it requests the lock, its cost while idle, and its size.
//!
//! `RUNS` sets how often the lock is requested, and `OTHER_NODES` how many other Nodes there are.

#[path = "../tests/real/support/api.rs"]
#[expect(dead_code, reason = "the tests watch, this only asks")]
mod api;
mod support;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use dogwatch_testbed::ControlPlane;
use dogwatch_testbed::bench::{number_of, print_figure};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use api::Api;
use support::lock_request::{LockRequest, print_lock_requests, print_parts, spread};
use support::pod::PodCommand;
use support::shipped::{build_coordinator, install_rights};
use support::{LEFT_ALONE, PATIENCE, ProcessMemory};

/// How often the time from the sentinel to the lock is measured, each time with a new process.
const RUNS: usize = 15;
/// How long a coordinator is at rest before its sentinel is created.
const AT_REST: Duration = Duration::from_secs(1);
/// How long the bench waits before it looks into the audit log, also the first time.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

const NODES: &str = "/api/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/dogwatch/leases";
const NODE: &str = "bench";
const ACCOUNT: [&str; 2] = ["dogwatch", "dogwatch-coordinator"];

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let program = build_coordinator();
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
    bench.create_other_nodes(number_of("OTHER_NODES", 0)).await;
    bench.size();
    bench.memory().await;
    bench.lock_requests().await;
}

struct Bench {
    api: Api,
    plane: ControlPlane,
    program: PathBuf,
}

/// A coordinator that has read its Node.
struct Running {
    child: Child,
    host: TempDir,
}

impl Bench {
    async fn create_other_nodes(&self, count: usize) {
        for number in 0..count {
            let node = json!({ "metadata": { "name": format!("other-{number}") } });
            self.api.create(NODES, &node).await;
        }
    }

    fn size(&self) {
        let bytes = fs::metadata(&self.program).expect("it was built").len();
        let megabytes = number(bytes) / 1e6;
        print_figure(
            "coordinator, stripped",
            &format!("{megabytes:.2} MB"),
            "≤ 10 MB",
            megabytes <= 10.0,
        );
    }

    /// The memory of a coordinator that runs as in its pod; that of one with a kubeconfig, which is
    /// YAML, is printed beside it.
    async fn memory(&self) {
        install_rights(&self.plane).await;
        let in_pod = PodCommand::with_account(&self.plane, &self.program, ACCOUNT).await;
        let memory = self.idle_memory(&in_pod).await;
        print_figure(
            "idle coordinator: RSS",
            &format!("{:.2} MiB", memory.resident),
            "≤ 8 MiB",
            memory.resident <= 8.0,
        );
        print_figure(
            "idle coordinator: anonymous",
            &format!("{:.2} MiB", memory.anonymous),
            "≤ 2 MiB",
            memory.anonymous <= 2.0,
        );
        let memory = self.idle_memory(&self.with_kubeconfig()).await;
        eprintln!(
            "the same, started with a kubeconfig: {:.2} MiB",
            memory.resident
        );
    }

    async fn idle_memory(&self, program: &PodCommand) -> ProcessMemory {
        let running = self.start(program).await;
        tokio::time::sleep(LEFT_ALONE).await;
        let id = running.child.id().expect("it runs");
        let memory = ProcessMemory::of_process(program.find_process(id));
        self.clean(running).await;
        memory
    }

    fn with_kubeconfig(&self) -> PodCommand {
        PodCommand::with_kubeconfig(&self.plane, &self.program)
    }

    async fn lock_requests(&self) {
        let mut first = Vec::new();
        let mut later = Vec::new();
        for _ in 0..number_of("RUNS", RUNS) {
            self.api.delete(LEASES).await;
            first.push(self.lock_request().await);
            self.free().await;
            later.push(self.lock_request().await);
        }
        print_lock_requests("sentinel → lock request", &later);
        // The first coordinator of a group also has to create its Lease.
        let whole = spread(&first, |request| request.whole);
        eprintln!("the same for a group's first reboot ever: {whole}");
        print_parts(&first);
    }

    /// The time from just before the sentinel is created until the API server has the request.
    async fn lock_request(&self) -> LockRequest {
        let running = self.start(&self.with_kubeconfig()).await;
        // Its first list of Leases must not be what the next one waits for.
        tokio::time::sleep(AT_REST).await;
        let mark = self.plane.audit_mark().await.expect("an audit log");
        let created = SystemTime::now();
        fs::write(running.host.path().join("reboot-needed"), "new kernel").expect("a file");
        let asked = tokio::time::timeout(PATIENCE, async {
            loop {
                // A look at the log is a request, too: it comes after what is measured.
                tokio::time::sleep(BETWEEN_LOOKS).await;
                let entries = self.plane.audit_entries_since(mark).await;
                let entries = entries.expect("an audit log");
                if let Some(request) = LockRequest::from_audit_log(created, &entries) {
                    return request;
                }
            }
        });
        let asked = asked.await.expect("it asks");
        self.clean(running).await;
        asked
    }

    /// A Node with its coordinator, which has read it.
    async fn start(&self, program: &PodCommand) -> Running {
        self.api
            .create(NODES, &json!({ "metadata": { "name": NODE } }))
            .await;
        let host = tempfile::tempdir().expect("a folder");
        let sentinel = format!("--sentinel={}", host.path().join("reboot-needed").display());
        let mut child = program
            .to_command()
            .args([
                "--node-name",
                NODE,
                "--reboot-command=true",
                "--listen=127.0.0.1:0",
                "--probe-listen=127.0.0.1:0",
                &sentinel,
            ])
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

fn number(count: u64) -> f64 {
    u32::try_from(count).expect("below 4 Gi").into()
}
