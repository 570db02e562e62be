//! kured beside the coordinator, in one run, on one API server: what each takes at rest, and six
//! machines that all need a reboot.
//!
//! `KURED` names kured's program: `cargo xtask bench kured --kured PATH`. It is built from its
//! source by `go build -o PATH ./cmd/kured`. Without it, nothing is measured.
//!
//! kured looks once in `--period`, which is an hour by default; here it is a minute. It is given
//! all rights, and process namespaces of its own, because it enters that of process 1.

#[path = "../tests/real/support/api.rs"]
#[expect(dead_code, reason = "the tests watch, this only asks")]
mod api;
mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use dogwatch_testbed::bench::print_figure;
use dogwatch_testbed::{AuditEntry, ControlPlane};
use futures::StreamExt as _;
use serde_json::{Value, json};

use api::Api;
use support::fleet::{Machine, ProgramArguments};
use support::pod::PodCommand;
use support::shipped::{build_coordinator, install_rights};
use support::{LEFT_ALONE, ProcessMemory};

const MACHINES: usize = 6;
const PODS_OF_EACH: usize = 10;
/// kured looks at nothing for up to 90 s after its start.
const KURED_STARTS_WITHIN: Duration = Duration::from_secs(95);
/// Limit for six reboots.
const PATIENCE: Duration = Duration::from_hours(1);
/// Between two nodes that are out.
const GAP_REACH: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_millis(200);

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/dogwatch/leases";
const DAEMON_SET: &str = "/apis/apps/v1/namespaces/kube-system/daemonsets/kured";
const KURED_LOCK: &str = "weave.works~1kured-node-lock";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let Some(kured) = std::env::var_os("KURED").map(PathBuf::from) else {
        return eprintln!(
            "kured is not measured: build it by `go build -o PATH ./cmd/kured` in a clone of its \
             repository, and give --kured PATH"
        );
    };
    let coordinator = build_coordinator();
    let kured = Contender::start_kured(&kured).await.measure().await;
    let ours = Contender::start_ours(&coordinator).await.measure().await;
    compare(&ours, &kured);
}

