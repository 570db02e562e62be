//! The simulated world around a real API server: it must write the same there as on the embedded
//! one.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_kubesim::clock::TokioClock;
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::cluster::{
    ClusterClients, ClusterSpec, SimulatedCluster, SimulatedWorkload, WorkloadBudget, WorkloadKind,
};
use dogwatch_kubesim::world::controllers::ControllerName;
use dogwatch_testbed::ControlPlane;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{EvictParams, ListParams};
use kube::{Api, Client, ResourceExt as _};
use support::client_that_asks_once;

const SHORT: Duration = Duration::from_millis(200);

async fn cluster(client: &Client, spec: ClusterSpec) -> SimulatedCluster {
    #[expect(
        clippy::disallowed_methods,
        reason = "a real API server has the real time"
    )]
    let clock = Arc::new(TokioClock::starting_at(jiff::Timestamp::now()));
    SimulatedCluster::build_and_settle(
        spec,
        ClusterClients::with_shared_client(client.clone()),
        clock,
    )
    .await
    .unwrap()
}

fn spec() -> ClusterSpec {
    let mut spec = ClusterSpec::new(3, SimulationSeed(5));
    spec.control_plane = 1;
    spec.ready_after = SHORT;
    spec.starts_after = SHORT;
    spec.stops_after = SHORT;
    spec.settles_within = Duration::from_mins(3);
    let mut web = SimulatedWorkload::new(WorkloadKind::ReplicaSet { replicas: 4 }, "web");
    web.budget = Some(WorkloadBudget::MinAvailable("50%".into()));
    let mut api = SimulatedWorkload::new(WorkloadKind::Deployment { replicas: 3 }, "api");
    api.budget = Some(WorkloadBudget::MaxUnavailable("1".into()));
    let mut queue = SimulatedWorkload::new(WorkloadKind::ReplicaSet { replicas: 3 }, "queue");
    queue.budget = Some(WorkloadBudget::MinAvailable("2".into()));
    let mut database = SimulatedWorkload::new(WorkloadKind::Deployment { replicas: 1 }, "database");
    database.volume = true;
    let logs = SimulatedWorkload::new(WorkloadKind::DaemonSet, "logs");
    spec.workloads = vec![web, api, queue, database, logs];
    spec
}

/// The status of each budget, without what differs from server to server.
async fn budgets(client: &Client) -> BTreeMap<String, String> {
    let api = Api::<PodDisruptionBudget>::namespaced(client.clone(), "default");
    let all = api.list(&ListParams::default()).await.unwrap();
    all.into_iter()
        .map(|budget| {
            let mut status = budget.status.clone().unwrap();
            for condition in status.conditions.iter_mut().flatten() {
                condition.last_transition_time.0 = jiff::Timestamp::UNIX_EPOCH;
            }
            status.disrupted_pods = None;
            (budget.name_any(), serde_json::to_string(&status).unwrap())
        })
        .collect()
}

/// Evicts as many of these pods as the budget allows while their node, cut off, lets none of them
/// end. After that the counts stay the same.
async fn evict_web_on_dead_nodes(client: &Client, cluster: &SimulatedCluster) -> usize {
    for kubelet in cluster.kubelets().values() {
        kubelet.power_off();
    }
    let pods = Api::<Pod>::namespaced(client.clone(), "default");
    let web = pods
        .list(&ListParams::default().labels("app=web"))
        .await
        .unwrap();
    let mut evicted = 0;
    for pod in web {
        evicted += usize::from(
            pods.evict(&pod.name_any(), &EvictParams::default())
                .await
                .is_ok(),
        );
    }
    evicted
}

/// Of `web`, `api` and `queue`.
const ALL_HEALTHY: [usize; 3] = [4, 3, 3];

/// Waits until both count this number of healthy pods, then compares everything else. Before its
/// first count the real controller's status is no measure.
async fn alike_with(ours: &Client, theirs: &Client, healthy: [usize; 3]) {
    for client in [theirs, ours] {
        eventually(&healthy, async || {
            let api = Api::<PodDisruptionBudget>::namespaced(client.clone(), "default");
            let counted = async |name| {
                let status = api.get(name).await.unwrap().status.unwrap();
                usize::try_from(status.current_healthy.unwrap_or_default()).unwrap()
            };
            [
                counted("web").await,
                counted("api").await,
                counted("queue").await,
            ]
        })
        .await;
    }
    eventually(&budgets(theirs).await, async || budgets(ours).await).await;
}

async fn eventually<T: PartialEq + std::fmt::Debug>(wanted: &T, mut look: impl AsyncFnMut() -> T) {
    let deadline = tokio::time::Instant::now() + Duration::from_mins(2);
    loop {
        let seen = look().await;
        if seen == *wanted {
            return;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "still {seen:?}, not {wanted:?}"
        );
        tokio::time::sleep(SHORT).await;
    }
}

#[tokio::test]
async fn a_cluster_comes_up_drains_and_reboots_around_a_real_api_server() {
    let control_plane = ControlPlane::builder()
        .with_controllers([])
        .start()
        .await
        .unwrap();
    let client = client_that_asks_once(control_plane.admin_kubeconfig()).await;
    let cluster = cluster(&client, spec()).await;
    let nodes = Api::<Node>::all(client.clone());
    let pods = Api::<Pod>::namespaced(client.clone(), "default");
    let on_n1 = ListParams::default()
        .fields("spec.nodeName=n1")
        .labels("app!=logs");

    nodes.cordon("n1").await.unwrap();
    for pod in pods.list(&on_n1).await.unwrap() {
        let _ = pods.evict(&pod.name_any(), &EvictParams::default()).await;
    }
    eventually(&true, async || {
        let left = pods.list(&on_n1).await.unwrap().items;
        for pod in &left {
            let _ = pods.evict(&pod.name_any(), &EvictParams::default()).await;
        }
        left.is_empty()
    })
    .await;
    nodes.uncordon("n1").await.unwrap();

    let boot = async || {
        nodes
            .get("n1")
            .await
            .unwrap()
            .status
            .unwrap()
            .node_info
            .unwrap()
            .boot_id
    };
    let before = boot().await;
    cluster.find_kubelet("n1").unwrap().reboot_taking(SHORT);
    eventually(&true, async || boot().await != before).await;
    cluster.wait_until_settled().await.unwrap();
}

#[tokio::test]
async fn budgets_are_counted_as_the_real_controller_counts_them() {
    let bare = ControlPlane::builder()
        .with_controllers([])
        .start()
        .await
        .unwrap();
    let ours = client_that_asks_once(bare.admin_kubeconfig()).await;
    let our_cluster = cluster(&ours, spec()).await;
    let real = ControlPlane::builder()
        .with_controllers(["disruption"])
        .start()
        .await
        .unwrap();
    let theirs = client_that_asks_once(real.admin_kubeconfig()).await;
    let mut without = spec();
    without.controllers.remove(&ControllerName::Disruption);
    let their_cluster = cluster(&theirs, without).await;

    alike_with(&ours, &theirs, ALL_HEALTHY).await;
    let evicted = evict_web_on_dead_nodes(&theirs, &their_cluster).await;
    assert_eq!(evict_web_on_dead_nodes(&ours, &our_cluster).await, evicted);
    let [web, api, queue] = ALL_HEALTHY;
    alike_with(&ours, &theirs, [web - evicted, api, queue]).await;
}
