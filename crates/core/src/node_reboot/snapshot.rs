//! The input of the decision about one `NodeReboot`.

use std::sync::Arc;
use std::time::Duration;

use super::estimate::NodeRebootEstimate;
use super::types::ObservedNodeReboot;
use crate::Now;
use crate::power::{HostName, HostSnapshot, PowerReason};
use crate::reboot::ObservedNode;
use crate::remediation::{HostLinkProblem, ObservedPower};

/// Fresh reads older than this are repeated.
pub(super) const MAX_READ_AGE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq)]
pub struct NodeRebootSnapshot {
    pub own: Arc<ObservedNodeReboot>,
    /// The other NodeReboots of the same Node.
    pub others: Vec<Arc<ObservedNodeReboot>>,
    /// The Node by the watch, or by the answer to our own write or read if that is newer. `None`:
    /// the watch shows no such Node.
    pub node: Option<Arc<ObservedNode>>,
    /// A read of the Node that was sent after `own` had its present version.
    pub read: Option<RebootNodeRead>,
    /// Whether a request that was sent to the Node without an answer may still arrive.
    pub late_ask: LateAsk,
    /// The Node's host, as far as a power cycle needs it.
    pub host: NodeHostView,
    /// What the planner says about the Node.
    pub estimate: NodeRebootEstimate,
}

/// A patch that asks the Node, and that may still arrive although nobody waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LateAsk {
    #[default]
    None,
    /// It was sent for this version of the Node, and fails on any other.
    ForVersion(String),
    /// An earlier leader may have sent one.
    Unknown,
}

impl LateAsk {
    pub(super) fn may_reach(&self, node: &ObservedNode) -> bool {
        match self {
            LateAsk::None => false,
            LateAsk::ForVersion(version) => *version == node.resource_version,
            LateAsk::Unknown => true,
        }
    }
}

/// What is known of a Node's host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeHostView {
    /// This process controls the power of hosts.
    pub is_power_controlled: bool,
    /// `--require-host-identity`.
    pub is_identity_required: bool,
    /// The last reads of the host, one of each lookup.
    pub reads: Vec<NodeHostRead>,
    /// The power controller's view of the host that was read, or that the attempt names. `None`: it
    /// knows no such host yet.
    pub power: Option<NodeHostPower>,
}

/// How the host is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostLookup {
    /// By every link between Node and host that remediation follows.
    ByLinks,
    ByName(HostName),
}

/// A read of the host.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeHostRead {
    pub lookup: HostLookup,
    /// Which host it is, or why that is not known; or why it could not be read.
    pub found: Result<Result<Arc<HostSnapshot>, HostLinkProblem>, String>,
    /// When the read was sent, in monotonic time.
    pub taken: Duration,
}

/// The power controller's view of one host.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeHostPower {
    pub host: Arc<HostSnapshot>,
    /// Why it cannot be switched off and on, and proved off.
    pub obstacle: Option<(PowerReason, String)>,
    pub observed: ObservedPower,
}

/// A fresh read of the Node.
#[derive(Debug, Clone, PartialEq)]
pub struct RebootNodeRead {
    /// `None`: there is no such Node; or why it could not be read.
    pub node: Result<Option<Arc<ObservedNode>>, String>,
    /// When the read was sent, in monotonic time.
    pub taken: Duration,
}

impl NodeHostRead {
    /// Puts this read in the place of the older one of its lookup.
    pub fn replace_in(self, reads: &mut Vec<NodeHostRead>) {
        reads.retain(|read| read.lookup != self.lookup);
        reads.push(self);
    }
}

impl NodeHostView {
    /// The last read of the host by this lookup, if it is not older than `max_age`.
    pub(super) fn read_within(
        &self,
        lookup: &HostLookup,
        max_age: Duration,
        now: Now,
    ) -> Option<&NodeHostRead> {
        let mut reads = self.reads.iter();
        let read = reads.find(|read| read.lookup == *lookup)?;
        (now.mono.saturating_sub(read.taken) < max_age).then_some(read)
    }

    /// The power controller's view, if it is of this very host.
    pub(super) fn power_of(&self, host: &HostName, uid: &str) -> Option<&NodeHostPower> {
        let power = self.power.as_ref();
        power.filter(|power| power.host.name == *host && power.host.uid == uid)
    }
}

impl NodeRebootSnapshot {
    pub(super) fn fresh_read(&self, now: Now) -> Option<&RebootNodeRead> {
        let read = self.read.as_ref();
        read.filter(|read| now.mono.saturating_sub(read.taken) < MAX_READ_AGE)
    }
}
