//! Watches `NodeReboot`s, asks their Nodes, and writes their status.
//!
//! **For:** [`NodeRebootWatch`] watches them, [`convert_node_reboot`] turns one into what `core`
//! decides with, [`NodeRebootClient`] reads Nodes and writes.
//! **May touch:** `nodereboots.dogwatch.dev` (list, watch, finalizer, status, delete), Nodes (get,
//! and one annotation), BareMetalHosts (get, list, and one annotation), Machines (list), Events.
//! **Promises:** every write carries UID and resourceVersion of what it was decided on. A NodeReboot
//! that cannot be understood has problems, and hides no other.
//!
//! Source: specification §10.1.

mod client;
mod convert;
mod host;
mod object;
mod status;
#[cfg(test)]
mod tests;
mod watch;

pub use client::NodeRebootClient;
pub use convert::convert_node_reboot;
pub use object::NodeRebootObject;
pub use watch::{NodeRebootView, NodeRebootWatch};
