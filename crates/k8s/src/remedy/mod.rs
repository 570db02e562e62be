//! What a remediation sees of the cluster beside Nodes and hosts, and its hand on all of it.
//!
//! **For:** the remediator ([`RemedyWatch`], [`RemedyClient`]).
//! **May touch:** Machines of OpenShift and Cluster API, Metal3Machines, `PowerRemediation`s; of
//! BareMetalHosts our keys and annotations; Nodes; ConfigMaps of Dogwatch's namespace; Events.
//! **Promises:**
//! - Objects are trimmed as they come, page by page; a kind may be absent, come, and go.
//! - Every write carries UID and resourceVersion of what it was decided on where the call allows it, its
//!   answer is compared, and done once more it does nothing.
//! - [`RemedyClient::release`] is the only code that deletes a Node or taints it out of service, and it
//!   demands a [`Cleared`](dogwatch_core::remedy::Cleared) that lasts (S2).
//! - No annotation, condition, finalizer or taint of others is touched (S3).
//!
//! Source: specification §4.

mod backup;
mod carried;
mod client;
mod event;
mod kind;
mod list;
mod look;
mod machine;
mod request;
mod restore;
mod sight;
mod status;
#[cfg(test)]
mod tests;
mod view;
mod watch;
mod write;

pub(crate) use carried::carried;
pub use client::RemedyClient;
pub use event::About;
pub(crate) use kind::{CLUSTER_API, machine_resource};
pub(crate) use list::{everything, links};
pub(crate) use look::NODE_LEASES;
pub use view::RemedyView;
pub use watch::{NOT_INSTALLED, RemedyWatch};
pub use write::{Released, WriteError};
