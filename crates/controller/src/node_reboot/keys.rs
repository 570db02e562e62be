//! The keys of this domain's loop, and what each of them is decided with.

use std::fmt;
use std::sync::Arc;

use dogwatch_core::node_reboot::{
    HostKeyName, HostKeySnapshot, KeyOwnerRead, NodeHostRead, NodeRebootSnapshot,
    ObservedNodeReboot, RebootNodeRead,
};
use dogwatch_core::power::HostSnapshot;
use dogwatch_core::reboot::ObservedNode;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeRebootKey {
    Reboot(NodeRebootName),
    /// A key on a host that no NodeReboot answers for.
    HostKey(HostKeyName),
}

/// A NodeReboot that was deleted and created again is another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeRebootName {
    pub(super) name: String,
    pub(super) uid: String,
}

impl fmt::Display for NodeRebootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeRebootKey::Reboot(reboot) => reboot.name.fmt(f),
            NodeRebootKey::HostKey(key) => write!(f, "host {} ({})", key.host, key.owner),
        }
    }
}

pub(super) enum KeySnapshot {
    Reboot(Box<NodeRebootSnapshot>),
    HostKey(HostKeySnapshot),
}

/// An object after our own write.
pub(super) enum NodeRebootAnswer {
    Reboot(Arc<ObservedNodeReboot>),
    Node(Option<Arc<ObservedNode>>),
    /// The Node after a write that makes late requests fail.
    LateAskBlocked(Option<Arc<ObservedNode>>),
    Host(Box<HostSnapshot>),
    Gone,
}

pub(super) enum NodeRebootFinding {
    Node(RebootNodeRead),
    Host(NodeHostRead),
    KeyOwner(KeyOwnerRead),
}
