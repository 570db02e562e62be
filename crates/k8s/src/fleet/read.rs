//! All Nodes and all slots, once.

use std::collections::BTreeMap;

use dogwatch_core::explain::{Fleet, LeaseRow};
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::{NodeSeen, group_of_lease};
use dogwatch_core::remedy::RemedyLease;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use super::FleetClient;
use crate::Error;
use crate::cluster::LeaseObject;
use crate::error::ask;
use crate::lock::{RemedyHeld, fenced_by, lease_seen, list_leases, told_by_group, waiting_hosts};
use crate::node::{get_node, node_seen};
use crate::policy;

impl FleetClient {
    /// Three lists.
    pub async fn read(&self) -> Result<Fleet, Error> {
        let (fleet, _) = self.read_whole().await?;
        Ok(fleet)
    }

    /// The same, and the Leases that remediations hold.
    pub(super) async fn read_whole(&self) -> Result<(Fleet, RemedyLeases), Error> {
        let everything = ListParams::default();
        let nodes = ask(self.nodes().list(&everything)).await?;
        let leases = list_leases(&self.leases(), everything).await?;
        let policies = policy::policies(&self.client).await?;
        let remedies = leases.iter().filter_map(remedy_lease).collect();
        let fleet = Fleet {
            policies,
            // The API server accepts no name that we would not.
            nodes: nodes
                .items
                .iter()
                .filter_map(|node| node_seen(node).ok())
                .collect(),
            leases: leases.iter().filter_map(lease_row).collect(),
            remedies: leases.iter().filter_map(fenced_by).collect(),
            hosts: leases.iter().flat_map(told_by_group).collect(),
            waiting_hosts: leases.iter().flat_map(waiting_hosts).collect(),
        };
        Ok((fleet, remedies))
    }

    /// One Node; `None`: there is none of that name.
    pub async fn node(&self, name: &NodeName) -> Result<Option<NodeSeen>, Error> {
        let node = get_node(&self.client, name.as_str()).await?;
        Ok(node.and_then(|node| node_seen(&node).ok()))
    }

    pub(super) fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub(super) fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// The Leases that remediations hold, by Node.
pub(super) type RemedyLeases = BTreeMap<NodeName, RemedyLease>;

/// If it is one that is held.
pub(super) fn remedy_lease(lease: &Lease) -> Option<(NodeName, RemedyLease)> {
    let held = RemedyHeld::of(&LeaseObject::of(lease))?;
    let lease = RemedyLease {
        subject: held.subject,
        resource_version: held.resource_version,
    };
    Some((held.node, lease))
}

/// The group is told by the name: a Lease that lost its label is still that slot.
pub(crate) fn lease_row(lease: &Lease) -> Option<LeaseRow> {
    let group = group_of_lease(&lease.name_any())?;
    let lease = lease_seen(lease, &group)?;
    Some(LeaseRow { group, lease })
}
