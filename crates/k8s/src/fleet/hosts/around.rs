//! What stands beside a host: the Nodes, and who controls its power.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_api::bare_metal_host::OPERATOR_LEASE;
use dogwatch_api::{annotation, lease};
use dogwatch_core::Now;
use dogwatch_core::explain::ControllerSeen;
use dogwatch_core::name::NodeName;
use dogwatch_core::power::{Host, HostName, Operators, Owner, OwnerRules};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use crate::Error;
use crate::error::ask;
use crate::fleet::FleetClient;
use crate::host::{HostClient, Secret, SecretTrouble};

/// Which Node runs on which host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Carried {
    /// By `spec.providerID`, as Cluster API's and OpenShift's providers for metal3 write it.
    providers: BTreeMap<String, NodeName>,
}

impl FleetClient {
    /// Reads which Node runs on which host: one list.
    pub async fn carried(&self) -> Result<Carried, Error> {
        let nodes = ask(self.nodes().list(&ListParams::default())).await?;
        Ok(Carried {
            providers: nodes.items.iter().filter_map(provider).collect(),
        })
    }

    /// Who leads the controllers.
    pub async fn controller(&self) -> Result<ControllerSeen, Error> {
        let lease = ask(self.leases().get_opt(lease::LEADER)).await?;
        Ok(controller_seen(lease.as_ref()))
    }

    /// Whose the host is, as far as one look can tell. The controller goes by its own clock and its own
    /// `--host-namespaces` and `--metal3-namespaces`: a host that it reads is its own.
    pub async fn owner(&self, host: &Host, now: Now) -> Result<Owner, Error> {
        let rules = OwnerRules::default();
        let observed = host.status.power.observed_at;
        let is_looked_after = observed.is_some_and(|at| now.since(at) < LOOKED_AFTER);
        if is_looked_after || Operators::is_ours_anyway(host, &rules) {
            return Ok(Owner::Ours);
        }
        let leases: Api<Lease> = Api::all(self.client.clone());
        let of_metal3 = ListParams::default().fields(&format!("metadata.name={OPERATOR_LEASE}"));
        let mut leases = ask(leases.list(&of_metal3)).await?.items;
        let is_believed = |namespace: &String| rules.metal3_namespaces.contains(namespace);
        leases.retain(|lease| lease.namespace().as_ref().is_some_and(is_believed));
        let leases = leases.into_iter();
        let mut alive = leases.filter_map(|lease| lease.spec.filter(|spec| is_alive(spec, now)));
        let leader = alive.find_map(|spec| spec.holder_identity.filter(|name| !name.is_empty()));
        Ok(leader.map_or(Owner::Ours, |leader| Owner::Theirs { leader }))
    }

    /// The user and password of a BMC, by the right of whoever asks.
    pub async fn bmc_secret(&self, namespace: &str, name: &str) -> Result<Secret, SecretTrouble> {
        HostClient::new(self.client.clone())
            .secret(namespace, name)
            .await
    }
}

/// Who leads, by the leader's Lease, if there is one.
pub(in crate::fleet) fn controller_seen(lease: Option<&Lease>) -> ControllerSeen {
    let spec = lease
        .and_then(|lease| lease.spec.clone())
        .unwrap_or_default();
    let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
    holder.map_or(ControllerSeen::Nobody, |holder| ControllerSeen::Leads {
        holder,
        renewed: spec.renew_time.map(|time| time.0),
    })
}

/// A leader's Lease that lasts so long is common; one that was renewed more recently has a live holder,
/// as far as two clocks can tell.
const STALE: Duration = Duration::from_mins(2);

/// A host of ours has a reading that is no older: one is written down each fifth poll at the latest.
const LOOKED_AFTER: Duration = Duration::from_mins(15);

fn is_alive(spec: &LeaseSpec, now: Now) -> bool {
    let renewed = spec.renew_time.as_ref().map(|time| time.0);
    renewed.is_some_and(|at| now.since(at) < STALE)
}

fn provider(node: &Node) -> Option<(String, NodeName)> {
    let id = node.spec.as_ref()?.provider_id.clone()?;
    Some((id, NodeName::new(node.name_any()).ok()?))
}

impl Carried {
    /// The Node that runs on this host: the one that the host names, else the one that says so of
    /// itself. A kubelet may say what it likes: good enough to warn, never to act on.
    pub fn node_of(&self, host: &Host) -> Option<NodeName> {
        let named = host.annotations.get(annotation::NODE);
        let named = named.and_then(|name| NodeName::new(name.clone()).ok());
        named.or_else(|| self.says_so(&host.name, &host.uid))
    }

    fn says_so(&self, host: &HostName, uid: &str) -> Option<NodeName> {
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
        let carried = |id: &str| Carried {
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
            let found = carried(id).says_so(&host, "uid-1");
            assert_eq!(found.is_some(), is_it, "{id}");
        }
    }
}
