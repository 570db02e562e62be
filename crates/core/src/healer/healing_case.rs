//! What the healer may do and observe, as data.

use crate::reboot::RebootReason;
use std::time::Duration;

use super::snapshot::{EscalationRecord, HostRef};
use crate::lock::api_lock::{ApiNode, NodeWrite};
use crate::lock::{HolderId, ObservedLease};
use crate::name::{NodeName, RunId};
use crate::policy::ReturnGate;
use crate::reboot::{NodePatch, ObservedNode};

/// One object that needs the healer. Cases are independent: a failure of one delays no other (L1).
#[derive(Debug, Clone, PartialEq)]
pub struct HealingCase {
    pub subject: HealingSubject,
    pub decision: crate::Decision<HealerAction, HealerObserve, RebootReason>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealingSubject {
    Node(NodeName),
    /// The Lease of a slot, by name.
    Lease(String),
    /// The presence Lease of a replica of the lock API.
    Presence(String),
}

/// One write, conditional on the version last seen. Doing it again has no effect.
#[derive(Debug, Clone, PartialEq)]
pub enum HealerAction {
    /// A patch of a Node, as its coordinator would send it.
    PatchNode {
        /// The Node as last seen; its UID goes with the patch.
        node: Box<ObservedNode>,
        /// Carries the resourceVersion.
        patch: Box<NodePatch>,
    },
    /// Removes runs from a Lease. If none remains, frees the Lease and calls the next in line.
    Release {
        /// The Lease as last seen; UID and resourceVersion go with the write.
        lease: Box<ObservedLease>,
        /// Runs that still rely on the Lease.
        remaining: Vec<RunId>,
    },
    /// Clears a Lease whose holder is proved gone.
    Break {
        lease: Box<ObservedLease>,
        /// The proof, as a sentence.
        evidence: String,
    },
    /// A patch of a Node as the lock API would send it: it removes the cordon, or makes a cordon
    /// fail that may be on its way.
    PatchApiNode {
        /// The holder whose lock is released.
        holder: HolderId,
        /// The Node as read; its UID goes with the patch.
        node: Box<ApiNode>,
        /// Carries the resourceVersion.
        write: Box<NodeWrite>,
    },
    /// Deletes the presence Lease of a process that is gone, on condition of UID and version.
    DeletePresence {
        name: String,
        uid: String,
        resource_version: String,
    },
    /// Writes on the Node the intention to hand the reboot over to the power controller.
    NoteEscalation {
        /// The Node as read; UID and resourceVersion go with the patch, so it fails if the kubelet
        /// has posted a new boot meanwhile.
        node: Box<ObservedNode>,
        note: EscalationRecord,
    },
    /// Asks the power controller to reboot the host: `reboot.metal3.io`, mode hard. The same patch
    /// writes the mark that the host was asked for this reboot.
    Escalate {
        /// The host as read; UID and resourceVersion go with the patch.
        host: HostRef,
        /// The mark.
        note: EscalationRecord,
    },
}

/// Facts that a case needs. Each is asked for until its answer is newer than `newer_than`, in
/// monotonic time.
#[derive(Debug, Clone, PartialEq)]
pub enum HealerObserve {
    /// One Node, freshly read, with the annotations that the watch does not keep.
    Node {
        name: NodeName,
        newer_than: Duration,
    },
    /// The Node for which a Lease is held, read twice.
    Holder {
        lease: Box<ObservedLease>,
        newer_than: Duration,
    },
    /// The Node of a host that uses the lock API, then the Leases, each freshly read.
    Api {
        holder: HolderId,
        /// `None` if the host is not a Node.
        node: Option<NodeName>,
        newer_than: Duration,
    },
    Gates {
        node: NodeName,
        gates: Vec<ReturnGate>,
        /// Budgets that covered the drained pods, `namespace/name`.
        budgets: Vec<String>,
        newer_than: Duration,
    },
    /// The BareMetalHosts that name this Node.
    Hosts {
        node: NodeName,
        newer_than: Duration,
    },
}

pub(super) type HealerDecision = crate::Decision<HealerAction, HealerObserve, RebootReason>;
