//! Reads and writes the objects of a remediation, except Nodes and hosts that other modules watch.
//!
//! **For:** the remediator ([`RemediationWatch`], [`RemediationClient`]).
//! **May touch:** Machines of OpenShift and Cluster API, Metal3Machines, `PowerRemediation`s; our
//! keys and annotations on BareMetalHosts; Nodes; ConfigMaps in Dogwatch's namespace; Events.
//! **Promises:**
//! - Objects are listed page by page and trimmed on arrival; a kind may be absent, be installed
//!   later, and be removed.
//! - Every write carries UID and resourceVersion of what it was decided on, where the call allows
//!   it. Its answer is compared, and a repetition does nothing.
//! - [`RemediationClient::release_node`] is the only code that deletes a Node or taints it out of
//!   service, and it requires a valid [`ReleasePermit`](dogwatch_core::remediation::ReleasePermit)
//!   (S2).
//! - Annotations, conditions, finalizers and taints of others stay unchanged (S3).
//!
//! Source: specification §4.

mod apply_event;
mod backup;
mod client;
mod event;
mod hosted_nodes;
mod kind;
mod list;
mod machine;
mod node_host;
mod observe;
mod optional_watch;
mod request;
mod restore;
mod status;
#[cfg(test)]
mod tests;
mod view;
mod watch;
mod write;

pub use client::RemediationClient;
pub use event::RemediationEventSubject;
pub(crate) use hosted_nodes::read_hosted_nodes;
pub(crate) use kind::{
    CLUSTER_API_CLUSTER, CLUSTER_API_MACHINE, MACHINE_DRAIN_RULE, OptionalKind,
    find_machine_resource,
};
pub(crate) use list::read_remediation_objects;
pub(crate) use node_host::read_host_links;
pub(crate) use observe::NODE_LEASE_NAMESPACE;
pub use view::RemediationWatchView;
pub use watch::{NOT_INSTALLED_RECHECK, RemediationWatch};
pub use write::{ChangedObject, NodeReleaseOutcome, RemediationWriteError};
