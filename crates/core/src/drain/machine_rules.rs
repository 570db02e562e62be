//! MachineDrainRules of Cluster API: which of them apply to the node's Machine, and to which pods.
//!
//! Source: `api/core/v1beta2/machinedrainrule_types.go` and `core/reconcilers/machine/drain` of
//! Cluster API. Entries of a list are joined by OR, the selectors of one entry by AND; an empty list
//! and an empty selector select everything.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::selector::LabelSelector;

type ObjectLabels = BTreeMap<String, String>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineDrainRule {
    /// `namespace/name`.
    pub name: Arc<str>,
    pub machines: Vec<RuleMachines>,
    pub pods: Vec<RulePods>,
    pub behavior: MachineDrainBehavior,
}

/// One of `spec.machines`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleMachines {
    pub machine: LabelSelector,
    /// Matches the labels of the Machine's Cluster; `None`: every Cluster.
    pub cluster: Option<LabelSelector>,
}

/// One of `spec.pods`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RulePods {
    pub pod: LabelSelector,
    /// Matches the labels of the pod's namespace; `None`: every namespace.
    pub namespace: Option<LabelSelector>,
}

/// `spec.drain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineDrainBehavior {
    Drain {
        order: i32,
    },
    /// The pod stays.
    Skip,
    /// The pod is never evicted; the drain waits for its end.
    WaitCompleted,
}

/// The MachineDrainRules for one node, as one read shows them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MachineRulesLookup {
    /// The Node names no Machine of Cluster API.
    #[default]
    NoMachine,
    /// The Node names a Machine, and the Machine or the kind of its rules is not in this cluster.
    Elsewhere { why: String },
    /// The rules that apply to the node's Machine, in the order in which they are tried.
    Found(Vec<MachineDrainRule>),
    /// It is repeated after a pause.
    Failed { why: String },
}

impl MachineDrainRule {
    pub(super) fn has_order(&self) -> bool {
        !matches!(
            self.behavior,
            MachineDrainBehavior::Drain { order: 0 }
                | MachineDrainBehavior::Skip
                | MachineDrainBehavior::WaitCompleted
        )
    }

    fn applies_to_machine(&self, machine: &ObjectLabels, cluster: &ObjectLabels) -> bool {
        let selects = |entry: &RuleMachines| {
            let selector = entry.cluster.as_ref();
            entry.machine.matches_labels(machine)
                && selector.is_none_or(|selector| selector.matches_labels(cluster))
        };
        self.machines.is_empty() || self.machines.iter().any(selects)
    }
}

/// Whether the labels of the Machine's Cluster decide about one of these rules.
pub fn need_cluster_labels(rules: &[MachineDrainRule]) -> bool {
    let mut entries = rules.iter().flat_map(|rule| &rule.machines);
    entries.any(|entry| entry.cluster.is_some())
}

/// Whether the labels of a pod's namespace decide about one of these rules.
pub fn need_namespace_labels(rules: &[MachineDrainRule]) -> bool {
    let mut entries = rules.iter().flat_map(|rule| &rule.pods);
    entries.any(|entry| entry.namespace.is_some())
}

/// Those of a namespace's rules that apply to this Machine, by name: the first that applies to a pod
/// decides about it.
pub fn select_machine_rules(
    mut rules: Vec<MachineDrainRule>,
    machine: &ObjectLabels,
    cluster: &ObjectLabels,
) -> Vec<MachineDrainRule> {
    rules.retain(|rule| rule.applies_to_machine(machine, cluster));
    rules.sort_by(|one, other| one.name.cmp(&other.name));
    rules
}
