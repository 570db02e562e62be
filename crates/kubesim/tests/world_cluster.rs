//! A whole simulated cluster on the embedded API server: what it does by itself.

#![allow(
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::sync::Arc;
use std::time::Duration;

use dogwatch_kubesim::api::{ApiServer, ApiServerOptions};
use dogwatch_kubesim::clock::TokioClock;
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::cluster::{
    ClusterClients, ClusterSpec, HeartbeatSpec, SimulatedCluster, SimulatedWorkload,
    WorkloadBudget, WorkloadKind,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, EvictParams, ListParams};
use kube::{Api, Client, ResourceExt as _};

const SECOND: Duration = Duration::from_secs(1);

struct World {
    server: ApiServer,
    cluster: SimulatedCluster,
}

async fn world(spec: ClusterSpec) -> World {
    let epoch = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
    let clock = Arc::new(TokioClock::starting_at(epoch));
    let server = ApiServer::new(Arc::clone(&clock) as Arc<_>, ApiServerOptions::default());
    let cluster = SimulatedCluster::build_and_settle(
        spec,
        ClusterClients::for_embedded_server(&server),
        clock,
    )
    .await
    .unwrap();
    World { server, cluster }
}

fn spec(nodes: u32) -> ClusterSpec {
    let mut web = SimulatedWorkload::new(WorkloadKind::ReplicaSet { replicas: 4 }, "web");
    web.budget = Some(WorkloadBudget::MinAvailable("3".into()));
    let mut database = SimulatedWorkload::new(WorkloadKind::Deployment { replicas: 1 }, "database");
    database.volume = true;
    let logs = SimulatedWorkload::new(WorkloadKind::DaemonSet, "logs");
    let mut spec = ClusterSpec::new(nodes, SimulationSeed(11));
    spec.workloads = vec![web, database, logs];
    spec
}

impl World {
    fn client(&self) -> Client {
        self.server.client_for_user("test")
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client(), "default")
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client())
    }

    async fn pods_of(&self, app: &str) -> Vec<Pod> {
        let labels = format!("app={app}");
        self.pods()
            .list(&ListParams::default().labels(&labels))
            .await
            .unwrap()
            .items
    }

    async fn budget(&self) -> [i32; 4] {
        let api = Api::<PodDisruptionBudget>::namespaced(self.client(), "default");
        let status = api.get("web").await.unwrap().status.unwrap();
        [
            status.expected_pods,
            status.current_healthy,
            status.desired_healthy,
            status.disruptions_allowed,
        ]
        .map(Option::unwrap_or_default)
    }

    async fn attached_to(&self) -> Vec<String> {
        let api = Api::<VolumeAttachment>::all(self.client());
        let all = api.list(&ListParams::default()).await.unwrap().items;
        all.into_iter()
            .filter(|one| one.status.as_ref().is_some_and(|status| status.attached))
            .map(|one| one.spec.node_name)
            .collect()
    }
}

fn node_of(pod: &Pod) -> String {
    pod.spec
        .as_ref()
        .unwrap()
        .node_name
        .clone()
        .unwrap_or_default()
}

fn taints(node: &Node) -> Vec<String> {
    let taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    taints
        .into_iter()
        .map(|taint| {
            format!(
                "{}:{}",
                taint.key.trim_start_matches("node.kubernetes.io/"),
                taint.effect
            )
        })
        .collect()
}

async fn after(time: Duration) {
    tokio::time::sleep(time).await;
}

#[tokio::test(start_paused = true)]
async fn a_built_cluster_is_whole_and_spread_and_its_budgets_are_counted() {
    let mut spec = spec(4);
    spec.control_plane = 1;
    let world = world(spec).await;
    assert_eq!(world.budget().await, [4, 4, 3, 1]);
    let nodes: std::collections::BTreeSet<_> =
        world.pods_of("web").await.iter().map(node_of).collect();
    assert_eq!(nodes.len(), 4, "{nodes:?}");
    assert!(!nodes.contains("cp1"), "its taint keeps them off");
    assert_eq!(world.pods_of("logs").await.len(), 4);
    let database = &world.pods_of("database").await[0];
    assert_eq!(world.attached_to().await, [node_of(database)]);
    let mirror = Api::<Pod>::namespaced(world.client(), "kube-system")
        .get("kube-apiserver-cp1")
        .await
        .unwrap();
    assert_eq!(node_of(&mirror), "cp1");
}