/// A program that reboots machines, with an API server of its own.
struct Contender {
    plane: ControlPlane,
    api: Api,
    program: Arc<PodCommand>,
    arguments: ProgramArguments,
    account: [&'static str; 2],
    starts_within: Duration,
    is_lock_request: fn(&AuditEntry) -> bool,
    /// Where its lock is, and whether that holds anything.
    lock: (&'static str, fn(&Value) -> bool),
}

struct Measured {
    memory: ProcessMemory,
    first_request: Duration,
    all_back: Duration,
    /// From a node's uncordon to the next node's cordon, in order of length.
    gaps: Vec<Duration>,
    reboots: u32,
    calls: usize,
}

impl Contender {
    async fn start_kured(program: &std::path::Path) -> Self {
        let (plane, api) = start_plane().await;
        let account = ["kube-system", "kured"];
        install_kured(&plane).await;
        Self {
            program: Arc::new(PodCommand::with_own_processes(&plane, program, account).await),
            plane,
            api,
            arguments: kured_arguments,
            account,
            starts_within: KURED_STARTS_WITHIN,
            is_lock_request: |entry| entry.verb == "update" && entry.resource == "daemonsets",
            lock: (DAEMON_SET, |daemon_set| {
                let annotation = format!("/metadata/annotations/{KURED_LOCK}");
                daemon_set.pointer(&annotation).is_none()
            }),
        }
    }

    async fn start_ours(program: &std::path::Path) -> Self {
        let (plane, api) = start_plane().await;
        let account = ["dogwatch", "dogwatch-coordinator"];
        install_rights(&plane).await;
        Self {
            program: Arc::new(PodCommand::with_account(&plane, program, account).await),
            plane,
            api,
            arguments: coordinator_arguments,
            account,
            starts_within: LEFT_ALONE,
            is_lock_request: |entry| entry.verb == "patch" && entry.resource == "leases",
            lock: (LEASES, |leases| {
                let mut leases = leases["items"].as_array().into_iter().flatten();
                leases.all(|lease| {
                    lease["spec"]["holderIdentity"]
                        .as_str()
                        .is_none_or(str::is_empty)
                })
            }),
        }
    }

    async fn measure(self) -> Measured {
        let machines = self.boot_machines().await;
        tokio::time::sleep(LEFT_ALONE).await;
        let memory = machines[0].read_memory().await;
        tokio::time::sleep(self.starts_within.saturating_sub(LEFT_ALONE)).await;
        let mark = self.plane.audit_mark().await.expect("an audit log");
        let cordons = CordonTimes::start(&self.api).await;
        let (begun, wall) = (Instant::now(), SystemTime::now());
        for machine in &machines {
            machine.want_reboot();
        }
        let back = tokio::time::timeout(PATIENCE, self.wait_until_back(&machines)).await;
        back.expect("all machines reboot and come back");
        let all_back = begun.elapsed();
        let entries = self.plane.audit_entries_since(mark).await;
        let user = format!("system:serviceaccount:{}", self.account.join(":"));
        let entries = entries.expect("an audit log").into_iter();
        let own: Vec<_> = entries.filter(|entry| entry.user == user).collect();
        let first = own.iter().find(|entry| (self.is_lock_request)(entry));
        let first: jiff::Timestamp = first
            .expect("it asked for the lock")
            .received
            .parse()
            .expect("RFC 3339");
        Measured {
            memory,
            first_request: SystemTime::from(first)
                .duration_since(wall)
                .unwrap_or_default(),
            all_back,
            gaps: cordons.list_gaps(),
            reboots: machines.iter().map(|machine| machine.count_reboots()).sum(),
            calls: own.iter().filter(|entry| entry.is_request()).count(),
        }
    }

    async fn boot_machines(&self) -> Vec<Arc<Machine>> {
        let mut machines = Vec::new();
        for number in 0..MACHINES {
            let name = format!("node-{number}");
            let client = self.api.0.clone();
            let machine = Machine::boot(client, &name, &self.program, self.arguments).await;
            while self.api.get(&format!("{NODES}/{name}")).await.is_none() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            for pod in 0..PODS_OF_EACH {
                self.api.create(PODS, &pod_on(&name, pod)).await;
            }
            machines.push(machine);
        }
        machines
    }

    /// Until each machine has rebooted, can be used and nobody holds the lock.
    async fn wait_until_back(&self, machines: &[Arc<Machine>]) {
        while !self.are_back(machines).await {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn are_back(&self, machines: &[Arc<Machine>]) -> bool {
        if machines.iter().any(|machine| machine.count_reboots() == 0) {
            return false;
        }
        let nodes = self.api.get(NODES).await.expect("a list");
        let mut nodes = nodes["items"].as_array().into_iter().flatten();
        let (path, is_free) = self.lock;
        nodes.all(|node| node["spec"]["unschedulable"] != true)
            && is_free(&self.api.get(path).await.expect("its lock"))
    }
}

/// When a watch showed that nodes were cordoned and uncordoned.
struct CordonTimes(Arc<Mutex<Vec<(Instant, bool)>>>);

impl CordonTimes {
    async fn start(api: &Api) -> Self {
        let (nodes, version) = api.list(NODES).await.expect("a list");
        let names = nodes
            .iter()
            .map(|node| node["metadata"]["name"].to_string());
        let mut cordoned: BTreeMap<String, bool> = names.map(|name| (name, false)).collect();
        let changes = api.watch(NODES, &version).await.expect("a watch");
        let times: Arc<Mutex<Vec<(Instant, bool)>>> = Arc::default();
        let seen = Arc::clone(&times);
        tokio::spawn(async move {
            let mut changes = std::pin::pin!(changes);
            while let Some(change) = changes.next().await {
                let node = &change["object"];
                let now = node["spec"]["unschedulable"] == true;
                let before = cordoned.insert(node["metadata"]["name"].to_string(), now);
                if before.is_some_and(|before| before != now) {
                    let mut seen = seen.lock().expect("no task panics");
                    seen.push((Instant::now(), now));
                }
            }
        });
        Self(times)
    }

    fn list_gaps(&self) -> Vec<Duration> {
        let times = self.0.lock().expect("no task panics");
        let pairs = times.windows(2).filter(|pair| !pair[0].1 && pair[1].1);
        let mut gaps: Vec<Duration> = pairs.map(|pair| pair[1].0 - pair[0].0).collect();
        gaps.sort();
        gaps
    }
}

async fn start_plane() -> (ControlPlane, Api) {
    let plane = ControlPlane::builder().with_controllers([]).start().await;
    let plane = plane.expect("the control plane starts");
    let client = dogwatch_k8s::connect::connect_by_kubeconfig(plane.admin_kubeconfig()).await;
    (plane, Api(client.expect("a kubeconfig")))
}

/// An account with all rights, and the DaemonSet that carries kured's lock.
async fn install_kured(plane: &ControlPlane) {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "name": "kured", "namespace": "kube-system" },
    });
    let rights = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": "kured" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": "kured", "namespace": "kube-system" }],
    });
    let labels = json!({ "name": "kured" });
    let daemon_set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": "kured", "namespace": "kube-system" },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "kured", "image": "none" }] },
            },
        },
    });
    let list =
        json!({ "apiVersion": "v1", "kind": "List", "items": [account, rights, daemon_set] });
    let list = list.to_string();
    let created = plane.run_kubectl(&["create", "-f", "-"], &list);
    created.await.expect("kured's objects");
    let in_force = plane.wait_until_rights_are_in_force();
    in_force.await.expect("the rights are in force");
}

