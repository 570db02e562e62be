//! Which nodes of a cluster the policies would rule.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::explain::FleetSnapshot;
use dogwatch_core::policy::{Policy, ruling_policy};

use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;

/// A check of a file must not hang on a cluster that does not answer.
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(10);

/// By the policy's name: the nodes that it would rule if the files were applied. An error is why
/// that cannot be said.
pub async fn read_ruled_nodes(
    cluster: &ClusterArgs,
    policies: &[Policy],
) -> Result<BTreeMap<String, Vec<String>>, String> {
    let connected = ConnectedCluster::connect_to(cluster).await;
    let connected = connected.map_err(|_| "no cluster is configured".to_owned())?;
    let read = tokio::time::timeout(CLUSTER_TIMEOUT, connected.fleet.read_fleet()).await;
    let fleet = read
        .map_err(|_| "the cluster does not answer".to_owned())?
        .map_err(|error| format!("the cluster cannot be read: {}", error.error_chain()))?;
    Ok(ruled_nodes(&fleet, policies))
}

/// A policy of the files replaces the cluster's of that name.
pub fn ruled_nodes(fleet: &FleetSnapshot, policies: &[Policy]) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Policy> = BTreeMap::new();
    for policy in fleet.policies.known_policies().iter().chain(policies) {
        all.insert(policy.name.to_string(), policy.clone());
    }
    let all: Vec<Policy> = all.into_values().collect();
    let mut ruled: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in fleet.iter_nodes() {
        if let Some(policy) = ruling_policy(&all, &node.labels) {
            let nodes = ruled.entry(policy.name.to_string()).or_default();
            nodes.push(node.name.to_string());
        }
    }
    ruled
}
