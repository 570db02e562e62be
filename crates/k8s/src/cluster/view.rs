//! What is seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_api::reboot_policy::RebootPolicyStatus;
use dogwatch_core::explain::LeaseRow;
use dogwatch_core::lock::HeldSeen;
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::Policies;
use dogwatch_core::reboot::NodeSeen;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;

use crate::fleet::lease_row;
use crate::lock::fenced_by;
use crate::policy::PolicyObject;

/// The cluster as last seen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClusterView {
    /// All Nodes.
    pub nodes: BTreeMap<NodeName, Arc<NodeSeen>>,
    /// All Leases in Dogwatch's namespace, whoever made them, by name.
    pub leases: BTreeMap<String, Arc<LeaseObject>>,
    /// What is known of the policies.
    pub policies: Policies,
    /// The policies' objects beside what they say, by name.
    pub policy_objects: BTreeMap<String, Arc<PolicyStanding>>,
    /// All lists have come. Before that nothing may be concluded from what is not here.
    pub synced: bool,
    /// What could not be seen when it was last looked at, by kind; it may have passed since.
    pub trouble: BTreeMap<&'static str, String>,
}

/// A Lease of any use: a slot, a replica's presence, the leader's.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseObject {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// What a write to it relies on.
    pub resource_version: String,
    /// `spec.holderIdentity`; empty is `None`.
    pub holder: Option<String>,
    /// `spec.renewTime`: somebody else's clock, only a change of it means anything.
    pub renewed: Option<Timestamp>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// What the lock's rules see of it, if it is the slot of a group.
    pub slot: Option<LeaseRow>,
    /// What the budgets see of it, if it is the Lease of a remediation that is held.
    pub remediation: Option<HeldSeen>,
}

/// A policy's object, beside what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyStanding {
    /// Its UID.
    pub uid: String,
    /// What a write to it relies on.
    pub resource_version: String,
    /// Which version of its spec this is.
    pub generation: Option<i64>,
    /// Its status as it stands; `None` if there is none that can be read.
    pub status: Option<RebootPolicyStatus>,
}

impl ClusterView {
    /// The Leases that remediations hold.
    pub fn remediations(&self) -> Vec<HeldSeen> {
        let leases = self.leases.values();
        leases
            .filter_map(|lease| lease.remediation.clone())
            .collect()
    }
}

impl LeaseObject {
    /// What is kept of a Lease.
    pub fn of(lease: &Lease) -> Self {
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
            remediation: fenced_by(lease),
        }
    }
}

impl PolicyStanding {
    pub(super) fn of(object: &PolicyObject) -> Self {
        Self {
            uid: object.uid().unwrap_or_default(),
            resource_version: object.resource_version().unwrap_or_default(),
            generation: object.metadata.generation,
            status: serde_json::from_value(object.status.clone()).ok(),
        }
    }
}
