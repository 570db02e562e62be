//! A PodDisruptionBudget as the drain sees it, and the watch on those of one namespace.

use std::collections::BTreeMap;

use dogwatch_core::drain::{BudgetNumbers, BudgetSeen, LabelSelector, Operator, Requirement};
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kube::{Api, Client};

use crate::watch::{Event, Full, Selection, watch};

pub(super) type BudgetEvents = BoxStream<'static, Event<PodDisruptionBudget>>;

/// The budgets of one namespace, kept fresh.
pub(super) struct BudgetWatch {
    pub(super) events: BudgetEvents,
    seen: BTreeMap<String, BudgetSeen>,
}

impl BudgetWatch {
    pub(super) fn start(client: &Client, namespace: &str) -> Self {
        let api: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), namespace);
        let events = watch(Full(api), Selection::default(), super::runner::middle).boxed();
        Self {
            events,
            seen: BTreeMap::new(),
        }
    }

    /// Takes an event in; answers all budgets if they may have changed.
    pub(super) fn take(&mut self, event: Event<PodDisruptionBudget>) -> Option<Vec<BudgetSeen>> {
        match event {
            Event::Restarted(all) => {
                self.seen = all.into_iter().map(seen).map(by_name).collect();
            }
            Event::Applied(budget) => self.seen.extend([by_name(seen(budget))]),
            Event::Deleted(budget) => {
                self.seen.remove(&seen(budget).numbers.name);
            }
            Event::Trouble(error) => {
                // Blocked pods are tried again every five seconds all the same.
                tracing::warn!(error = error.in_words(), "budgets cannot be watched");
                return None;
            }
        }
        Some(self.seen.values().cloned().collect())
    }
}

fn by_name(budget: BudgetSeen) -> (String, BudgetSeen) {
    (budget.numbers.name.clone(), budget)
}

pub(crate) fn seen(budget: PodDisruptionBudget) -> BudgetSeen {
    let status = budget.status.unwrap_or_default();
    BudgetSeen {
        generation: budget.metadata.generation.unwrap_or_default(),
        selector: budget
            .spec
            .and_then(|spec| spec.selector)
            .and_then(selector),
        numbers: BudgetNumbers {
            namespace: budget.metadata.namespace.unwrap_or_default(),
            name: budget.metadata.name.unwrap_or_default(),
            disruptions_allowed: status.disruptions_allowed.unwrap_or_default(),
            current_healthy: status.current_healthy.unwrap_or_default(),
            desired_healthy: status.desired_healthy.unwrap_or_default(),
            expected_pods: status.expected_pods.unwrap_or_default(),
        },
    }
}

/// An invalid selector covers no pod: the eviction endpoint says so too.
fn selector(selector: meta::LabelSelector) -> Option<LabelSelector> {
    let expressions = selector.match_expressions.unwrap_or_default();
    Some(LabelSelector {
        match_labels: selector.match_labels.unwrap_or_default(),
        match_expressions: expressions
            .into_iter()
            .map(requirement)
            .collect::<Option<_>>()?,
    })
}

fn requirement(requirement: meta::LabelSelectorRequirement) -> Option<Requirement> {
    let operator = match requirement.operator.as_str() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        _ => return None,
    };
    Some(Requirement {
        key: requirement.key,
        operator,
        values: requirement.values.unwrap_or_default(),
    })
}
