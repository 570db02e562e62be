//! The input of the healer's decisions.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::memory::HealerMemory;
use crate::condition::CurrentCondition;
use crate::lock::api_lock::ApiNode;
use crate::lock::{HolderId, ObservedLease};
use crate::name::{BootId, NodeName};
use crate::policy::ClusterPolicies;
use crate::reboot::{
    COORDINATOR_CONDITIONS, ObservedHolderNode, ObservedNode, ParsedAnnotation, RebootPhase,
    is_condition_of_other,
};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct HealerSnapshot {
    /// The Nodes that may need the healer (see [`needs_healing`]), and those that hold a Lease.
    pub nodes: BTreeMap<NodeName, ObservedNode>,
    /// By name.
    pub leases: BTreeMap<String, ObservedLease>,
    /// The presence Leases of the lock API's replicas, by process.
    pub presences: BTreeMap<String, ObservedPresence>,
    pub policies: ClusterPolicies,
    /// Facts that a [`super::HealerObserve`] asked for.
    pub observations: HealerObservations,
    /// Since when the observed objects have been unchanged.
    pub memory: HealerMemory,
}

impl HealerSnapshot {
    pub(super) fn leases_held_by(&self, node: &NodeName) -> impl Iterator<Item = &ObservedLease> {
        let holder = HolderId::for_node(node);
        let held = move |lease: &&ObservedLease| lease.holder.as_ref() == Some(&holder);
        self.leases.values().filter(held)
    }
}

/// Whether the healer has to watch this Node, even if it holds no Lease: a reboot of ours is under
/// way there, or left something behind. Nodes that only wait for the lock are left out: they hold
/// nothing, and there may be thousands.
pub fn needs_healing(node: &ObservedNode) -> bool {
    let under_way = match &node.record {
        ParsedAnnotation::Absent => has_unfinished_conditions(node),
        ParsedAnnotation::Bad { .. } => true,
        ParsedAnnotation::Is(record) => {
            record.phase > RebootPhase::Waiting || node.abort != ParsedAnnotation::Absent
        }
    };
    under_way || node.api_lock
}

/// Whether a condition of ours says that a reboot is under way.
pub(super) fn has_unfinished_conditions(node: &ObservedNode) -> bool {
    list_coordinator_conditions(node).any(|condition| condition.status == "True")
}

/// The conditions that the coordinator may have written. Other tools set conditions of the same
/// types (KEP-5683): theirs are no reboot of ours, and no sign of the coordinator.
pub(super) fn list_coordinator_conditions(
    node: &ObservedNode,
) -> impl Iterator<Item = &CurrentCondition> {
    node.conditions.iter().filter(|condition| {
        COORDINATOR_CONDITIONS.contains(&condition.kind.as_str())
            && !is_condition_of_other(condition)
    })
}

/// The presence Lease of one replica of the lock API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedPresence {
    /// `api.dogwatch.dev-PROCESS`.
    pub name: String,
    /// The process, as its run ids name it.
    pub process: String,
    pub uid: String,
    /// A new version is a sign of life.
    pub resource_version: String,
}

/// Facts that were read because a decision asked for them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HealerObservations {
    /// Nodes, freshly read.
    pub nodes: BTreeMap<NodeName, NodeRead>,
    /// Two reads of each holder's Node, by Lease.
    pub holders: BTreeMap<String, ObservedHolderNode>,
    /// What is needed to remove a request from the lock API's lock, by holder.
    pub api: BTreeMap<HolderId, ApiLockRead>,
    pub gates: BTreeMap<NodeName, ObservedReturnGates>,
    /// The BareMetalHost that carries each Node.
    pub hosts: BTreeMap<NodeName, ObservedNodeHost>,
}

/// One fresh read of a Node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeRead {
    /// `None` if the Node does not exist.
    pub node: Option<ObservedNode>,
    /// Its annotation `dogwatch.dev/escalated`.
    pub escalated: ParsedAnnotation<EscalationRecord>,
    /// When the read was sent, in monotonic time.
    pub taken: Duration,
}

/// The Node of a host that uses the lock API, read **before** the Leases; then the Leases.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiLockRead {
    /// `None` if the host is not a Node.
    pub node: Option<ApiNode>,
    /// Every slot.
    pub leases: Vec<ObservedLease>,
    /// When the first read was sent, in monotonic time.
    pub taken: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedReturnGates {
    /// What keeps the gates shut, in words; empty means open.
    pub shut: Vec<String>,
    /// When the first question was sent, in monotonic time.
    pub taken: Duration,
}

/// The BareMetalHost that carries a Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedNodeHost {
    /// The host, or why it cannot be known.
    pub host: Result<HostRef, String>,
    /// When the read was sent, in monotonic time.
    pub taken: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRef {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    /// Whether annotation `reboot.metal3.io` is set.
    pub asked: bool,
    /// Our mark on the host.
    pub mark: ParsedAnnotation<EscalationRecord>,
}

impl HostRef {
    /// `namespace/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// Annotation `dogwatch.dev/escalated`, on a Node and as a mark on its host: this reboot was handed
/// over to the power controller. One reboot is handed over once (S5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EscalationRecord {
    pub node_uid: String,
    /// When the reboot was first wanted. Together with the boot id it identifies the reboot.
    pub planned: Timestamp,
    /// The boot that the reboot is to end.
    pub boot_id: BootId,
    /// The host, `namespace/name`.
    pub host: String,
    /// When it was handed over, by the healer's clock. For people only; no decision depends on it.
    pub at: Timestamp,
}

impl EscalationRecord {
    /// Whether both describe the same reboot of the same Node.
    pub fn is_same_reboot(&self, other: &EscalationRecord) -> bool {
        let name =
            |note: &EscalationRecord| (note.node_uid.clone(), note.planned, note.boot_id.clone());
        name(self) == name(other)
    }
}
