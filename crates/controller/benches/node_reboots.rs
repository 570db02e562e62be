//! Measures a `dogwatch controller` that serves NodeReboots, as a process of its own against a real
//! API server: how soon a node asks for the lock, and the memory that ended NodeReboots cost.
//!
//! `DOGWATCH` and `DOGWATCH_COORDINATOR` name programs that are already built; `ENDED` sets how many
//! NodeReboots have ended.

#![allow(clippy::unwrap_used, reason = "what fails here fails the bench")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use dogwatch_testbed::bench::{find_or_build_program, print_figure};
use dogwatch_testbed::{AuditEntry, ControlPlane};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use support::{
    controller_command, create_objects, drain_log, install_manifests, read_lines,
    resident_mebibytes,
};

/// How often the time to the lock request is measured, each time with a new Node.
const ROUNDS: usize = 15;
const ENDED: usize = 1_000;
/// The pause before the memory is read.
const SETTLE_TIME: Duration = Duration::from_secs(5);
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_mins(2);
const LEASE: &str = "dogwatch-default-0";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let dogwatch = find_or_build_program("DOGWATCH", "dogwatch-cli", "dogwatch");
    let coordinator = find_or_build_program(
        "DOGWATCH_COORDINATOR",
        "dogwatch-coordinator",
        "dogwatch-coordinator",
    );
    let plane = ControlPlane::builder().with_controllers([]).start().await;
    let plane = plane.expect("the control plane starts");
    install_manifests(&plane, &dogwatch).await;
    let bench = NodeRebootBench { plane, coordinator };
    let controller = bench.start_controller(&dogwatch).await;
    bench.await_first_answer().await;
    let mut taken = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        let round_time = bench.time_lock_request(round).await;
        eprintln!("round {round}: {:.1} ms", round_time.as_secs_f64() * 1e3);
        taken.push(round_time);
    }
    report_lock_requests(&mut taken);
    bench.measure_memory(&controller).await;
}

struct NodeRebootBench {
    plane: ControlPlane,
    coordinator: PathBuf,
}

