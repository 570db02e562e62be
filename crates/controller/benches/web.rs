//! Measures what component `web` costs a `dogwatch controller` on a real API server with 5,000 Nodes: its memory and its processor
//! time while 100 nodes move and one viewer reads the stream, each less what the controller takes without `web`.
//!
//! `DOGWATCH` names a program that is already built; `NODES` sets how many Nodes there are.

#![allow(clippy::unwrap_used, reason = "what fails here fails the bench")]

mod support;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use axum::http::{Method, Request};
use dogwatch_k8s::Client;
use dogwatch_k8s::connect::connect_by_kubeconfig;
use dogwatch_testbed::ControlPlane;
use dogwatch_testbed::bench::{find_or_build_program, print_figure};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use support::{
    controller_command, create_objects, drain_log, install_manifests, read_lines,
    resident_mebibytes,
};

const NODES: usize = 5_000;
/// So many nodes go from phase to phase meanwhile.
const MOVING: usize = 100;
/// The pause between two changes: each of the nodes changes every six seconds.
const MOVE_INTERVAL: Duration = Duration::from_millis(60);
const MEASURED_TIME: Duration = Duration::from_secs(30);
/// The pause before anything is measured.
const SETTLE_TIME: Duration = Duration::from_secs(20);
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_mins(2);
/// Source: issue 14, "controller with `web` and one viewer on 5,000 nodes".
const MEMORY_TARGET: f64 = 30.0;
/// Of a core, in percent. The same source.
const PROCESSOR_TARGET: f64 = 5.0;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let dogwatch = find_or_build_program("DOGWATCH", "dogwatch-cli", "dogwatch");
    let plane = ControlPlane::builder().with_controllers([]).start().await;
    let plane = plane.expect("the control plane starts");
    install_manifests(&plane, &dogwatch).await;
    let nodes = std::env::var("NODES").map_or(NODES, |text| text.parse().unwrap());
    let client = connect_by_kubeconfig(plane.admin_kubeconfig()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let bench = WebBench {
        received: folder.path().join("stream"),
        client: client.unwrap(),
        plane,
        dogwatch,
    };
    let objects: Vec<Value> = (0..nodes).map(node).collect();
    create_objects(&bench.plane, &objects).await;
    let without = bench.measure_controller("healer").await;
    let with = bench.measure_controller("healer,web").await;
    let memory = with.memory - without.memory;
    print_figure(
        &format!("`web` with one viewer, {nodes} nodes: RSS of the controller"),
        &format!(
            "{memory:.1} MiB more ({:.1} → {:.1})",
            without.memory, with.memory
        ),
        "≤ 30 MiB more",
        memory <= MEMORY_TARGET,
    );
    let processor = with.processor - without.processor;
    print_figure(
        &format!("the same while {MOVING} nodes move: its processor"),
        &format!(
            "{processor:.1} % of a core more ({:.1} → {:.1})",
            without.processor, with.processor
        ),
        "≤ 5 % of a core more",
        processor <= PROCESSOR_TARGET,
    );
}

struct WebBench {
    plane: ControlPlane,
    client: Client,
    dogwatch: PathBuf,
    /// What the viewer has received.
    received: PathBuf,
}

/// What a controller takes.
struct ControllerUse {
    /// MiB, when the nodes have moved.
    memory: f64,
    /// Percent of a core while they move.
    processor: f64,
}

impl WebBench {
    async fn measure_controller(&self, components: &str) -> ControllerUse {
        let (controller, viewer) = self.start_controller(components).await;
        tokio::time::sleep(SETTLE_TIME).await;
        let (begun, before) = (Instant::now(), processor_seconds(&controller));
        self.move_nodes().await;
        let used = processor_seconds(&controller) - before;
        let measured = ControllerUse {
            memory: resident_mebibytes(&controller, "VmRSS:"),
            processor: used / begun.elapsed().as_secs_f64() * 100.0,
        };
        drop(controller);
        if viewer.is_some() {
            let size = std::fs::metadata(&self.received).unwrap().len();
            eprintln!("the viewer got {} KiB", size >> 10);
            assert!(size > 0, "the viewer got nothing");
        }
        measured
    }

    /// Starts it, and with `web` a viewer.
    async fn start_controller(&self, components: &str) -> (Child, Option<Child>) {
        let mut child = controller_command(&self.dogwatch, self.plane.admin_kubeconfig())
            .args(["--web-listen=127.0.0.1:0", "--components", components])
            .spawn()
            .expect("it was built");
        let mut log = read_lines(&mut child);
        if !components.contains("web") {
            drain_log(log);
            return (child, None);
        }
        let address = async {
            loop {
                let line = log.next_line().await.expect("it logs UTF-8");
                let line: Value = serde_json::from_str(&line.expect("it runs")).unwrap();
                if line["message"] == "serves the dashboard" {
                    return line["address"].as_str().unwrap().to_owned();
                }
            }
        };
        let address = tokio::time::timeout(PATIENCE, address).await;
        drain_log(log);
        let viewer = self.start_viewer(&address.expect("it serves"));
        (child, Some(viewer))
    }

    fn start_viewer(&self, address: &str) -> Child {
        Command::new("curl")
            .args(["-sSN", &format!("http://{address}/api/events"), "-o"])
            .arg(&self.received)
            .kill_on_drop(true)
            .spawn()
            .expect("curl is installed")
    }

    /// The records of the first nodes change in turn, as their coordinators change them.
    async fn move_nodes(&self) {
        let end = Instant::now() + MEASURED_TIME;
        let mut turn = 0;
        while Instant::now() < end {
            let phase = ["waiting", "draining", "rebooting", "returning"][turn / MOVING % 4];
            let name = node_name(turn % MOVING);
            let change = json!({ "metadata": { "annotations": {
                "dogwatch.dev/reboot": record(phase).to_string() } } });
            let request = Request::builder()
                .method(Method::PATCH)
                .uri(format!("/api/v1/nodes/{name}"))
                .header("content-type", "application/merge-patch+json")
                .body(change.to_string().into_bytes());
            let changed = self.client.request::<Value>(request.unwrap()).await;
            changed.expect("a Node that can be changed");
            turn += 1;
            tokio::time::sleep(MOVE_INTERVAL).await;
        }
    }
}

fn node_name(number: usize) -> String {
    format!("node-{number:04}")
}

fn node(number: usize) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": {
        "name": node_name(number),
        "labels": { "pool": "a", "topology.kubernetes.io/zone": format!("z{}", number % 3) } } })
}

fn record(phase: &str) -> Value {
    json!({ "phase": phase, "run": "coordinator/bench", "since": "2026-11-21T04:00:00Z",
        "planned": "2026-11-21T04:00:00Z", "bootId": "00000000-0000-0000-0000-000000000000",
        "trigger": { "source": "request", "reason": "kernel 6.18" },
        "cordonedByUs": phase != "waiting" })
}

/// User and system time so far.
fn processor_seconds(child: &Child) -> f64 {
    let path = format!("/proc/{}/stat", child.id().expect("it runs"));
    let stat = std::fs::read_to_string(path).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    let ticks = fields.skip(11).take(2).map(|it| it.parse::<f64>().unwrap());
    // Linux counts in hundredths of a second on every machine that we build for.
    ticks.sum::<f64>() / 100.0
}
