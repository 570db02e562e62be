//! The drain of one node, as a state machine: events in, evictions out.
//!
//! **For:** to evict from a node the pods that `kubectl drain --ignore-daemonsets
//! --delete-emptydir-data --force` would remove, and to know when they are gone.
//! **May touch:** nothing; the owner of the [`NodeDrain`] runs the watch and makes the calls.
//! **Promises:** a pod that has to leave is on the wait list before its eviction is tried, and
//! leaves the list only when its deletion is seen or its eviction failed for good; no call is made
//! for a pod UID that the watch has shown replaced; at most `in_flight` calls are open at once;
//! every pod that the drain gives up on is named in [`DrainProgress`]. A pod is touched only when
//! every pod of a lower order is gone and its own wait is over. A Deployment is restarted at most
//! once for a pod, however often this drain begins anew.
//!
//! Source: specification §2.3 and §10.2; the filters and answers are those of `kubectl drain` v1.36 and of
//! the eviction endpoint of kube-apiserver v1.36.

mod admission;
mod budgets;
mod deployment;
mod eviction_queue;
mod filter;
mod held_pods;
mod machine_rules;
mod node_drain;
mod pod;
mod pod_lookups;
mod pod_plan;
mod pod_rules;
mod replacement_limit;
mod report;
mod retried_query;
mod roll_first;
mod rolled_pods;
#[cfg(test)]
mod tests;
mod types;
mod waiting_pod;

pub use crate::selector::{LabelOperator, LabelRequirement, LabelSelector};
pub use admission::{AdmissionRefusal, AdmissionRefuser, OWN_PODS_POLICY};
pub use deployment::{
    DeploymentLookup, DeploymentRestart, ObservedDeployment, ReplicaSetRef, ReplicaShare,
    RestartAnswer, RolloutStrategy,
};
pub use machine_rules::{
    MachineDrainBehavior, MachineDrainRule, MachineRulesLookup, RuleMachines, RulePods,
    need_cluster_labels, need_namespace_labels, select_machine_rules,
};
pub use node_drain::NodeDrain;
pub use pod_lookups::PodLookup;
pub use pod_plan::{PlanReason, PodAction, PodDrainPlan, WaitLimit};
pub use pod_rules::{PodMark, PodRule, PodRules, RuleAction};
pub use roll_first::{RolloutOutlook, UnrolledPod};
pub use types::{
    BlockedPod, BudgetNumbers, ControllerRef, DaemonSetLookup, DaemonSetRef, DrainConfig,
    DrainProgress, DrainStart, DroppedPod, EvictionAnswer, EvictionAttempt, EvictionId,
    EvictionStep, HeldPod, ObservedDisruptionBudget, ObservedPod, PodIdentity, PodMarks, PodPhase,
    RemovalMethod, ToleratedPod,
};
