//! The cluster of a request's Node. Source: specification §10.5.

use super::discovery::RemediationDiscovery;
use super::host_link::RemediationProblem;
use super::node_cluster::{NodeCluster, RemediationCluster};
use super::record::RemediationRecord;
use super::request_target::PowerRequestTarget;

impl RemediationDiscovery<'_> {
    pub(super) fn cluster_of_target(
        &self,
        target: &PowerRequestTarget,
        record: Option<&RemediationRecord>,
    ) -> RemediationCluster {
        let problem = match &target.machine {
            Some(machine) => self.index.cluster_problem(machine, record),
            None => self.unlinked_cluster_problem(&target.cluster, record),
        };
        let world = self.index.world;
        world.remediation_cluster(target.cluster.clone(), problem)
    }

    /// Why nothing is known about the Nodes of a cluster whose Machine is not known.
    pub(super) fn unlinked_cluster_problem(
        &self,
        cluster: &NodeCluster,
        record: Option<&RemediationRecord>,
    ) -> Option<RemediationProblem> {
        let is_confirmed = self.index.is_cluster_confirmed(cluster);
        self.index
            .world
            .cluster_problem(cluster, record, is_confirmed)
    }
}
