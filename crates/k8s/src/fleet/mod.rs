//! The whole fleet, for people: every Node, every slot, and what is on one node.
//!
//! **For:** `dogwatch status`, `explain` and `reboot`.
//! **May touch:** reads of Nodes, Leases, pods, DaemonSets and budgets; one annotation of a Node.
//! **Promises:** what it shows is made by the same functions that the coordinator sees by; the only
//! write is [`FleetClient::request_reboot`], and it never replaces somebody else's request unasked.

mod on_node;
mod read;
mod request;
mod watch;

pub(crate) use read::lease_row;
pub use request::Requested;
pub use watch::FleetWatch;

use kube::Client;

/// A person's hand on the cluster.
#[derive(Clone)]
pub struct FleetClient {
    client: Client,
    namespace: String,
}

impl FleetClient {
    /// For the cluster behind `client`, whose Dogwatch lives in `namespace`.
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self {
            client,
            namespace: namespace.into(),
        }
    }
}
