//! Keeps a connection to each workload cluster that a Machine names, and watches its Nodes.
//!
//! **Promises:** one task for each cluster: a hung cluster delays no other (L1). What a cluster
//! showed is used only while it answers; a connection is used only for the cluster that it was made
//! to, by the UID of its namespace `kube-system`.

mod follow;
mod registry;
mod watcher;

pub(super) use follow::FollowedWorkloads;
pub(super) use registry::{ObservedWorkloadCluster, WorkloadRegistry};
