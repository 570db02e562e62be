//! Reads all Nodes and all slots once.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_api::lease;
use dogwatch_core::explain::{FleetSnapshot, LeaseRow};
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::{ObservedNode, group_of_lease};
use dogwatch_core::remediation::HeldRemediationLease;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use super::FleetClient;
use super::hosts::observed_controller;
use crate::Error;
use crate::cluster::LeaseObject;
use crate::error::with_timeout;
use crate::lock::{
    RemediationLeaseHold, list_leases, observed_lease, parse_waiting_hosts, remediation_hold,
    waiters_by_group,
};
use crate::node::{get_node, observed_node};
use crate::policy;
use crate::readable_dates::ReadableApi as _;

impl FleetClient {
    /// Three lists.
    pub async fn read_fleet(&self) -> Result<FleetSnapshot, Error> {
        let (fleet, _) = self.read_fleet_and_leases().await?;
        Ok(fleet)
    }

    /// The fleet, and the Leases that remediations hold.
    pub(super) async fn read_fleet_and_leases(
        &self,
    ) -> Result<(FleetSnapshot, RemediationLeases), Error> {
        let everything = ListParams::default();
        let nodes = with_timeout(self.node_api().list_readable(&everything)).await?;
        let leases = list_leases(&self.lease_api(), everything).await?;
        let policies = policy::list_policies(&self.client).await?;
        let remedies = leases.iter().filter_map(remediation_lease).collect();
        let fleet = FleetSnapshot {
            policies,
            // The API server accepts no name that we would reject.
            nodes: nodes
                .items
                .iter()
                .filter_map(|node| observed_node(node).ok().map(Arc::new))
                .collect(),
            leases: leases.iter().filter_map(lease_row).collect(),
            remediation_leases: leases.iter().filter_map(remediation_hold).collect(),
            lock_api_waiters: leases.iter().flat_map(waiters_by_group).collect(),
            waiting_hosts: leases.iter().flat_map(parse_waiting_hosts).collect(),
            controller: observed_controller(leases.iter().find(|lease| is_leader_lease(lease))),
        };
        Ok((fleet, remedies))
    }

    /// `None`: no Node of this name.
    pub async fn read_node(&self, name: &NodeName) -> Result<Option<ObservedNode>, Error> {
        let node = get_node(&self.client, name.as_str()).await?;
        Ok(node.and_then(|node| observed_node(&node).ok()))
    }

    pub(super) fn node_api(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub(super) fn lease_api(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// The Leases that remediations hold, by Node.
pub(super) type RemediationLeases = BTreeMap<NodeName, HeldRemediationLease>;

/// `None` if no remediation holds this Lease.
pub(super) fn remediation_lease(lease: &Lease) -> Option<(NodeName, HeldRemediationLease)> {
    let held = RemediationLeaseHold::from_lease(&LeaseObject::from_lease(lease))?;
    let lease = HeldRemediationLease {
        subject: held.subject,
        resource_version: held.resource_version,
        alone: held.alone,
        may_be_freed: false,
    };
    Some((held.node, lease))
}

pub(super) fn is_leader_lease(lease: &Lease) -> bool {
    lease.metadata.name.as_deref() == Some(lease::CONTROLLER_LEADER)
}

/// The group comes from the Lease's name: a Lease that lost its label is still that slot.
pub(crate) fn lease_row(lease: &Lease) -> Option<LeaseRow> {
    let group = group_of_lease(&lease.name_any())?;
    let lease = observed_lease(lease, &group)?;
    Some(LeaseRow { group, lease })
}