fn pod_on(node: &str, number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": format!("{node}-{number}") },
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 5,
            "containers": [{ "name": "main", "image": "none" }],
        },
    })
}

fn kured_arguments(machine: &Machine) -> Vec<String> {
    vec![
        format!("--node-id={}", machine.name),
        format!(
            "--reboot-sentinel={}",
            machine.file("reboot-needed").display()
        ),
        format!("--reboot-command={}", machine.reboot_command()),
        "--period=1m".to_owned(),
        "--metrics-host=127.0.0.1".to_owned(),
        "--metrics-port=0".to_owned(),
    ]
}

fn coordinator_arguments(machine: &Machine) -> Vec<String> {
    vec![
        format!("--node-name={}", machine.name),
        format!("--sentinel={}", machine.file("reboot-needed").display()),
        format!("--boot-id-file={}", machine.file("boot-id").display()),
        format!("--reboot-command={}", machine.reboot_command()),
        "--listen=127.0.0.1:0".to_owned(),
        "--probe-listen=127.0.0.1:0".to_owned(),
    ]
}

fn compare(ours: &Measured, kured: &Measured) {
    let memory = |measured: &Measured| {
        let memory = &measured.memory;
        format!(
            "{:.1} MiB, {:.1} anonymous",
            memory.resident, memory.anonymous
        )
    };
    print_figure(
        "memory at rest, 20 s after the start",
        &memory(ours),
        &format!("less than kured's {}", memory(kured)),
        ours.memory.resident < kured.memory.resident,
    );
    print_figure(
        "six sentinels → the first request for the lock",
        &format!("{:.3} s", ours.first_request.as_secs_f64()),
        &format!(
            "sooner than kured's {:.1} s, which looks once a minute",
            kured.first_request.as_secs_f64()
        ),
        ours.first_request < kured.first_request,
    );
    print_figure(
        "six machines, one at a time: sentinels → all back, the lock free",
        &format!(
            "{:.0} s, of it 30 s each until it counts as settled",
            ours.all_back.as_secs_f64()
        ),
        &format!(
            "sooner than kured's {:.0} s, which looks once a minute and for nothing in the first",
            kured.all_back.as_secs_f64()
        ),
        ours.all_back < kured.all_back,
    );
    let gaps = |measured: &Measured| {
        let seconds = measured.gaps.iter().map(Duration::as_secs_f64);
        let seconds = seconds.map(|gap| format!("{gap:.3}"));
        format!("{} s", seconds.collect::<Vec<_>>().join(", "))
    };
    print_figure(
        "a node is uncordoned → the next one is cordoned",
        &gaps(ours),
        &format!("<= 0.1 s (kured: {})", gaps(kured)),
        ours.gaps
            .last()
            .is_some_and(|longest| *longest <= GAP_REACH),
    );
    print_figure(
        "their reboots",
        &format!("{}", ours.reboots),
        &format!("{MACHINES} (kured: {})", kured.reboots),
        ours.reboots == u32::try_from(MACHINES).expect("few"),
    );
    print_figure(
        "their calls of the API server",
        &format!("{}", ours.calls),
        &format!("- (kured: {})", kured.calls),
        true,
    );
}
