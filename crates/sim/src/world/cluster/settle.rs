//! Whether a cluster has come to rest, and what it lacks if not.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::Instant;

use crate::world::controllers::words;

/// How often the cluster is looked at.
const EVERY: Duration = Duration::from_millis(500);
/// So many things that lack are named.
const NAMED: usize = 5;

/// What lacked when the time was up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("after {within:?} still missing: {}", .missing.join(", "))]
pub struct Unsettled {
    /// How long it was waited for.
    pub within: Duration,
    /// What was missing.
    pub missing: Vec<String>,
}

/// Waits until nothing lacks.
pub async fn settled(client: &Client, nodes: usize, within: Duration) -> Result<(), Unsettled> {
    let deadline = Instant::now() + within;
    loop {
        let missing = match missing(client, nodes).await {
            Ok(missing) if missing.is_empty() => return Ok(()),
            Ok(missing) => missing,
            Err(error) => vec![error.to_string()],
        };
        if Instant::now() >= deadline {
            return Err(Unsettled { within, missing });
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn missing(client: &Client, nodes: usize) -> kube::Result<Vec<String>> {
    let all = ListParams::default();
    let known = Api::<Node>::all(client.clone()).list(&all).await?.items;
    let ready = known
        .iter()
        .filter(|node| words::node_ready(node) == "True")
        .count();
    let short = nodes.saturating_sub(ready);
    let mut missing: Vec<String> = (short > 0)
        .then(|| format!("{short} nodes to be ready"))
        .into_iter()
        .collect();
    // A node's taints go only after it is ready: until then no pod can go there.
    let tainted = known
        .iter()
        .filter(|node| words::node_ready(node) == "True" && is_tainted(node))
        .count();
    missing.extend((tainted > 0).then(|| format!("{tainted} nodes to lose their taint")));
    let sets = Api::<ReplicaSet>::all(client.clone())
        .list(&all)
        .await?
        .items;
    missing.extend(
        sets.iter()
            .filter(|set| !is_whole(set))
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
            .filter(|set| !is_everywhere(set))
            .map(|set| format!("DaemonSet {}", set.name_any())),
    );
    let budgets = Api::<PodDisruptionBudget>::all(client.clone())
        .list(&all)
        .await?
        .items;
    missing.extend(
        budgets
            .iter()
            .filter(|one| !is_counted(one))
            .map(|one| format!("budget {}", one.name_any())),
    );
    missing.truncate(NAMED);
    Ok(missing)
}

fn is_tainted(node: &Node) -> bool {
    words::taints(node)
        .iter()
        .any(|taint| taint.key == "node.kubernetes.io/not-ready")
}

fn is_whole(set: &ReplicaSet) -> bool {
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

fn is_everywhere(set: &DaemonSet) -> bool {
    let Some(status) = &set.status else {
        return false;
    };
    status.observed_generation == set.metadata.generation
        && status.number_ready == status.desired_number_scheduled
}

fn is_counted(budget: &PodDisruptionBudget) -> bool {
    let Some(status) = &budget.status else {
        return false;
    };
    status.observed_generation == budget.metadata.generation
        && status.current_healthy >= status.desired_healthy
}
