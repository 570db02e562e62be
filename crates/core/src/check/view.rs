//! What was read for a check. A part that could not be read holds the reason.

use std::collections::{BTreeMap, BTreeSet};

use crate::drain::{
    DaemonSetRef, DeploymentLookup, MachineRulesLookup, ObservedDisruptionBudget, ObservedPod,
    ReplicaSetRef,
};
use crate::explain::{FleetSnapshot, ObservedCoordinator, RemediationForecast};
use crate::name::NodeName;

#[derive(Debug, Clone, PartialEq)]
pub struct CheckView {
    pub node: NodeName,
    pub fleet: FleetSnapshot,
    pub pods: Result<Vec<PodFacts>, String>,
    pub budgets: Result<Vec<ObservedDisruptionBudget>, String>,
    /// Those of the pods' DaemonSets that exist.
    pub daemonsets: Result<BTreeSet<DaemonSetRef>, String>,
    /// Namespaces that are being deleted.
    pub terminating: Result<BTreeSet<String>, String>,
    /// The labels of every namespace.
    pub namespace_labels: Result<BTreeMap<String, BTreeMap<String, String>>, String>,
    /// The Deployments that a drain rule may restart.
    pub deployments: BTreeMap<ReplicaSetRef, DeploymentLookup>,
    /// The MachineDrainRules of the node's Machine, where the policy honours them.
    pub machine_rules: MachineRulesLookup,
    /// The results of the policy's gates, in their order.
    pub gates: Vec<GateAnswer>,
    pub coordinator: Result<ObservedCoordinator, String>,
    /// Why the admission policies are not in force, one message for each reason.
    pub admission: Result<Vec<String>, String>,
    /// Dogwatch's namespace, if the admission policies let no coordinator evict a pod there.
    pub protected_namespace: Option<String>,
    /// Whether the kind NodeReboot is installed, so that `dogwatch reboot` asks by one. `None`: not
    /// needed, because a controller leads.
    pub node_reboot_kind: Option<Result<bool, String>>,
    /// What would block a remediation; `None` if the cluster has no hosts.
    pub remediation: Option<Result<RemediationForecast, String>>,
}

/// A pod, and facts about it that only a person needs before the drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodFacts {
    pub observed: ObservedPod,
    /// The names of its emptyDir volumes, whose data is lost with it. Volumes in memory are left
    /// out.
    pub empty_dirs: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateAnswer {
    /// `pods app=batch`, `Prometheus http://…`.
    pub gate: String,
    pub state: GateState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateState {
    Open,
    /// The reasons why it is shut.
    Shut(Vec<String>),
    /// Why it could not be checked from here.
    Unknown(String),
}
