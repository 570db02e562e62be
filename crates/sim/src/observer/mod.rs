//! Describes what happens in a simulated cluster, and checks the promises.
//!
//! **For:** scenarios, the demo and randomised runs: all see the same changes, in the order of the
//! API server's own versions, and judge them with the same [`PromiseChecks`].
//! **May touch:** the embedded API server's watches; no client, no timer.
//! **Promises:** every change of a Node, Lease, pod, budget or Event is seen once. The checks judge
//! the objects, not what Dogwatch says of itself.

mod change_entries;
mod checks;
mod cluster_observer;
mod host_entries;
mod node_reboot_entries;
mod object_views;
mod short_names;

pub use change_entries::{EntryText, LEADER_LEASE, ObserverEntry, change_entries};
pub use checks::{PromiseChecks, PromiseViolation};
pub use cluster_observer::{ClusterObserver, ObservedChange, ObservedKind};
pub use host_entries::parse_host;
pub use object_views::{NodeView, PodView, budget_shortage, lease_holder, text_at_pointer};
pub use short_names::ShortNames;
