//! Drains one node over the API server: one watch on its pods, evictions, lookups, budgets.
//!
//! **For:** running a [`dogwatch_core::drain::NodeDrain`], which makes all decisions.
//! **May touch:** pods of one node (list, watch, evict, delete), DaemonSets and
//! PodDisruptionBudgets and namespaces (read), ReplicaSets and Deployments (read, restart by
//! rollout) where a rule says so, and, where the policy honours MachineDrainRules, those, the Node,
//! its Machine and its Cluster (read).
//! **Promises:** one list and one watch of the pods, one call per eviction, one per DaemonSet, one
//! per namespace that a rule asks about, one list of PodDisruptionBudgets, and a watch of them only
//! while one blocks a pod; every eviction and deletion carries the pod's UID; a drain runs until it is dropped, whatever the API server
//! answers, and reports in [`DrainProgress`](dogwatch_core::drain::DrainProgress) what it cannot
//! do; it uses no randomness, so that under a paused clock the same cluster gives the same calls.
//!
//! Source: specification §2.3.

mod answer;
mod attachments;
mod budget;
mod call;
mod deployment;
mod machine_rules;
mod pod;
mod runner;

pub(crate) use budget::observed_budget;
pub(crate) use deployment::look_up_deployment;
pub(crate) use machine_rules::look_up_machine_rules;
pub(crate) use pod::{TaintRef, observed_pod, tolerates_taint};

pub use attachments::{AttachmentWatch, AttachmentsHandle};
pub use call::request_pod_removal;
pub use machine_rules::parse_machine_rule;
pub use runner::{DrainHandle, DrainRunner};
