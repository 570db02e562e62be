//! The PodDisruptionBudgets of the drain: those that block one of the node's pods, from a watch,
//! and the names of all that covered a pod of this drain.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::retried_query::RetriedQuery;
use super::types::{BudgetNumbers, ObservedDisruptionBudget, ObservedPod};

#[derive(Debug, Clone, Default)]
pub(super) struct DrainBudgets {
    /// By namespace, then by name.
    seen: BTreeMap<String, BTreeMap<String, ObservedDisruptionBudget>>,
    /// Namespaces that are still watched and whose budgets have arrived.
    watched: BTreeSet<String>,
    /// The list of the budgets of all namespaces; wanted from the start of the drain.
    list: RetriedQuery<()>,
    /// Pods that entered the wait list before the list arrived.
    unmatched: Vec<ObservedPod>,
    /// `namespace/name` of every budget that covered a pod of this drain.
    covered: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BudgetChange {
    before: Option<ObservedDisruptionBudget>,
    after: Option<ObservedDisruptionBudget>,
}

impl DrainBudgets {
    /// Remembers the budgets that cover a pod entering the wait list: the return checks them.
    pub(super) fn record_covering_budgets(&mut self, pod: &ObservedPod) {
        if self.list.known_answer().is_some() {
            self.covered.extend(
                self.budgets_covering_pod(pod)
                    .iter()
                    .map(BudgetNumbers::full_name),
            );
        } else {
            self.unmatched.push(pod.clone());
        }
    }

    pub(super) fn start_list_if_due(&mut self, now: Duration) -> bool {
        self.list.start_if_due(now)
    }

    /// Takes the list of all budgets, or the error of the call.
    pub(super) fn apply_budget_list(
        &mut self,
        answer: Result<Vec<ObservedDisruptionBudget>, String>,
        now: Duration,
    ) {
        self.list
            .apply_answer(answer.as_ref().map(|_| ()).map_err(Clone::clone), now);
        for budget in answer.into_iter().flatten() {
            let namespace = &budget.numbers.namespace;
            if !self.watched.contains(namespace) {
                let there = self.seen.entry(namespace.clone()).or_default();
                there.insert(budget.numbers.name.clone(), budget);
            }
        }
        if self.list.known_answer().is_some() {
            for pod in std::mem::take(&mut self.unmatched) {
                self.record_covering_budgets(&pod);
            }
        }
    }

    /// Takes all budgets of one watched namespace and returns those that changed. The first call
    /// for a namespace returns all of them, because a budget may have changed and changed back
    /// since it was listed.
    pub(super) fn replace_namespace_budgets(
        &mut self,
        namespace: &str,
        seen: Vec<ObservedDisruptionBudget>,
    ) -> Vec<BudgetChange> {
        let after: BTreeMap<String, ObservedDisruptionBudget> = seen
            .into_iter()
            .map(|budget| (budget.numbers.name.clone(), budget))
            .collect();
        let listed = self
            .seen
            .insert(namespace.to_owned(), after.clone())
            .unwrap_or_default();
        let first = self.watched.insert(namespace.to_owned());
        let before = if first { BTreeMap::new() } else { listed };
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        names
            .into_iter()
            .map(|name| BudgetChange {
                before: before.get(name).cloned(),
                after: after.get(name).cloned(),
            })
            .filter(|change| change.before != change.after)
            .collect()
    }

    pub(super) fn is_namespace_watched(&self, namespace: &str) -> bool {
        self.watched.contains(namespace)
    }

    pub(super) fn retain_watched_namespaces(&mut self, namespaces: &BTreeSet<String>) {
        self.watched
            .retain(|namespace| namespaces.contains(namespace));
    }

    pub(super) fn budgets_covering_pod(&self, pod: &ObservedPod) -> Vec<BudgetNumbers> {
        let here = self.seen.get(&pod.pod.namespace);
        here.into_iter()
            .flat_map(BTreeMap::values)
            .filter(|budget| budget.covers_pod(pod))
            .map(|budget| budget.numbers.clone())
            .collect()
    }

    pub(super) fn covering_budget_names(&self) -> Vec<String> {
        self.covered.iter().cloned().collect()
    }

    /// The list has neither been answered nor failed yet.
    pub(super) fn is_list_pending(&self) -> bool {
        self.list.known_answer().is_none() && self.list.last_failure().is_none()
    }

    pub(super) fn list_failure(&self) -> Option<&str> {
        self.list.last_failure()
    }

    pub(super) fn next_list_at(&self) -> Option<Duration> {
        self.list.due_at()
    }
}

impl BudgetChange {
    pub(super) fn affects_pod(&self, pod: &ObservedPod) -> bool {
        [&self.before, &self.after]
            .into_iter()
            .flatten()
            .any(|budget| budget.covers_pod(pod))
    }

    /// How many of the budget's pods to try now.
    ///
    /// Each accepted eviction changes the status of the budget. Trying all other pods on each
    /// change would make n² calls, so only as many are tried as the budget now allows. All are
    /// tried when a person changed or removed the budget, because then its rules may have changed,
    /// not only the number.
    pub(super) fn retry_allowance(&self) -> usize {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if before.generation != after.generation => usize::MAX,
            (_, Some(after)) => usize::try_from(after.numbers.disruptions_allowed).unwrap_or(0),
            (_, None) => usize::MAX,
        }
    }
}

impl ObservedDisruptionBudget {
    pub(crate) fn covers_pod(&self, pod: &ObservedPod) -> bool {
        self.numbers.namespace == pod.pod.namespace
            && self
                .selector
                .as_ref()
                .is_some_and(|selector| selector.matches_labels(&pod.labels))
    }
}
