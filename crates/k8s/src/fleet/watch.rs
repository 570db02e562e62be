//! All Nodes and all slots, kept up to date.

use std::collections::BTreeMap;

use dogwatch_core::explain::{Fleet, LeaseRow};
use dogwatch_core::lock::api_lock::WaitingHost;
use dogwatch_core::lock::{HeldSeen, Waiter};
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::Policies;
use dogwatch_core::reboot::NodeSeen;
use dogwatch_core::remedy::RemedyLease;
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;

use super::FleetClient;
use super::read::{RemedyLeases, lease_row, remedy_lease};
use crate::Error;
use crate::lock::{Leases, fenced_by, told_by_group, waiting_hosts};
use crate::node::node_seen;
use crate::policy::{PoliciesSeen, watch_policies};
use crate::watch::{Event, Full, Selection, watch};

/// The fleet as three watches show it.
pub struct FleetWatch {
    node_events: BoxStream<'static, Event<Node>>,
    lease_events: BoxStream<'static, Event<Lease>>,
    nodes: Option<BTreeMap<String, NodeSeen>>,
    leases: Option<BTreeMap<String, LeaseNews>>,
    policy_events: BoxStream<'static, PoliciesSeen>,
    policies: Policies,
}

/// What one Lease tells: whose slot it is, which node it fences, or who waits at a lock API.
struct LeaseNews {
    row: Option<LeaseRow>,
    remedy: Option<(NodeName, RemedyLease)>,
    fenced: Option<HeldSeen>,
    hosts: Vec<(GroupName, Waiter)>,
    waiting_hosts: Vec<WaitingHost>,
}

impl FleetClient {
    /// Watches everything; nothing is sent before [`FleetWatch::changed`] is awaited.
    pub fn watch(&self) -> FleetWatch {
        // One person looks: pauses need no spreading.
        let pauses = || 0.5;
        FleetWatch {
            node_events: watch(Full(self.nodes()), Selection::default(), pauses).boxed(),
            lease_events: watch(Leases(self.leases()), Selection::default(), pauses).boxed(),
            nodes: None,
            leases: None,
            policy_events: watch_policies(self.client.clone(), pauses).boxed(),
            policies: Policies::NotYet,
        }
    }
}

impl FleetWatch {
    /// Waits for the next change, or for trouble, which passes by itself. Losing the future loses
    /// nothing.
    pub async fn changed(&mut self) -> Result<(), Error> {
        tokio::select! {
            biased;
            Some(event) = self.node_events.next() => {
                take(&mut self.nodes, event, |node| node_seen(node).ok())
            }
            Some(event) = self.lease_events.next() => take(&mut self.leases, event, |lease| {
                Some(LeaseNews {
                    row: lease_row(lease),
                    remedy: remedy_lease(lease),
                    fenced: fenced_by(lease),
                    hosts: told_by_group(lease),
                    waiting_hosts: waiting_hosts(lease),
                })
            }),
            Some(seen) = self.policy_events.next() => {
                self.policies = seen.policies;
                Ok(())
            }
        }
    }

    /// The fleet as last seen; `None` until the lists have come.
    pub fn fleet(&self) -> Option<Fleet> {
        let (nodes, leases) = (self.nodes.as_ref()?, self.leases.as_ref()?);
        if self.policies == Policies::NotYet {
            return None;
        }
        Some(Fleet {
            policies: self.policies.clone(),
            nodes: nodes.values().cloned().collect(),
            leases: leases
                .values()
                .filter_map(|news| news.row.clone())
                .collect(),
            remedies: leases
                .values()
                .filter_map(|news| news.fenced.clone())
                .collect(),
            hosts: leases
                .values()
                .flat_map(|news| news.hosts.clone())
                .collect(),
            waiting_hosts: leases
                .values()
                .flat_map(|news| news.waiting_hosts.clone())
                .collect(),
        })
    }

    /// The Leases that remediations hold, as last seen.
    pub(super) fn remedies(&self) -> RemedyLeases {
        let leases = self.leases.iter().flat_map(BTreeMap::values);
        leases.filter_map(|news| news.remedy.clone()).collect()
    }
}

fn take<K: kube::Resource, V>(
    known: &mut Option<BTreeMap<String, V>>,
    event: Event<K>,
    see: impl Fn(&K) -> Option<V>,
) -> Result<(), Error> {
    let entry = |object: &K| Some((object.name_any(), see(object)?));
    match event {
        Event::Restarted(objects) => *known = Some(objects.iter().filter_map(entry).collect()),
        Event::Applied(object) => {
            known.get_or_insert_default().extend(entry(&object));
        }
        Event::Deleted(object) => {
            known.get_or_insert_default().remove(&object.name_any());
        }
        Event::Trouble(error) => return Err(error),
    }
    Ok(())
}
