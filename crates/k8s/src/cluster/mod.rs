//! Watches the whole cluster: Nodes, Dogwatch's Leases and policies.
//!
//! **For:** the controller, whose loops all read one [`ClusterView`].
//! **May touch:** Nodes, Leases of one namespace and RebootPolicies (list, watch).
//! **Promises:** one watch per kind; each Node is trimmed on arrival to the fields that decisions
//! use; a view is [`synced`](ClusterView::synced) only once all lists have arrived. A view may be
//! stale: every write based on it carries the UID and resourceVersion from it.

mod view;
mod watch;

pub use view::{ClusterView, LeaseObject, PolicyObjectState};
pub use watch::ClusterWatch;
