//! The drain of one node, as a machine of its own: events in, evictions out.
//!
//! **For:** to empty a node of the pods that `kubectl drain --ignore-daemonsets
//! --delete-emptydir-data --force` would take from it, by eviction, and to know when it is empty.
//! **May touch:** nothing; the watch and the calls are made by whoever owns the [`Drain`].
//! **Promises:** a pod that qualifies is on the wait list before its eviction is tried, and leaves
//! it only when its deletion is seen or its eviction failed for good; no call ever goes out for an
//! incarnation that the watch has seen replaced; at most `in_flight` calls are open at once;
//! nothing is given up without being named in [`Progress`].
//!
//! Source: specification §2.3; the filters and answers are those of `kubectl drain` v1.36 and of
//! the eviction endpoint of kube-apiserver v1.36.

mod admission;
mod budgets;
mod filter;
mod lookups;
mod machine;
mod pod;
mod question;
mod report;
#[cfg(test)]
mod tests;
mod turnover;
mod turns;
mod types;
mod waiting;

pub use crate::selector::{LabelSelector, Operator, Requirement};
pub use admission::{OWN_PODS_POLICY, Refusal, Refuser};
pub use machine::Drain;
pub use types::{
    Answer, Blocked, BudgetNumbers, BudgetSeen, DaemonSetRef, DrainConfig, Dropped, EvictionId,
    Lookup, Owner, PodPhase, PodRef, PodSeen, Progress, Step, Tolerated, Try, Way,
};
