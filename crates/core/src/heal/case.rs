//! What the healer may do, and look at, as data.

use std::time::Duration;

use super::seen::{Escalated, HostRef};
use crate::lock::api_lock::{ApiNode, NodeWrite};
use crate::lock::{HolderId, LeaseSeen};
use crate::name::{NodeName, RunId};
use crate::policy::ReturnGate;
use crate::reboot::{NodePatch, NodeSeen};

/// One object that needs somebody. Cases are independent: trouble with one delays no other (L1).
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Which object.
    pub subject: Subject,
    /// What to do about it, and why.
    pub decision: crate::Decision<Action, Look>,
}

/// What a case is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A Node.
    Node(NodeName),
    /// A slot's Lease.
    Lease(String),
    /// The presence Lease of a replica of the lock API.
    Presence(String),
}

/// One write. Each is conditional on what was seen; done once more it does nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// One patch of a Node, as its coordinator would send it.
    PatchNode {
        /// As it was seen: its UID goes with the patch.
        node: Box<NodeSeen>,
        /// The patch; it carries the resourceVersion.
        patch: Box<NodePatch>,
    },
    /// Runs go from a Lease; the last one out frees it and calls the next.
    Release {
        /// As it was seen; UID and resourceVersion go with the write.
        lease: Box<LeaseSeen>,
        /// Runs that rely on it still.
        remaining: Vec<RunId>,
    },
    /// Clears a Lease whose holder is proved gone.
    Break {
        /// As it was seen.
        lease: Box<LeaseSeen>,
        /// The proof, in words.
        evidence: String,
    },
    /// One patch of a Node as the lock API would send it: its cordon is undone, or one that may be on
    /// its way is made to fail.
    PatchApiNode {
        /// Whose lock it is for.
        holder: HolderId,
        /// As it was read: its UID goes with the patch.
        node: Box<ApiNode>,
        /// The patch; it carries the resourceVersion.
        write: Box<NodeWrite>,
    },
    /// The presence Lease of a process that is gone is deleted, on condition of UID and version.
    DeletePresence {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
        /// Its version.
        resource_version: String,
    },
    /// The intention to hand a reboot over, on the Node, before it is done.
    NoteEscalation {
        /// As it was read: UID and resourceVersion go with the patch. Had the kubelet posted a new
        /// boot meanwhile, it would fail.
        node: Box<NodeSeen>,
        /// What is noted.
        note: Escalated,
    },
    /// The power controller is asked to reboot the host: `reboot.metal3.io`, mode hard, and in the
    /// same patch the mark that it was asked for this reboot.
    Escalate {
        /// The host as it was read: UID and resourceVersion go with the patch.
        host: HostRef,
        /// The mark.
        note: Escalated,
    },
}

/// Facts that a case wants read. Each is asked for until an answer newer than `newer_than` is there.
#[derive(Debug, Clone, PartialEq)]
pub enum Look {
    /// One Node, read afresh, with the annotations that a watch does not keep.
    Node {
        /// Which.
        name: NodeName,
        /// An older answer will not do.
        newer_than: Duration,
    },
    /// The Node that a Lease is held for, read twice.
    Holder {
        /// The Lease.
        lease: Box<LeaseSeen>,
        /// Older answers will not do.
        newer_than: Duration,
    },
    /// The Node of a host that uses the lock API, then the Leases, each read afresh.
    Api {
        /// Whose lock.
        holder: HolderId,
        /// Its Node; `None` if the host is none.
        node: Option<NodeName>,
        /// Older answers will not do.
        newer_than: Duration,
    },
    /// The return gates of a node.
    Gates {
        /// Which node.
        node: NodeName,
        /// Which gates.
        gates: Vec<ReturnGate>,
        /// Budgets that covered the drained pods, `namespace/name`.
        budgets: Vec<String>,
        /// Older answers will not do.
        newer_than: Duration,
    },
    /// The BareMetalHosts that name this Node.
    Hosts {
        /// Which Node.
        node: NodeName,
        /// Older answers will not do.
        newer_than: Duration,
    },
}

pub(super) type Decision = crate::Decision<Action, Look>;