impl NodeRebootBench {
    /// Starts the controller and waits until it has made itself the leader.
    async fn start_controller(&self, program: &Path) -> Child {
        let mut child = controller_command(program, self.plane.admin_kubeconfig())
            .arg("--components=healer")
            .spawn()
            .expect("it was built");
        drain_log(read_lines(&mut child));
        let holder = "jsonpath={.spec.holderIdentity}";
        let lease = dogwatch_api::lease::CONTROLLER_LEADER;
        let words = ["get", "lease", lease, "-n", "dogwatch", "-o", holder];
        let leads = async {
            while !matches!(self.plane.run_kubectl(&words, "").await, Ok(holder) if !holder.is_empty())
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(PATIENCE, leads)
            .await
            .expect("it leads");
        child
    }

    /// Waits until the new leader has its first lists and has answered a NodeReboot: the figure is of a
    /// controller that runs.
    async fn await_first_answer(&self) {
        let begun = Instant::now();
        self.create(&node_reboot("first", "no-node")).await;
        self.await_failure("first").await;
        let taken = begun.elapsed().as_secs_f64() * 1e3;
        eprintln!("the first NodeReboot of a new leader, created and ended: {taken:.0} ms");
    }

    async fn await_failure(&self, name: &str) {
        let object = format!("nodereboot/{name}");
        let wait = ["wait", "--for=condition=Succeeded=false", "--timeout=120s"];
        let wait = [&wait[..], &[&object]].concat();
        self.plane.run_kubectl(&wait, "").await.unwrap();
    }

    /// The time from the creation of a NodeReboot to the node's request for the lock, both when they
    /// arrived at the API server.
    async fn time_lock_request(&self, round: usize) -> Duration {
        let node = format!("bench-{round}");
        self.create(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": node } }))
            .await;
        let host = tempfile::tempdir().expect("a folder");
        let mut coordinator = self.start_coordinator(&node, host.path()).await;
        let mark = self.plane.audit_mark().await.expect("an audit log");
        self.create(&node_reboot(&node, &node)).await;
        let taken = async {
            loop {
                let entries = self.plane.audit_entries_since(mark).await;
                if let Some(taken) = time_between(&entries.expect("an audit log")) {
                    return taken;
                }
            }
        };
        let taken = tokio::time::timeout(PATIENCE, taken).await;
        coordinator.kill().await.expect("a child can be killed");
        self.free_lock(&node).await;
        taken.expect("it asks for the lock")
    }

    async fn start_coordinator(&self, node: &str, host: &Path) -> Child {
        let sentinel = format!("--sentinel={}", host.join("reboot-needed").display());
        let mut child = Command::new(&self.coordinator)
            .env("KUBECONFIG", self.plane.admin_kubeconfig())
            .args(["--node-name", node, "--reboot-command=true", &sentinel])
            .args(["--listen=127.0.0.1:0", "--probe-listen=127.0.0.1:0"])
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it was built");
        let mut log = read_lines(&mut child);
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
        drain_log(log);
        child
    }

    /// What the coordinator leaves behind, which was killed.
    async fn free_lock(&self, node: &str) {
        let delete = ["delete", "node", node];
        self.plane.run_kubectl(&delete, "").await.unwrap();
        let free = json!({ "metadata": { "annotations": { "dogwatch.dev/holder": null } },
            "spec": { "holderIdentity": null } });
        let free = free.to_string();
        let patch = ["patch", "lease", LEASE, "-n", "dogwatch", "--type=merge"];
        let patch = [&patch[..], &["-p", &free]].concat();
        self.plane.run_kubectl(&patch, "").await.unwrap();
    }

    /// A NodeReboot of a Node that does not exist ends at once, and is kept for a day.
    async fn measure_memory(&self, controller: &Child) {
        let ended = std::env::var("ENDED").map_or(ENDED, |text| text.parse().unwrap());
        tokio::time::sleep(SETTLE_TIME).await;
        let before = resident_mebibytes(controller, "VmRSS:");
        let reboots = (0..ended).map(|number| {
            let name = format!("ended-{number}");
            node_reboot(&name, &format!("no-node-{number}"))
        });
        create_objects(&self.plane, &reboots.collect::<Vec<_>>()).await;
        self.await_failure(&format!("ended-{}", ended - 1)).await;
        tokio::time::sleep(SETTLE_TIME).await;
        let after = resident_mebibytes(controller, "VmRSS:");
        print_figure(
            &format!("controller's RSS for {ended} NodeReboots that have ended"),
            &format!("{:.1} MiB ({before:.1} → {after:.1})", after - before),
            "≤ 20 MiB",
            after - before <= 20.0,
        );
    }

    async fn create(&self, object: &Value) {
        let (create, object) = (["create", "-f", "-"], object.to_string());
        self.plane.run_kubectl(&create, &object).await.unwrap();
    }
}

fn node_reboot(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "dogwatch.dev/v1alpha1", "kind": "NodeReboot", "metadata": { "name": name },
        "spec": { "nodeName": node, "reason": "bench", "requester": "bench" },
    })
}

/// From the NodeReboot to the first bid for the lock; `None` before the bid.
fn time_between(entries: &[AuditEntry]) -> Option<Duration> {
    let received = |verb: &str, resource: &str, name: &str| {
        let mut found = entries.iter().filter(|entry| {
            entry.verb == verb && entry.resource == resource && entry.name.starts_with(name)
        });
        let entry = found.next()?;
        Some(entry.received.parse::<Timestamp>().expect("RFC 3339"))
    };
    let created = received("create", "nodereboots", "")?;
    let asked = received("patch", "leases", "dogwatch-default")?;
    Some(Duration::try_from(asked.duration_since(created)).expect("one clock for both"))
}

fn report_lock_requests(taken: &mut [Duration]) {
    taken.sort_unstable();
    let milliseconds = |taken: Duration| taken.as_secs_f64() * 1e3;
    let median = milliseconds(taken[taken.len() / 2]);
    let most = milliseconds(taken[taken.len() - 1]);
    print_figure(
        "NodeReboot created → lock request",
        &format!("median {median:.1} ms, max {most:.1} ms of {}", taken.len()),
        "≤ 100 ms",
        most <= 100.0,
    );
}
