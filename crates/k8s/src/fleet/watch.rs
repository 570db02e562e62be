//! Watches all Nodes and all slots.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::explain::{FleetSnapshot, LeaseRow, ObservedController};
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
use super::hosts::observed_controller;
use super::read::{RemediationLeases, is_leader_lease, lease_row, remediation_lease};
use crate::Error;
use crate::informer::{KindInformer, KindRecheck, fixed_jitter};
use crate::lock::{TrimmedLeases, parse_waiting_hosts, remediation_hold, waiters_by_group};
use crate::node::observed_node;
use crate::policy::{PolicyWatchView, watch_policies};
use crate::watch::{FullObjects, ObjectSelection};

/// The fleet, from three watches.
pub struct FleetWatch {
    node_informer: KindInformer<NodeName, Arc<ObservedNode>>,
    lease_informer: KindInformer<String, LeaseFacts>,
    nodes: BTreeMap<NodeName, Arc<ObservedNode>>,
    leases: BTreeMap<String, LeaseFacts>,
    policy_events: BoxStream<'static, PolicyWatchView>,
    policies: ClusterPolicies,
    policy_error: Option<String>,
}

/// What a Lease can be: a slot, a remediation's Lease, a lock API replica's list of waiting hosts,
/// or the leader Lease of the controllers.
struct LeaseFacts {
    row: Option<LeaseRow>,
    remedy: Option<(NodeName, HeldRemediationLease)>,
    fenced: Option<HeldLockLease>,
    hosts: Vec<(GroupName, LockWaiter)>,
    waiting_hosts: Vec<WaitingHost>,
    leader: Option<ObservedController>,
}

impl LeaseFacts {
    fn from_lease(lease: &Lease) -> Self {
        Self {
            row: lease_row(lease),
            remedy: remediation_lease(lease),
            fenced: remediation_hold(lease),
            hosts: waiters_by_group(lease),
            waiting_hosts: parse_waiting_hosts(lease),
            leader: is_leader_lease(lease).then(|| observed_controller(Some(lease))),
        }
    }
}

impl FleetClient {
    /// Sends nothing before [`FleetWatch::wait_for_change`] is awaited.
    pub fn watch_fleet(&self) -> FleetWatch {
        let jitter = fixed_jitter();
        FleetWatch {
            node_informer: KindInformer::new(
                FullObjects(self.node_api()),
                ObjectSelection::default(),
                KindRecheck::AlwaysServed,
                &jitter,
                |node: &Node| {
                    let node = observed_node(node).ok()?;
                    Some((node.name.clone(), Arc::new(node)))
                },
            ),
            lease_informer: KindInformer::new(
                TrimmedLeases(self.lease_api()),
                ObjectSelection::default(),
                KindRecheck::AlwaysServed,
                &jitter,
                |lease: &Lease| Some((lease.name_any(), LeaseFacts::from_lease(lease))),
            ),
            nodes: BTreeMap::new(),
            leases: BTreeMap::new(),
            policy_events: watch_policies(self.client.clone(), move || jitter()).boxed(),
            policies: ClusterPolicies::NotYetRead,
            policy_error: None,
        }
    }
}

impl FleetWatch {
    /// Waits for the next change, or returns a temporary failure of the watch. Cancel-safe.
    pub async fn wait_for_change(&mut self) -> Result<(), Error> {
        tokio::select! {
            biased;
            event = self.node_informer.next_event() => {
                event.apply_to(&mut self.nodes).map_or(Ok(()), Err)
            }
            event = self.lease_informer.next_event() => {
                event.apply_to(&mut self.leases).map_or(Ok(()), Err)
            }
            Some(seen) = self.policy_events.next() => {
                self.policies = seen.policies;
                self.policy_error = seen.error;
                Ok(())
            }
        }
    }

    /// Whether the watches of Nodes and Leases have not failed since they were last answered.
    pub fn is_connected(&self) -> bool {
        self.node_informer.is_connected() && self.lease_informer.is_connected()
    }

    /// Why the policies cannot be watched at the moment; the known ones may be outdated.
    pub fn policy_error(&self) -> Option<&str> {
        self.policy_error.as_deref()
    }

    /// Whether the first lists of Nodes, Leases and policies have arrived.
    pub fn is_synced(&self) -> bool {
        self.node_informer.is_synced()
            && self.lease_informer.is_synced()
            && self.policies != ClusterPolicies::NotYetRead
    }

    /// `None` until the lists have arrived.
    pub fn current_fleet(&self) -> Option<FleetSnapshot> {
        if !self.is_synced() {
            return None;
        }
        let (nodes, leases) = (&self.nodes, &self.leases);
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
            controller: self.current_controller(),
        })
    }

    /// Unknown without a connection: a leader that goes on renewing its Lease would look dead.
    fn current_controller(&self) -> ObservedController {
        if !self.lease_informer.is_connected() {
            return ObservedController::Unknown;
        }
        let mut leaders = self.leases.values().filter_map(|news| news.leader.clone());
        leaders.next().unwrap_or(ObservedController::Nobody)
    }

    pub(super) fn remediation_leases(&self) -> RemediationLeases {
        let leases = self.leases.values();
        leases.filter_map(|news| news.remedy.clone()).collect()
    }
}
