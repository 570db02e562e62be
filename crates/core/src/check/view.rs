//! What was read for a check. A part that could not be read says why.

use std::collections::BTreeSet;

use crate::drain::{BudgetSeen, DaemonSetRef, PodSeen};
use crate::explain::{CoordinatorSeen, Fleet, Foreseen};
use crate::name::NodeName;

/// Everything that a check is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckView {
    /// The node in question.
    pub node: NodeName,
    /// The cluster.
    pub fleet: Fleet,
    /// The pods on the node.
    pub pods: Result<Vec<PodFacts>, String>,
    /// All PodDisruptionBudgets.
    pub budgets: Result<Vec<BudgetSeen>, String>,
    /// The DaemonSets that exist, of those that the pods name as their controller.
    pub daemonsets: Result<BTreeSet<DaemonSetRef>, String>,
    /// Namespaces that are being deleted.
    pub terminating: Result<BTreeSet<String>, String>,
    /// The answers of the policy's gates, in their order.
    pub gates: Vec<GateAnswer>,
    /// The node's coordinator.
    pub coordinator: Result<CoordinatorSeen, String>,
    /// What keeps the admission policies from being in force, each in a sentence.
    pub admission: Result<Vec<String>, String>,
    /// What a remediation would run into; `None`: the cluster has no hosts.
    pub forced: Option<Result<Foreseen, String>>,
}

/// A pod, with what only a person wants to know beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodFacts {
    /// As the drain sees it.
    pub seen: PodSeen,
    /// The names of its emptyDir volumes: data that goes with it. Those in memory are not data.
    pub local: Vec<String>,
}

/// What one gate said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateAnswer {
    /// Which: `pods app=batch`, `Prometheus http://…`.
    pub gate: String,
    /// What it said.
    pub state: GateState,
}

/// Whether a gate is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateState {
    /// It is.
    Open,
    /// It is not, for these reasons.
    Shut(Vec<String>),
    /// It could not be asked from here.
    Unknown(String),
}
