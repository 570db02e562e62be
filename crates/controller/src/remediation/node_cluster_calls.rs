//! The calls in the cluster of a remediation's Node: the management cluster, or a workload cluster.

use std::sync::Arc;

use dogwatch_core::Now;
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::{self, ClusterPolicies};
use dogwatch_core::remediation::{HeldRemediationLease, LeaseConflictRule, Remediation};
use dogwatch_k8s::cluster::ClusterView;
use dogwatch_k8s::lock::{
    LeaseFreeOutcome, LeaseTakeOutcome, RemediationLeaseClient, RemediationLeaseHold,
};
use dogwatch_k8s::remediation::RemediationClient;

use super::remediation_ops::{RemediationAnswer, RemediationCallError};

pub(super) struct NodeClusterCalls {
    pub(super) client: RemediationClient,
    pub(super) leases: RemediationLeaseClient,
    pub(super) view: Arc<ClusterView>,
}

impl NodeClusterCalls {
    pub(super) async fn take_lease(
        &self,
        case: &Remediation,
        node: &NodeName,
        control_plane: bool,
        on_conflict: LeaseConflictRule,
        now: Now,
    ) -> Result<RemediationAnswer, RemediationCallError> {
        let (subject, group) = (case.subject.to_string(), self.group_of_node(case, node));
        let leases = &self.leases;
        let taken = match on_conflict {
            LeaseConflictRule::FreeLease => {
                let take = leases.take_lease(node, control_plane, group, &subject, now.wall);
                take.await
            }
            LeaseConflictRule::KeepLease | LeaseConflictRule::Continue => {
                let take =
                    leases.take_lease_of_out_node(node, control_plane, group, &subject, now.wall);
                take.await
            }
        }?;
        let held = match taken {
            LeaseTakeOutcome::Held(held) => held,
            LeaseTakeOutcome::HeldWithConflict { held, .. }
                if on_conflict == LeaseConflictRule::Continue =>
            {
                held
            }
            LeaseTakeOutcome::HeldWithConflict { by, .. } | LeaseTakeOutcome::Refused { by } => {
                return Err(RemediationCallError::Refused(by));
            }
        };
        Ok(RemediationAnswer::Lease {
            node: node.clone(),
            lease: Some(remediation_lease_of(&held)),
        })
    }

    /// The group that the Node belongs to now, or belonged to before it was deleted; `None` if its
    /// labels or the policies are not known.
    fn group_of_node(&self, case: &Remediation, node: &NodeName) -> Option<GroupName> {
        let view = &self.view;
        let seen = view.nodes.get(node).filter(|_| view.synced);
        let labels = seen.map(|node| &node.labels).or(case.node_labels())?;
        match &view.policies {
            known @ ClusterPolicies::Known(_) => Some(policy::group_of_labels(known, labels)),
            ClusterPolicies::NotYetRead | ClusterPolicies::Unreadable { .. } => None,
        }
    }

    /// Frees the Lease if it still has this version.
    pub(super) async fn free_lease(
        &self,
        node: &NodeName,
        version: &str,
    ) -> Result<RemediationAnswer, RemediationCallError> {
        let view = &self.view;
        let mut held = view
            .leases
            .values()
            .filter_map(|it| RemediationLeaseHold::from_lease(it));
        let free = RemediationAnswer::Lease {
            node: node.clone(),
            lease: None,
        };
        let Some(held) = held.find(|held| held.node == *node) else {
            return Ok(free);
        };
        let changed = || RemediationCallError::Changed(format!("lease {}", held.lease));
        if held.resource_version != version {
            return Err(changed());
        }
        match self.leases.free_lease(&held).await? {
            LeaseFreeOutcome::Done => Ok(free),
            LeaseFreeOutcome::Changed => Err(changed()),
        }
    }
}

pub(super) fn remediation_lease_of(held: &RemediationLeaseHold) -> HeldRemediationLease {
    HeldRemediationLease {
        subject: held.subject.clone(),
        resource_version: held.resource_version.clone(),
        alone: held.alone,
        may_be_freed: false,
    }
}