#[tokio::test(start_paused = true)]
async fn an_evicted_pod_comes_back_elsewhere_and_its_budget_recovers() {
    let world = world(spec(4)).await;
    let web = world.pods_of("web").await;
    let pod = &web[0];
    world.nodes().cordon(&node_of(pod)).await.unwrap();
    world
        .pods()
        .evict(&pod.name_any(), &EvictParams::default())
        .await
        .unwrap();
    after(Duration::from_millis(100)).await;
    assert_eq!(world.budget().await[3], 0, "spent");
    // Not the new pod: a budget does not protect a pod that is not ready yet.
    let other = web
        .iter()
        .find(|other| node_of(other) != node_of(pod))
        .unwrap();
    let refused = world
        .pods()
        .evict(&other.name_any(), &EvictParams::default())
        .await
        .unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 429));
    after(5 * SECOND).await;
    assert_eq!(world.budget().await, [4, 4, 3, 1]);
    let nodes: Vec<_> = world.pods_of("web").await.iter().map(node_of).collect();
    assert!(
        nodes.len() == 4 && !nodes.contains(&node_of(pod)),
        "{nodes:?}"
    );
    assert_eq!(
        taints(&world.nodes().get(&node_of(pod)).await.unwrap()),
        ["unschedulable:NoSchedule"]
    );
    world.nodes().uncordon(&node_of(pod)).await.unwrap();
    after(SECOND).await;
    assert_eq!(
        taints(&world.nodes().get(&node_of(pod)).await.unwrap()),
        Vec::<String>::new()
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_nowhere_waits_and_says_why_until_there_is_room() {
    let world = world(spec(2)).await;
    for node in ["n1", "n2"] {
        world.nodes().cordon(node).await.unwrap();
    }
    let pod = &world.pods_of("web").await[0];
    world
        .pods()
        .delete(&pod.name_any(), &DeleteParams::default())
        .await
        .unwrap();
    after(5 * SECOND).await;
    let waiting = world
        .pods_of("web")
        .await
        .into_iter()
        .find(|pod| node_of(pod).is_empty())
        .unwrap();
    let conditions = waiting.status.unwrap().conditions.unwrap();
    let scheduled = conditions
        .iter()
        .find(|condition| condition.type_ == "PodScheduled")
        .unwrap();
    assert_eq!(scheduled.status, "False");
    assert_eq!(
        scheduled.message.as_deref(),
        Some("0/2 nodes are available: 2 node(s) were unschedulable.")
    );
    world.nodes().uncordon("n2").await.unwrap();
    world.cluster.wait_until_settled().await.unwrap();
    assert_eq!(
        node_of(
            &world
                .pods()
                .get(&waiting.metadata.name.unwrap())
                .await
                .unwrap()
        ),
        "n2"
    );
}

#[tokio::test(start_paused = true)]
async fn a_volume_follows_its_pod_and_is_on_one_node_at_a_time() {
    let world = world(spec(3)).await;
    let pod = &world.pods_of("database").await[0];
    world.nodes().cordon(&node_of(pod)).await.unwrap();
    world
        .pods()
        .delete(&pod.name_any(), &DeleteParams::default())
        .await
        .unwrap();
    after(SECOND * 3 / 2).await;
    assert_eq!(
        world.attached_to().await,
        [node_of(pod)],
        "it takes its time to leave"
    );
    after(5 * SECOND).await;
    let successor = &world.pods_of("database").await[0];
    assert_ne!(node_of(successor), node_of(pod));
    assert_eq!(world.attached_to().await, [node_of(successor)]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_falls_silent_is_written_off_and_in_the_end_loses_its_pods() {
    let world = world(spec(3)).await;
    let victim = node_of(&world.pods_of("web").await[0]);
    world.cluster.find_kubelet(&victim).unwrap().power_off();
    after(30 * SECOND).await;
    assert_eq!(
        taints(&world.nodes().get(&victim).await.unwrap()),
        Vec::<String>::new()
    );
    after(20 * SECOND).await;
    assert_eq!(
        taints(&world.nodes().get(&victim).await.unwrap()),
        ["unreachable:NoSchedule", "unreachable:NoExecute"]
    );
    assert!(
        world.budget().await[1] < 4,
        "its pods are not ready any more"
    );
    after(301 * SECOND).await;
    let deleting = |pods: &[Pod]| {
        pods.iter()
            .filter(|pod| node_of(pod) == victim)
            .all(|pod| pod.metadata.deletion_timestamp.is_some())
    };
    assert!(deleting(&world.pods_of("web").await));
    assert!(
        !deleting(&world.pods_of("logs").await),
        "a DaemonSet's pod stays"
    );
    after(10 * SECOND).await;
    // The pods that cannot end on the dead node stay: expected, and not healthy.
    assert_eq!(world.budget().await[1..], [4, 3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_reboot_without_a_drain_ends_with_everything_whole() {
    let world = world(spec(3)).await;
    world
        .cluster
        .find_kubelet("n2")
        .unwrap()
        .reboot_taking(90 * SECOND);
    after(60 * SECOND).await;
    assert!(world.budget().await[1] < 4);
    after(60 * SECOND).await;
    world.cluster.wait_until_settled().await.unwrap();
    assert_eq!(world.budget().await, [4, 4, 3, 1]);
    assert_eq!(
        taints(&world.nodes().get("n2").await.unwrap()),
        Vec::<String>::new()
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_deleted_node_and_a_deleted_owner_leave_behind_is_collected() {
    let world = world(spec(3)).await;
    world.cluster.find_kubelet("n1").unwrap().power_off();
    world
        .nodes()
        .delete("n1", &DeleteParams::default())
        .await
        .unwrap();
    let deployments =
        Api::<k8s_openapi::api::apps::v1::Deployment>::namespaced(world.client(), "default");
    deployments
        .delete("database", &DeleteParams::default())
        .await
        .unwrap();
    after(60 * SECOND).await;
    let all = world
        .pods()
        .list(&ListParams::default())
        .await
        .unwrap()
        .items;
    assert!(all.iter().all(|pod| node_of(pod) != "n1"));
    assert!(world.pods_of("database").await.is_empty());
    assert_eq!(world.pods_of("web").await.len(), 4);
    assert_eq!(world.attached_to().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_cut_off_controller_manager_catches_up() {
    let world = world(spec(3)).await;
    let manager = dogwatch_kubesim::world::cluster::CONTROLLER_MANAGER_USER;
    world.server.set_partitioned(manager, true);
    for pod in world.pods_of("web").await {
        world
            .pods()
            .delete(&pod.name_any(), &DeleteParams::default())
            .await
            .unwrap();
    }
    after(120 * SECOND).await;
    assert!(world.pods_of("web").await.is_empty());
    world.server.set_partitioned(manager, false);
    after(60 * SECOND).await;
    assert_eq!(world.budget().await, [4, 4, 3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_cluster_makes_no_calls_and_still_notices_a_dead_node() {
    let mut spec = spec(3);
    spec.heartbeat = HeartbeatSpec::Quiet;
    spec.shared_watch = true;
    let world = world(spec).await;
    after(30 * SECOND).await;
    world.server.clear_audit_log();
    after(240 * SECOND).await;
    let calls = world.server.audit_log();
    assert!(calls.is_empty(), "{calls:?}");
    world.cluster.find_kubelet("n1").unwrap().power_off();
    after(50 * SECOND).await;
    assert_eq!(taints(&world.nodes().get("n1").await.unwrap()).len(), 2);
}

#[test]
fn the_same_seed_makes_the_same_calls() {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let world = world(spec(5)).await;
            world.cluster.find_kubelet("n3").unwrap().reboot();
            for pod in world.pods_of("web").await {
                let _ = world
                    .pods()
                    .evict(&pod.name_any(), &EvictParams::default())
                    .await;
            }
            after(90 * SECOND).await;
            format!("{:?}", world.server.audit_log())
        })
    };
    let first = run();
    assert_eq!(first, run());
    assert!(first.len() > 10_000);
}
