//! The whole fleet, for people: every Node, every slot, and what is on one node.
//!
//! **For:** what a person types: `dogwatch status`, `explain`, `check`, `reboot`, `abort`, `pause`,
//! `resume`, `unlock`, `power` and `confirm-off`.
//! **May touch:** reads of Nodes, Leases, policies, pods, DaemonSets, namespaces, budgets, hosts, Machines
//! and requests; who the caller is, and what they may do; two
//! annotations of a Node, `spec.online`, the reboot annotations and a person's word on a host, `spec.paused` of a policy,
//! the holder of a Lease, Events.
//! **Promises:** what it shows is made by the same functions that the coordinator sees by; every
//! write holds only for the object as it was judged; a lock that is broken is told by an Event
//! first.

mod abort;
mod check;
mod healer;
mod hosts;
mod installed;
mod mark;
mod names;
mod on_node;
mod pause;
mod read;
mod remedies;
mod request;
mod schedules;
mod unlock;
mod watch;
mod who;

pub use abort::{AbortAsked, NodeWatch};
pub use hosts::{Carried, HostChange, HostChanged, HostFound, HostsFound, HostsWatch};
pub use installed::{Container, Installed, Workload};
pub use pause::PauseChange;
pub(crate) use read::lease_row;
pub use remedies::{RemediesFound, remedies_seen};
pub use request::Requested;
pub use schedules::{FleetSchedulesWatch, ScheduleFound, SchedulesFound};
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
