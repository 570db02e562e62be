//! The simulated kubelet on the embedded API server.

#![allow(
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::sync::Arc;
use std::time::Duration;

use dogwatch_kubesim::api::{ApiServer, ApiServerOptions};
use dogwatch_kubesim::clock::TokioClock;
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::kubelet::{
    KubeletConfig, KubeletHandle, MachinePower, SimulatedKubelet,
};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

const SECOND: Duration = Duration::from_secs(1);

struct World {
    server: ApiServer,
    clock: Arc<TokioClock>,
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(TokioClock::starting_at(
            "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap(),
        ));
        let server = ApiServer::new(Arc::clone(&clock) as Arc<_>, ApiServerOptions::default());
        let world = Self { server, clock };
        for namespace in ["kube-node-lease", "kube-system", "default"] {
            let object = json!({ "metadata": { "name": namespace } });
            let object = serde_json::from_value(object).unwrap();
            let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(world.client());
            // Some objects exist already.
            let _ = api.create(&PostParams::default(), &object).await;
        }
        world
    }

    fn client(&self) -> Client {
        self.server.client_for_user("test")
    }

    fn config(&self) -> KubeletConfig {
        KubeletConfig::new("n1", SimulationSeed(7), Arc::clone(&self.clock) as Arc<_>)
    }

    fn start(&self, config: KubeletConfig) -> KubeletHandle {
        SimulatedKubelet::start_machine(self.server.client_for_user("system:node:n1"), config)
    }

    async fn node(&self) -> Node {
        Api::<Node>::all(self.client()).get("n1").await.unwrap()
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client(), "default")
    }

    async fn run_pod(&self, name: &str, stops_after: &str) -> Pod {
        let pod = json!({
            "metadata": { "name": name, "annotations": { "sim.dogwatch.dev/stops-after": stops_after } },
            "spec": { "nodeName": "n1", "containers": [{ "name": "main", "image": "sim" }] },
        });
        let pod = serde_json::from_value(pod).unwrap();
        self.pods()
            .create(&PostParams::default(), &pod)
            .await
            .unwrap()
    }
}

fn boot_id(node: &Node) -> String {
    let info = node.status.as_ref().unwrap().node_info.as_ref().unwrap();
    info.boot_id.clone()
}

fn ready(node: &Node) -> String {
    let conditions = node.status.as_ref().unwrap().conditions.as_ref().unwrap();
    conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")
        .unwrap()
        .status
        .clone()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| {
        all.iter()
            .any(|one| one.type_ == "Ready" && one.status == "True")
    })
}

async fn after(time: Duration) {
    tokio::time::sleep(time).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_registers_becomes_ready_and_keeps_its_lease() {
    let world = World::new().await;
    let kubelet = world.start(world.config());
    after(SECOND).await;
    assert_eq!(ready(&world.node().await), "False");
    after(2 * SECOND).await;
    let node = world.node().await;
    assert_eq!(ready(&node), "True");
    assert_eq!(
        *kubelet.watch_power().borrow(),
        MachinePower::On(boot_id(&node))
    );
    let leases: Api<Lease> = Api::namespaced(world.client(), "kube-node-lease");
    let renewed = || async {
        leases
            .get("n1")
            .await
            .unwrap()
            .spec
            .unwrap()
            .renew_time
            .unwrap()
            .0
    };
    let first = renewed().await;
    after(10 * SECOND).await;
    assert_eq!(renewed().await.duration_since(first).as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_pod_runs_stops_in_its_own_time_and_its_object_goes() {
    let world = World::new().await;
    let _kubelet = world.start(world.config());
    after(3 * SECOND).await;
    world.run_pod("a", "5s").await;
    after(2 * SECOND).await;
    assert!(is_ready(&world.pods().get("a").await.unwrap()));
    world
        .pods()
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    after(4 * SECOND).await;
    assert!(
        world
            .pods()
            .get("a")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_some()
    );
    after(2 * SECOND).await;
    assert!(world.pods().get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_stops_says_nothing_and_finishes_nothing() {
    let world = World::new().await;
    let kubelet = world.start(world.config());
    after(3 * SECOND).await;
    world.run_pod("a", "5s").await;
    after(2 * SECOND).await;
    world
        .pods()
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    after(SECOND).await;
    kubelet.power_off();
    let calls = world.server.audit_log().len();
    after(60 * SECOND).await;
    let said = world.server.audit_log()[calls..]
        .iter()
        .filter(|entry| entry.user.contains("node"))
        .count();
    assert_eq!(said, 0);
    assert_eq!(ready(&world.node().await), "True", "as it was left");
    assert!(world.pods().get("a").await.is_ok());
    assert_eq!(*kubelet.watch_power().borrow(), MachinePower::Off);
}

#[tokio::test(start_paused = true)]
async fn a_reboot_shows_a_new_boot_id_and_starts_the_pods_anew() {
    let world = World::new().await;
    let kubelet = world.start(world.config());
    after(3 * SECOND).await;
    let before = world.node().await;
    world.run_pod("stays", "1s").await;
    world.run_pod("goes", "20s").await;
    after(2 * SECOND).await;
    world
        .pods()
        .delete("goes", &DeleteParams::default())
        .await
        .unwrap();
    kubelet.reboot();
    after(29 * SECOND).await;
    assert_eq!(boot_id(&world.node().await), boot_id(&before));
    after(4 * SECOND).await;
    let node = world.node().await;
    assert_ne!(boot_id(&node), boot_id(&before));
    assert_eq!(ready(&node), "True");
    let info = |node: &Node| node.status.clone().unwrap().node_info.unwrap();
    assert_eq!(
        info(&node).machine_id,
        info(&before).machine_id,
        "the machine is the same"
    );
    assert!(
        world.pods().get_opt("goes").await.unwrap().is_none(),
        "it ended with the machine"
    );
    let pod = world.pods().get("stays").await.unwrap();
    assert!(is_ready(&pod));
    assert_eq!(
        pod.status.unwrap().container_statuses.unwrap()[0].restart_count,
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_mirror_pod_is_there_and_comes_back_when_deleted() {
    let world = World::new().await;
    let mut config = world.config();
    config.static_pods = vec!["etcd".into()];
    let _kubelet = world.start(config);
    after(3 * SECOND).await;
    let pods: Api<Pod> = Api::namespaced(world.client(), "kube-system");
    let first = pods.get("etcd-n1").await.unwrap();
    assert!(is_ready(&first));
    assert_eq!(first.owner_references()[0].kind, "Node");
    pods.delete("etcd-n1", &DeleteParams::default())
        .await
        .unwrap();
    after(5 * SECOND).await;
    assert_ne!(pods.get("etcd-n1").await.unwrap().uid(), first.uid());
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_was_cut_off_catches_up() {
    let world = World::new().await;
    let _kubelet = world.start(world.config());
    after(3 * SECOND).await;
    world.run_pod("a", "1s").await;
    after(2 * SECOND).await;
    world.server.set_partitioned("system:node:n1", true);
    world
        .pods()
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    after(120 * SECOND).await;
    assert!(world.pods().get("a").await.is_ok());
    world.server.set_partitioned("system:node:n1", false);
    after(40 * SECOND).await;
    assert!(world.pods().get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_kubelet_makes_no_more_calls() {
    let world = World::new().await;
    let kubelet = world.start(world.config());
    after(3 * SECOND).await;
    drop(kubelet);
    let calls = world.server.audit_log().len();
    after(60 * SECOND).await;
    assert_eq!(world.server.audit_log().len(), calls);
}
