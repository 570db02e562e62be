//! The permission to release a Node's workloads. Source: specification §1 S2, §4.1.

use std::time::Duration;

use jiff::Timestamp;

use super::request::StrategyType;
use crate::name::NodeName;
use crate::power::{HostName, OffProof};

/// This Node's machine is proved off, for this request, and was so a moment ago. Made by [`super::decide`]
/// alone; whoever deletes a Node, or taints it out of service, demands one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleared {
    pub(super) node: NodeName,
    pub(super) node_uid: String,
    pub(super) host: HostName,
    pub(super) proof: OffProof,
    pub(super) until: Duration,
}

/// A release: of whom, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The permission.
    pub cleared: Cleared,
    /// How.
    pub how: StrategyType,
    /// `timeAdded` of the taint, in whole seconds: by it, as it stands in the request's status, the taint is
    /// known to be ours when it is lifted. No meaning for a Node that is deleted.
    pub tainted_at: Timestamp,
}

impl Cleared {
    /// The Node.
    pub fn node(&self) -> &NodeName {
        &self.node
    }

    /// Its UID: the precondition.
    pub fn node_uid(&self) -> &str {
        &self.node_uid
    }

    /// The host that is off.
    pub fn host(&self) -> &HostName {
        &self.host
    }

    /// What it rests on.
    pub fn proof(&self) -> &OffProof {
        &self.proof
    }

    /// Whether it still holds at this moment of the monotonic clock that it was made by. Later: all again.
    pub fn lasts(&self, now: Duration) -> bool {
        now < self.until
    }
}
