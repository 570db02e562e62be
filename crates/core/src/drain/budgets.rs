//! The budgets over the node's pods: those that hold one up, as their watch shows them, and the
//! names of all that covered one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::question::Question;
use super::types::{BudgetNumbers, BudgetSeen, PodSeen};

/// What is known of budgets.
#[derive(Debug, Clone, Default)]
pub(super) struct Budgets {
    /// By namespace, then by name.
    seen: BTreeMap<String, BTreeMap<String, BudgetSeen>>,
    /// Namespaces whose watch has shown its budgets, and is still wanted.
    watched: BTreeSet<String>,
    /// The list of all budgets, wanted from the start.
    list: Question<()>,
    /// Pods that entered the wait list before that list came.
    unmatched: Vec<PodSeen>,
    /// `namespace/name` of every budget that covered a pod of this drain.
    covered: BTreeSet<String>,
}

/// A budget that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    before: Option<BudgetSeen>,
    after: Option<BudgetSeen>,
}

impl Budgets {
    /// A pod enters the wait list: the budgets that cover it are remembered for the return.
    pub(super) fn enlisted(&mut self, pod: &PodSeen) {
        if self.list.known().is_some() {
            self.covered
                .extend(self.covering(pod).iter().map(BudgetNumbers::full_name));
        } else {
            self.unmatched.push(pod.clone());
        }
    }

    /// Whether the list of all budgets is to be made now.
    pub(super) fn asks(&mut self, now: Duration) -> bool {
        self.list.asks(now)
    }

    /// The list of all budgets, or why there is none.
    pub(super) fn listed(&mut self, answer: Result<Vec<BudgetSeen>, String>, now: Duration) {
        self.list
            .answered(answer.as_ref().map(|_| ()).map_err(Clone::clone), now);
        for budget in answer.into_iter().flatten() {
            let namespace = &budget.numbers.namespace;
            if !self.watched.contains(namespace) {
                let there = self.seen.entry(namespace.clone()).or_default();
                there.insert(budget.numbers.name.clone(), budget);
            }
        }
        if self.list.known().is_some() {
            for pod in std::mem::take(&mut self.unmatched) {
                self.enlisted(&pod);
            }
        }
    }

    /// The budgets of one watched namespace, complete. Answers what changed; at the start of a
    /// watch that is all of them, for what was listed once may have gone to and fro since.
    pub(super) fn replace(&mut self, namespace: &str, seen: Vec<BudgetSeen>) -> Vec<Change> {
        let after: BTreeMap<String, BudgetSeen> = seen
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
            .map(|name| Change {
                before: before.get(name).cloned(),
                after: after.get(name).cloned(),
            })
            .filter(|change| change.before != change.after)
            .collect()
    }

    /// Whether the watch of this namespace has shown its budgets.
    pub(super) fn watches(&self, namespace: &str) -> bool {
        self.watched.contains(namespace)
    }

    /// Which namespaces are still watched.
    pub(super) fn watched_only(&mut self, namespaces: &BTreeSet<String>) {
        self.watched
            .retain(|namespace| namespaces.contains(namespace));
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

    /// Every budget that covered a pod of this drain.
    pub(super) fn covered(&self) -> Vec<String> {
        self.covered.iter().cloned().collect()
    }

    /// Never answered yet, neither by a list nor by a failure.
    pub(super) fn pending(&self) -> bool {
        self.list.known().is_none() && self.list.failure().is_none()
    }

    pub(super) fn failure(&self) -> Option<&str> {
        self.list.failure()
    }

    pub(super) fn wake(&self) -> Option<Duration> {
        self.list.wake()
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
    pub(crate) fn covers(&self, pod: &PodSeen) -> bool {
        self.numbers.namespace == pod.pod.namespace
            && self
                .selector
                .as_ref()
                .is_some_and(|selector| selector.matches(&pod.labels))
    }
}
