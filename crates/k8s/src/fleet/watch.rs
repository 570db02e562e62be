//! Watches all Nodes and all slots.

use std::collections::BTreeMap;

use dogwatch_core::explain::{FleetSnapshot, LeaseRow};
use dogwatch_core::lock::api_lock::WaitingHost;
use dogwatch_core::lock::{HeldLockLease, LockWaiter};
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::ClusterPolicies;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::HeldRemediationLease;
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;

use super::FleetClient;
use super::read::{RemediationLeases, lease_row, remediation_lease};
use crate::Error;
use crate::lock::{TrimmedLeases, parse_waiting_hosts, remediation_hold, waiters_by_group};
use crate::node::observed_node;
use crate::policy::{PolicyWatchView, watch_policies};
use crate::watch::{FullObjects, ObjectEvent, ObjectSelection, list_and_watch};

/// The fleet, from three watches.
pub struct FleetWatch {
    node_events: BoxStream<'static, ObjectEvent<Node>>,
    lease_events: BoxStream<'static, ObjectEvent<Lease>>,
    nodes: Option<BTreeMap<String, ObservedNode>>,
    leases: Option<BTreeMap<String, LeaseFacts>>,
    policy_events: BoxStream<'static, PolicyWatchView>,
    policies: ClusterPolicies,
}

/// What a Lease can be: a slot, a remediation's Lease, or a lock API replica's list of waiting
/// hosts.
struct LeaseFacts {
    row: Option<LeaseRow>,
    remedy: Option<(NodeName, HeldRemediationLease)>,
    fenced: Option<HeldLockLease>,
    hosts: Vec<(GroupName, LockWaiter)>,
    waiting_hosts: Vec<WaitingHost>,
}

impl FleetClient {
    /// Sends nothing before [`FleetWatch::wait_for_change`] is awaited.
    pub fn watch_fleet(&self) -> FleetWatch {
        // A single watcher needs no jitter.
        let pauses = || 0.5;
        FleetWatch {
            node_events: list_and_watch(
                FullObjects(self.node_api()),
                ObjectSelection::default(),
                pauses,
            )
            .boxed(),
            lease_events: list_and_watch(
                TrimmedLeases(self.lease_api()),
                ObjectSelection::default(),
                pauses,
            )
            .boxed(),
            nodes: None,
            leases: None,
            policy_events: watch_policies(self.client.clone(), pauses).boxed(),
            policies: ClusterPolicies::NotYetRead,
        }
    }
}

impl FleetWatch {
    /// Waits for the next change, or returns a temporary failure of the watch. Cancel-safe.
    pub async fn wait_for_change(&mut self) -> Result<(), Error> {
        tokio::select! {
            biased;
            Some(event) = self.node_events.next() => {
                apply_event(&mut self.nodes, event, |node| observed_node(node).ok())
            }
            Some(event) = self.lease_events.next() => apply_event(&mut self.leases, event, |lease| {
                Some(LeaseFacts {
                    row: lease_row(lease),
                    remedy: remediation_lease(lease),
                    fenced: remediation_hold(lease),
                    hosts: waiters_by_group(lease),
                    waiting_hosts: parse_waiting_hosts(lease),
                })
            }),
            Some(seen) = self.policy_events.next() => {
                self.policies = seen.policies;
                Ok(())
            }
        }
    }

    /// `None` until the lists have arrived.
    pub fn current_fleet(&self) -> Option<FleetSnapshot> {
        let (nodes, leases) = (self.nodes.as_ref()?, self.leases.as_ref()?);
        if self.policies == ClusterPolicies::NotYetRead {
            return None;
        }
        Some(FleetSnapshot {
            policies: self.policies.clone(),
            nodes: nodes.values().cloned().collect(),
            leases: leases
                .values()
                .filter_map(|news| news.row.clone())
                .collect(),
            remediation_leases: leases
                .values()
                .filter_map(|news| news.fenced.clone())
                .collect(),
            lock_api_waiters: leases
                .values()
                .flat_map(|news| news.hosts.clone())
                .collect(),
            waiting_hosts: leases
                .values()
                .flat_map(|news| news.waiting_hosts.clone())
                .collect(),
        })
    }

    pub(super) fn remediation_leases(&self) -> RemediationLeases {
        let leases = self.leases.iter().flat_map(BTreeMap::values);
        leases.filter_map(|news| news.remedy.clone()).collect()
    }
}

fn apply_event<K: kube::Resource, V>(
    known: &mut Option<BTreeMap<String, V>>,
    event: ObjectEvent<K>,
    see: impl Fn(&K) -> Option<V>,
) -> Result<(), Error> {
    let entry = |object: &K| Some((object.name_any(), see(object)?));
    match event {
        ObjectEvent::Restarted(objects) => {
            *known = Some(objects.iter().filter_map(entry).collect());
        }
        ObjectEvent::Applied(object) => {
            known.get_or_insert_default().extend(entry(&object));
        }
        ObjectEvent::Deleted(object) => {
            known.get_or_insert_default().remove(&object.name_any());
        }
        ObjectEvent::Failed(error) => return Err(error),
    }
    Ok(())
}
