//! Reads what belongs to a host: its Node, and the controller of its power.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_api::bare_metal_host::METAL3_LEADER_LEASE;
use dogwatch_api::{annotation, lease};
use dogwatch_core::Now;
use dogwatch_core::explain::ObservedController;
use dogwatch_core::name::NodeName;
use dogwatch_core::power::{HostName, HostOwner, HostSnapshot, Metal3Leaders, OwnerRules};
use dogwatch_core::reboot::ObservedNode;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use crate::Error;
use crate::error::with_timeout;
use crate::fleet::FleetClient;
use crate::host::{BmcSecret, BmcSecretError, HostClient};
use crate::readable_dates::ReadableApi as _;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodesByHost {
    /// Nodes by `spec.providerID`, in the forms that Cluster API's and OpenShift's providers for
    /// metal3 write.
    providers: BTreeMap<String, NodeName>,
}

impl FleetClient {
    /// One list of all Nodes.
    pub async fn read_nodes_by_host(&self) -> Result<NodesByHost, Error> {
        let nodes = with_timeout(self.node_api().list_readable(&ListParams::default())).await?;
        Ok(NodesByHost {
            providers: nodes.items.iter().filter_map(provider_entry).collect(),
        })
    }

    pub async fn read_controller(&self) -> Result<ObservedController, Error> {
        let lease =
            with_timeout(self.lease_api().get_readable_opt(lease::CONTROLLER_LEADER)).await?;
        Ok(observed_controller(lease.as_ref()))
    }

    /// Who controls the host's power, as far as one read can tell. The controller uses its own
    /// clock and its own `--host-namespaces` and `--metal3-namespaces`; here a host counts as ours
    /// if the controller has observed it recently.
    pub async fn read_host_owner(&self, host: &HostSnapshot, now: Now) -> Result<HostOwner, Error> {
        let rules = OwnerRules::default();
        let observed = host.status.power.observed_at;
        let is_looked_after =
            observed.is_some_and(|at| now.elapsed_since(at) < HOST_OBSERVED_WITHIN);
        if is_looked_after || Metal3Leaders::is_always_ours(host, &rules) {
            return Ok(HostOwner::Ours);
        }
        let leases: Api<Lease> = Api::all(self.client.clone());
        let of_metal3 =
            ListParams::default().fields(&format!("metadata.name={METAL3_LEADER_LEASE}"));
        let mut leases = with_timeout(leases.list_readable(&of_metal3)).await?.items;
        let is_believed = |namespace: &String| rules.metal3_namespaces.contains(namespace);
        leases.retain(|lease| lease.namespace().as_ref().is_some_and(is_believed));
        let leases = leases.into_iter();
        let mut alive =
            leases.filter_map(|lease| lease.spec.filter(|spec| is_leader_alive(spec, now)));
        let leader = alive.find_map(|spec| spec.holder_identity.filter(|name| !name.is_empty()));
        Ok(leader.map_or(HostOwner::Ours, |leader| HostOwner::Metal3 { leader }))
    }

    /// Reads a BMC's user and password with the caller's own rights.
    pub async fn read_bmc_secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<BmcSecret, BmcSecretError> {
        HostClient::new(self.client.clone())
            .read_secret(namespace, name)
            .await
    }
}

/// `None`: the leader's Lease does not exist.
pub(in crate::fleet) fn observed_controller(lease: Option<&Lease>) -> ObservedController {
    let spec = lease
        .and_then(|lease| lease.spec.clone())
        .unwrap_or_default();
    let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
    let renewed = spec.renew_time.map(|time| time.0);
    match (holder, renewed) {
        (Some(holder), renewed) => ObservedController::Leads { holder, renewed },
        (None, Some(renewed)) => ObservedController::Ended { renewed },
        (None, None) => ObservedController::Nobody,
    }
}

/// Leader Leases of this duration are common. A Lease that was renewed more recently has a live
/// holder, as far as two clocks can tell.
const LEADER_LEASE_STALE_AFTER: Duration = Duration::from_mins(2);

/// The controller records at least every fifth poll, so a host of ours has an observation that is
/// newer than this.
const HOST_OBSERVED_WITHIN: Duration = Duration::from_mins(15);

fn is_leader_alive(spec: &LeaseSpec, now: Now) -> bool {
    let renewed = spec.renew_time.as_ref().map(|time| time.0);
    renewed.is_some_and(|at| now.elapsed_since(at) < LEADER_LEASE_STALE_AFTER)
}

fn provider_entry(node: &Node) -> Option<(String, NodeName)> {
    let id = node.spec.as_ref()?.provider_id.clone()?;
    Some((id, NodeName::new(node.name_any()).ok()?))
}

impl NodesByHost {
    pub fn of_nodes<'a>(nodes: impl IntoIterator<Item = &'a ObservedNode>) -> Self {
        let entries = nodes.into_iter().filter_map(|node| {
            let provider = node.provider_id.clone()?;
            Some((provider, node.name.clone()))
        });
        Self {
            providers: entries.collect(),
        }
    }

    /// The Node that runs on this host: the one that the host names, else the one whose
    /// `providerID` names the host. A kubelet can write any `providerID`: good enough for a
    /// warning, never for an action.
    pub fn node_of_host(&self, host: &HostSnapshot) -> Option<NodeName> {
        let named = host.annotations.get(annotation::NODE);
        let named = named.and_then(|name| NodeName::new(name.clone()).ok());
        named.or_else(|| self.find_by_provider_id(&host.name, &host.uid))
    }

    fn find_by_provider_id(&self, host: &HostName, uid: &str) -> Option<NodeName> {
        let HostName { namespace, name } = host;
        let exactly = [
            format!("metal3://{uid}"),
            format!("baremetalhost:///{namespace}/{name}"),
        ];
        let beginnings = [
            format!("metal3://{namespace}/{name}/"),
            format!("baremetalhost:///{namespace}/{name}/"),
        ];
        let is_it = |id: &String| {
            exactly.contains(id) || beginnings.iter().any(|beginning| id.starts_with(beginning))
        };
        let mut nodes = self.providers.iter();
        nodes
            .find(|(id, _)| is_it(id))
            .map(|(_, node)| node.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_found_by_each_provider_id_of_metal3s_and_by_no_likeness() {
        let carried = |id: &str| NodesByHost {
            providers: [(id.to_owned(), NodeName::new("n1").unwrap())].into(),
        };
        let host = HostName::new("metal", "h1");
        for (id, is_it) in [
            ("metal3://uid-1", true),
            ("metal3://metal/h1/machine-7", true),
            ("baremetalhost:///metal/h1", true),
            ("baremetalhost:///metal/h1/uid-1", true),
            ("metal3://uid-12", false),
            ("metal3://metal/h11/machine-7", false),
            ("baremetalhost:///metal/h11", false),
            ("baremetalhost:///other/h1", false),
        ] {
            let found = carried(id).find_by_provider_id(&host, "uid-1");
            assert_eq!(found.is_some(), is_it, "{id}");
        }
    }
}
