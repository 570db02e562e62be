//! The budgets that hold pods up, as their watch shows them.

use std::collections::{BTreeMap, BTreeSet};

use super::types::{BudgetNumbers, BudgetSeen, PodSeen};

/// Budgets by namespace, then by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Budgets {
    seen: BTreeMap<String, BTreeMap<String, BudgetSeen>>,
}

/// A budget that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    before: Option<BudgetSeen>,
    after: Option<BudgetSeen>,
}

impl Budgets {
    /// The budgets of one namespace, complete. Answers what changed.
    pub(super) fn replace(&mut self, namespace: &str, seen: Vec<BudgetSeen>) -> Vec<Change> {
        let after: BTreeMap<String, BudgetSeen> = seen
            .into_iter()
            .map(|budget| (budget.numbers.name.clone(), budget))
            .collect();
        let before = self
            .seen
            .insert(namespace.to_owned(), after.clone())
            .unwrap_or_default();
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        names
            .into_iter()
            .map(|name| Change {
                before: before.get(name).cloned(),
                after: after.get(name).cloned(),
            })
            .filter(|change| change.before != change.after)
            .collect()
    }

    /// Forgets what is not watched any more: numbers that nobody keeps fresh would mislead.
    pub(super) fn keep_only(&mut self, namespaces: &BTreeSet<String>) {
        self.seen
            .retain(|namespace, _| namespaces.contains(namespace));
    }

    /// The numbers of those that cover this pod.
    pub(super) fn covering(&self, pod: &PodSeen) -> Vec<BudgetNumbers> {
        let here = self.seen.get(&pod.pod.namespace);
        here.into_iter()
            .flat_map(BTreeMap::values)
            .filter(|budget| budget.covers(pod))
            .map(|budget| budget.numbers.clone())
            .collect()
    }
}

impl Change {
    /// Whether this pod may fare otherwise than before.
    pub(super) fn concerns(&self, pod: &PodSeen) -> bool {
        [&self.before, &self.after]
            .into_iter()
            .flatten()
            .any(|budget| budget.covers(pod))
    }

    /// How many of its pods are worth trying now.
    ///
    /// Each accepted eviction changes its budget's status; to try all its other pods each time
    /// would make n² calls. So as many are tried as it now allows, but all of them when a person
    /// changed or removed it, because then other rules than the number may have changed.
    pub(super) fn room(&self) -> usize {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if before.generation != after.generation => usize::MAX,
            (_, Some(after)) => usize::try_from(after.numbers.disruptions_allowed).unwrap_or(0),
            (_, None) => usize::MAX,
        }
    }
}

impl BudgetSeen {
    fn covers(&self, pod: &PodSeen) -> bool {
        self.numbers.namespace == pod.pod.namespace
            && self
                .selector
                .as_ref()
                .is_some_and(|selector| selector.matches(&pod.labels))
    }
}
