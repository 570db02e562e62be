//! Whether coordinators run although no DaemonSet of them is seen.

use jiff::Timestamp;

use super::fleet::Fleet;
use crate::heal::last_sign;
use crate::name::NodeName;

/// What the Nodes themselves show of coordinators that run in another way than as the DaemonSet: as a
/// system service, or in the demo's process. An idle coordinator writes nothing, so no sign is no proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoordinatorSigns {
    /// This node's coordinator wrote on its Node, last at this time.
    Here(Timestamp),
    /// Only those of other nodes did.
    Elsewhere,
    /// No coordinator ever wrote on any Node.
    Nowhere,
}

impl Fleet {
    /// The signs of life of this node's coordinator, or of any.
    pub fn coordinator_signs(&self, name: &NodeName) -> CoordinatorSigns {
        if let Some(at) = self.node(name).and_then(last_sign) {
            return CoordinatorSigns::Here(at);
        }
        if self.nodes.iter().any(|node| last_sign(node).is_some()) {
            return CoordinatorSigns::Elsewhere;
        }
        CoordinatorSigns::Nowhere
    }
}
