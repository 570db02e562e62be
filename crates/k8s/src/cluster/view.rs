//! The controller's view of the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_api::reboot_policy::RebootPolicyStatus;
use dogwatch_core::explain::{FleetSnapshot, LeaseRow, ObservedController};
use dogwatch_core::lock::HeldLockLease;
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::ClusterPolicies;
use dogwatch_core::reboot::ObservedNode;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;

use crate::fleet::lease_row;
use crate::lock::{parse_group_waiters, remediation_hold};
use crate::policy::PolicyObject;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClusterView {
    pub nodes: BTreeMap<NodeName, Arc<ObservedNode>>,
    /// All Leases in Dogwatch's namespace, whoever created them, by name.
    pub leases: BTreeMap<String, Arc<LeaseObject>>,
    pub policies: ClusterPolicies,
    pub policy_objects: BTreeMap<String, Arc<PolicyObjectState>>,
    /// All lists have arrived. Before that, an object that is missing here may still exist.
    pub synced: bool,
    /// The last read error, by kind. The cause may have passed since.
    pub errors: BTreeMap<&'static str, String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LeaseObject {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    /// `spec.holderIdentity`; `None` if empty.
    pub holder: Option<String>,
    /// `spec.renewTime`, by another machine's clock: only a change of it has a meaning.
    pub renewed: Option<Timestamp>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// The lock's view of this Lease, if it is the slot of a group.
    pub slot: Option<LeaseRow>,
    /// The budget's view of this Lease, if a remediation holds it.
    pub remediation: Option<HeldLockLease>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PolicyObjectState {
    pub uid: String,
    pub resource_version: String,
    pub generation: Option<i64>,
    /// `None` if there is no readable status.
    pub status: Option<RebootPolicyStatus>,
}

impl ClusterView {
    pub fn list_remediation_leases(&self) -> Vec<HeldLockLease> {
        let leases = self.leases.values();
        leases
            .filter_map(|lease| lease.remediation.clone())
            .collect()
    }

    /// What an estimate is made from. It needs no reasons of hosts that wait.
    pub fn fleet_snapshot(&self) -> FleetSnapshot {
        let leases = || self.leases.values();
        let waiters = leases().flat_map(|lease| parse_group_waiters(&lease.annotations));
        FleetSnapshot {
            nodes: self.nodes.values().cloned().collect(),
            policies: self.policies.clone(),
            leases: leases().filter_map(|lease| lease.slot.clone()).collect(),
            remediation_leases: self.list_remediation_leases(),
            lock_api_waiters: waiters.collect(),
            waiting_hosts: Vec::new(),
            controller: ObservedController::Unknown,
        }
    }
}

impl LeaseObject {
    pub fn from_lease(lease: &Lease) -> Self {
        let spec = lease.spec.as_ref();
        let holder = spec.and_then(|spec| spec.holder_identity.clone());
        let renewed = spec.and_then(|spec| spec.renew_time.as_ref());
        Self {
            name: lease.name_any(),
            uid: lease.uid().unwrap_or_default(),
            resource_version: lease.resource_version().unwrap_or_default(),
            holder: holder.filter(|holder| !holder.is_empty()),
            renewed: renewed.map(|time| time.0),
            labels: lease.labels().clone(),
            annotations: lease.annotations().clone(),
            slot: lease_row(lease),
            remediation: remediation_hold(lease),
        }
    }
}

impl PolicyObjectState {
    pub(super) fn from_object(object: &PolicyObject) -> Self {
        Self {
            uid: object.uid().unwrap_or_default(),
            resource_version: object.resource_version().unwrap_or_default(),
            generation: object.metadata.generation,
            status: serde_json::from_value(object.status.clone()).ok(),
        }
    }
}
