//! The observer, beside a reboot played by hand.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::sync::Arc;
use std::time::Duration;

use dogwatch_sim::api::{ApiServer, Options};
use dogwatch_sim::clock::TokioClock;
use dogwatch_sim::seed::Seed;
use dogwatch_sim::world::cluster::{Clients, Cluster, ClusterSpec, Workload, WorkloadKind};
use dogwatch_sim::world::invariants::{Limits, Observer, Report};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{EvictParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

const SECOND: Duration = Duration::from_secs(1);

struct World {
    server: ApiServer,
    cluster: Cluster,
    observer: Observer,
}

async fn world() -> World {
    let epoch = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
    let clock = Arc::new(TokioClock::starting_at(epoch));
    let server = ApiServer::new(Arc::clone(&clock) as Arc<_>, Options::default());
    let mut spec = ClusterSpec::new(3, Seed(3));
    spec.workloads = vec![
        Workload::new(WorkloadKind::ReplicaSet { replicas: 6 }, "web"),
        Workload::new(WorkloadKind::DaemonSet, "logs"),
    ];
    let clients = Clients::embedded(&server);
    let cluster = Cluster::build(spec, clients, Arc::clone(&clock) as Arc<_>)
        .await
        .unwrap();
    let observer = Observer::start(&server.client("observer"), clock, Limits::new());
    World {
        server,
        cluster,
        observer,
    }
}

impl World {
    async fn phase(&self, node: &str, phase: Option<&str>) {
        let time = "2026-01-01T00:00:00Z";
        let record = phase.map(|phase| {
            let record = json!({
                "phase": phase, "run": "coordinator/r", "since": time, "planned": time,
                "trigger": { "source": "request" }, "bootId": "b", "cordonedByUs": true,
            });
            record.to_string()
        });
        let patch = json!({
            "metadata": { "annotations": { "dogwatch.dev/reboot": record } },
            "spec": { "unschedulable": phase.is_some() },
        });
        let nodes = Api::<Node>::all(self.server.client("test"));
        nodes
            .patch(node, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    async fn drain(&self, node: &str) {
        let pods = Api::<Pod>::namespaced(self.server.client("test"), "default");
        let there = ListParams::default()
            .fields(&format!("spec.nodeName={node}"))
            .labels("app=web");
        for pod in pods.list(&there).await.unwrap() {
            pods.evict(&pod.name_any(), &EvictParams::default())
                .await
                .unwrap();
        }
        tokio::time::sleep(3 * SECOND).await;
    }

    async fn reboot(&self, node: &str, drained: bool) -> Report {
        self.phase(node, Some("draining")).await;
        if drained {
            self.drain(node).await;
        }
        self.phase(node, Some("rebooting")).await;
        self.cluster.kubelet(node).unwrap().reboot();
        tokio::time::sleep(60 * SECOND).await;
        self.phase(node, None).await;
        tokio::time::sleep(SECOND).await;
        self.observer.report()
    }
}

#[tokio::test(start_paused = true)]
async fn a_right_reboot_is_one_boot_and_breaks_nothing() {
    let world = world().await;
    let report = world.reboot("n1", true).await;
    assert_eq!(report.violations, []);
    assert_eq!(report.pods_moved, 2);
    assert_eq!(report.most_out["default"], 1);
    let boots: Vec<_> = report.nodes.values().map(|node| node.boots).collect();
    assert_eq!(boots, [1, 0, 0]);
    assert_eq!(report.nodes["n1"].out_for.as_secs(), 63);
}

#[tokio::test(start_paused = true)]
async fn a_reboot_under_running_pods_is_told_and_so_is_a_second_node_out() {
    let world = world().await;
    world.phase("n2", Some("draining")).await;
    let report = world.reboot("n1", false).await;
    let violations: Vec<_> = report.violations.iter().map(ToString::to_string).collect();
    assert!(
        violations[0].contains("2 nodes of group default are out, 1 may be: n1, n2"),
        "{violations:?}"
    );
    let under = violations
        .iter()
        .filter(|one| one.contains("n1 was rebooted under pod default/web-"));
    assert_eq!(under.count(), 2, "{violations:?}");
}
