//! What the healer decides from.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::memory::Memory;
use crate::lock::api_lock::ApiNode;
use crate::lock::{HolderId, LeaseSeen};
use crate::name::{BootId, NodeName};
use crate::policy::Policies;
use crate::reboot::{HolderSeen, NodeSeen, Parsed, Phase};

/// Conditions that a coordinator writes: who changes one lives.
pub(super) const CONDITIONS: [&str; 4] = [
    "MaintenancePlanned",
    "DrainInProgress",
    "Drained",
    "MaintenanceInProgress",
];

/// Everything that was seen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seen {
    /// The Nodes that may need somebody (see [`concerns`]), and those that hold a Lease.
    pub nodes: BTreeMap<NodeName, NodeSeen>,
    /// The slots, by name.
    pub leases: BTreeMap<String, LeaseSeen>,
    /// The presence Leases of the lock API's replicas, by process.
    pub presences: BTreeMap<String, PresenceSeen>,
    /// The RebootPolicies.
    pub policies: Policies,
    /// What was asked for by a [`super::Look`].
    pub looked: Looked,
    /// Since when what was seen is as it is.
    pub memory: Memory,
}

impl Seen {
    /// The Leases that this Node's coordinator holds, by name.
    pub(super) fn held_by(&self, node: &NodeName) -> impl Iterator<Item = &LeaseSeen> {
        let holder = HolderId::node(node);
        let held = move |lease: &&LeaseSeen| lease.holder.as_ref() == Some(&holder);
        self.leases.values().filter(held)
    }
}

/// Whether the healer has to keep this Node in sight, whatever it holds and whether or not the
/// healer has written it: something of ours is under way there, or was left behind. Thousands may
/// wait for the lock; those hold nothing.
pub fn concerns(node: &NodeSeen) -> bool {
    let under_way = match &node.record {
        Parsed::Absent => unfinished_conditions(node),
        Parsed::Bad { .. } => true,
        Parsed::Is(record) => record.phase > Phase::Waiting || node.abort != Parsed::Absent,
    };
    under_way || node.api_lock
}

/// Whether a condition of ours says that something is under way.
pub(super) fn unfinished_conditions(node: &NodeSeen) -> bool {
    let mut conditions = node.conditions.iter();
    conditions.any(|c| CONDITIONS.contains(&c.kind.as_str()) && c.status == "True")
}

/// The presence Lease of one replica of the lock API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresenceSeen {
    /// The Lease's name, `api.dogwatch.dev-PROCESS`.
    pub name: String,
    /// The process, as its run ids name it.
    pub process: String,
    /// The Lease's UID.
    pub uid: String,
    /// Its version: another one is a sign of life.
    pub resource_version: String,
}

/// What was read because a decision asked for it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Looked {
    /// Nodes read afresh.
    pub nodes: BTreeMap<NodeName, NodeRead>,
    /// Two reads of each holder's Node, by Lease.
    pub holders: BTreeMap<String, HolderSeen>,
    /// What one who leaves the lock API's lock reads, by holder.
    pub api: BTreeMap<HolderId, ApiRead>,
    /// The return gates.
    pub gates: BTreeMap<NodeName, GatesSeen>,
    /// The BareMetalHost that carries a Node.
    pub hosts: BTreeMap<NodeName, HostsSeen>,
}

/// One fresh read of a Node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeRead {
    /// The Node. `None`: there is none.
    pub node: Option<NodeSeen>,
    /// Its annotation `dogwatch.dev/escalated`.
    pub escalated: Parsed<Escalated>,
    /// When the question was sent.
    pub taken: Duration,
}

/// The Node of a host that uses the lock API, read **before** the Leases; then the Leases.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiRead {
    /// The Node; `None` if the host is none.
    pub node: Option<ApiNode>,
    /// Every slot.
    pub leases: Vec<LeaseSeen>,
    /// When the first question was sent.
    pub taken: Duration,
}

/// What keeps the return gates shut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatesSeen {
    /// In words; empty is open.
    pub shut: Vec<String>,
    /// When the question was sent.
    pub taken: Duration,
}

/// The BareMetalHost that carries a Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostsSeen {
    /// That one, or why it cannot be known.
    pub host: Result<HostRef, String>,
    /// When the question was sent.
    pub taken: Duration,
}

/// One BareMetalHost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
    /// Whether `reboot.metal3.io` is there.
    pub asked: bool,
    /// Our mark on it.
    pub mark: Parsed<Escalated>,
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
pub struct Escalated {
    /// The Node's UID.
    pub node_uid: String,
    /// When the reboot was first wanted: with the boot that is to be ended it names the reboot.
    pub planned: Timestamp,
    /// The boot that is to be ended.
    pub boot_id: BootId,
    /// The host, `namespace/name`.
    pub host: String,
    /// When it was handed over, by the healer's clock. For people; nothing is decided by it.
    pub at: Timestamp,
}

impl Escalated {
    /// Whether both speak of the same reboot of the same Node.
    pub fn same_reboot(&self, other: &Escalated) -> bool {
        let name = |note: &Escalated| (note.node_uid.clone(), note.planned, note.boot_id.clone());
        name(self) == name(other)
    }
}
