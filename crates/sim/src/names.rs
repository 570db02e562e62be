//! The names of the embedded cluster, as Dogwatch's own.

use dogwatch_core::name::{BootId, NodeName};

/// The name of a simulated node.
pub fn node_name(name: &str) -> NodeName {
    NodeName::new(name).expect("letters and digits")
}

/// The boot id of a simulated machine.
pub fn boot_id(id: &str) -> BootId {
    BootId::new(id).expect("a UUID is a boot id")
}
