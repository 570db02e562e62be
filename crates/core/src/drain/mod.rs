//! The drain of one node, as a state machine: events in, evictions out.
//!
//! **For:** to evict from a node the pods that `kubectl drain --ignore-daemonsets
//! --delete-emptydir-data --force` would remove, and to know when they are gone.
//! **May touch:** nothing; the owner of the [`NodeDrain`] runs the watch and makes the calls.
//! **Promises:** a pod that has to leave is on the wait list before its eviction is tried, and
//! leaves the list only when its deletion is seen or its eviction failed for good; no call is made
//! for a pod UID that the watch has shown replaced; at most `in_flight` calls are open at once;
//! every pod that the drain gives up on is named in [`DrainProgress`].
//!
//! Source: specification §2.3; the filters and answers are those of `kubectl drain` v1.36 and of
//! the eviction endpoint of kube-apiserver v1.36.

mod admission;
mod budgets;
mod daemonset_lookups;
mod eviction_queue;
mod filter;
mod node_drain;
mod pod;
mod replacement_limit;
mod report;
mod retried_query;
#[cfg(test)]
mod tests;
mod types;
mod waiting_pod;

pub use crate::selector::{LabelOperator, LabelRequirement, LabelSelector};
pub use admission::{AdmissionRefusal, AdmissionRefuser, OWN_PODS_POLICY};
pub use node_drain::NodeDrain;
pub use types::{
    BlockedPod, BudgetNumbers, ControllerRef, DaemonSetLookup, DaemonSetRef, DrainConfig,
    DrainProgress, DroppedPod, EvictionAnswer, EvictionAttempt, EvictionId, EvictionStep,
    ObservedDisruptionBudget, ObservedPod, PodIdentity, PodPhase, RemovalMethod, ToleratedPod,
};
