//! Waits until a cluster has settled, and reports what is missing if it does not.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::Instant;

use crate::world::controllers::object_queries;

const SETTLE_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The most missing things that a report names.
const MAX_NAMED_MISSING: usize = 5;

/// The report after the time limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("after {within:?} still missing: {}", .missing.join(", "))]
pub struct UnsettledCluster {
    /// The time limit.
    pub within: Duration,
    /// For example `2 nodes to be ready`.
    pub missing: Vec<String>,
}

/// Waits until nothing is missing.
pub async fn wait_until_settled(
    client: &Client,
    nodes: usize,
    within: Duration,
) -> Result<(), UnsettledCluster> {
    let deadline = Instant::now() + within;
    loop {
        let missing = match find_missing(client, nodes).await {
            Ok(missing) if missing.is_empty() => return Ok(()),
            Ok(missing) => missing,
            Err(error) => vec![error.to_string()],
        };
        if Instant::now() >= deadline {
            return Err(UnsettledCluster { within, missing });
        }
        tokio::time::sleep(SETTLE_POLL_INTERVAL).await;
    }
}

async fn find_missing(client: &Client, nodes: usize) -> kube::Result<Vec<String>> {
    let all = ListParams::default();
    let known = Api::<Node>::all(client.clone()).list(&all).await?.items;
    let ready = known
        .iter()
        .filter(|node| object_queries::node_ready_status(node) == "True")
        .count();
    let short = nodes.saturating_sub(ready);
    let mut missing: Vec<String> = (short > 0)
        .then(|| format!("{short} nodes to be ready"))
        .into_iter()
        .collect();
    // A node's taints are removed only after it is Ready; until then no pod can be scheduled there.
    let tainted = known
        .iter()
        .filter(|node| object_queries::node_ready_status(node) == "True" && is_tainted(node))
        .count();
    missing.extend((tainted > 0).then(|| format!("{tainted} nodes to lose their taint")));
    let sets = Api::<ReplicaSet>::all(client.clone())
        .list(&all)
        .await?
        .items;
    missing.extend(
        sets.iter()
            .filter(|set| !has_all_replicas(set))
            .map(|set| format!("ReplicaSet {}", set.name_any())),
    );
    let deployments = Api::<Deployment>::all(client.clone())
        .list(&all)
        .await?
        .items;
    let short = deployments.iter().filter(|one| !is_rolled_out(one));
    missing.extend(short.map(|one| format!("Deployment {}", one.name_any())));
    let daemons = Api::<DaemonSet>::all(client.clone())
        .list(&all)
        .await?
        .items;
    missing.extend(
        daemons
            .iter()
            .filter(|set| !has_all_daemon_pods(set))
            .map(|set| format!("DaemonSet {}", set.name_any())),
    );
    let budgets = Api::<PodDisruptionBudget>::all(client.clone())
        .list(&all)
        .await?
        .items;
    missing.extend(
        budgets
            .iter()
            .filter(|one| !is_budget_current(one))
            .map(|one| format!("budget {}", one.name_any())),
    );
    missing.truncate(MAX_NAMED_MISSING);
    Ok(missing)
}

fn is_tainted(node: &Node) -> bool {
    object_queries::node_taints(node)
        .iter()
        .any(|taint| taint.key == "node.kubernetes.io/not-ready")
}

fn has_all_replicas(set: &ReplicaSet) -> bool {
    let wanted = set
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let status = set.status.as_ref();
    let ready = status.and_then(|status| status.ready_replicas).unwrap_or(0);
    let total = status.map_or(0, |status| status.replicas);
    status.and_then(|status| status.observed_generation) == set.metadata.generation
        && ready == wanted
        && total == wanted
}

fn is_rolled_out(deployment: &Deployment) -> bool {
    let wanted = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let Some(status) = &deployment.status else {
        return false;
    };
    status.observed_generation == deployment.metadata.generation
        && status.ready_replicas.unwrap_or(0) == wanted
}

fn has_all_daemon_pods(set: &DaemonSet) -> bool {
    let Some(status) = &set.status else {
        return false;
    };
    status.observed_generation == set.metadata.generation
        && status.number_ready == status.desired_number_scheduled
}

fn is_budget_current(budget: &PodDisruptionBudget) -> bool {
    let Some(status) = &budget.status else {
        return false;
    };
    status.observed_generation == budget.metadata.generation
        && status.current_healthy >= status.desired_healthy
}
