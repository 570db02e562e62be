//! The whole cluster kept in sight: Nodes, Dogwatch's Leases, policies.
//!
//! **For:** the controller, whose loops all look at one [`ClusterView`].
//! **May touch:** Nodes, Leases of one namespace and RebootPolicies (list, watch).
//! **Promises:** one watch each; a Node is trimmed to what decisions see as it comes in; a view is
//! [`synced`](ClusterView::synced) only once all lists have come. It may be old: whoever acts on it
//! writes with the UID and version that it shows.

mod view;
mod watch;

pub use view::{ClusterView, LeaseObject, PolicyStanding};
pub use watch::ClusterWatch;
