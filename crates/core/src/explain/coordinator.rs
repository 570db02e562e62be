//! Whether coordinators run although there is no DaemonSet of them.

use jiff::Timestamp;

use super::fleet::FleetSnapshot;
use crate::healer::last_coordinator_sign;
use crate::name::NodeName;

/// Signs on the Nodes that coordinators run without the DaemonSet: as a system service, or in the
/// demo's process. An idle coordinator writes nothing, so a missing sign proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoordinatorSigns {
    /// This node's coordinator last wrote on its Node at this time.
    Here(Timestamp),
    /// Only coordinators of other nodes wrote.
    Elsewhere,
    /// No coordinator has written on any Node.
    Nowhere,
}

impl FleetSnapshot {
    /// Looks for signs of this node's coordinator first, then of any other.
    pub fn coordinator_signs(&self, name: &NodeName) -> CoordinatorSigns {
        if let Some(at) = self.find_node(name).and_then(last_coordinator_sign) {
            return CoordinatorSigns::Here(at);
        }
        if self
            .nodes
            .iter()
            .any(|node| last_coordinator_sign(node).is_some())
        {
            return CoordinatorSigns::Elsewhere;
        }
        CoordinatorSigns::Nowhere
    }
}
