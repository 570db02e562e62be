//! Watches the PodDisruptionBudgets of a namespace and converts them for the drain.

use std::collections::BTreeMap;

use dogwatch_core::drain::{
    BudgetNumbers, LabelOperator, LabelRequirement, LabelSelector, ObservedDisruptionBudget,
};
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kube::{Api, Client};

use crate::watch::{FullObjects, ObjectEvent, ObjectSelection, list_and_watch};

pub(super) type BudgetEvents = BoxStream<'static, ObjectEvent<PodDisruptionBudget>>;

/// Watches the PodDisruptionBudgets of one namespace.
pub(super) struct BudgetWatch {
    pub(super) events: BudgetEvents,
    seen: BTreeMap<String, ObservedDisruptionBudget>,
}

impl BudgetWatch {
    pub(super) fn start_watch(client: &Client, namespace: &str) -> Self {
        let api: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), namespace);
        let events = list_and_watch(
            FullObjects(api),
            ObjectSelection::default(),
            super::runner::fixed_jitter,
        )
        .boxed();
        Self {
            events,
            seen: BTreeMap::new(),
        }
    }

    /// Returns all PodDisruptionBudgets if they may have changed.
    pub(super) fn apply_event(
        &mut self,
        event: ObjectEvent<PodDisruptionBudget>,
    ) -> Option<Vec<ObservedDisruptionBudget>> {
        match event {
            ObjectEvent::Restarted(all) => {
                self.seen = all.into_iter().map(observed_budget).map(by_name).collect();
            }
            ObjectEvent::Applied(budget) => self.seen.extend([by_name(observed_budget(budget))]),
            ObjectEvent::Deleted(budget) => {
                self.seen.remove(&observed_budget(budget).numbers.name);
            }
            ObjectEvent::Failed(error) => {
                // Only a warning: blocked pods are retried every five seconds anyway.
                tracing::warn!(error = error.error_chain(), "budgets cannot be watched");
                return None;
            }
        }
        Some(self.seen.values().cloned().collect())
    }
}

fn by_name(budget: ObservedDisruptionBudget) -> (String, ObservedDisruptionBudget) {
    (budget.numbers.name.clone(), budget)
}

pub(crate) fn observed_budget(budget: PodDisruptionBudget) -> ObservedDisruptionBudget {
    let status = budget.status.unwrap_or_default();
    ObservedDisruptionBudget {
        generation: budget.metadata.generation.unwrap_or_default(),
        selector: budget
            .spec
            .and_then(|spec| spec.selector)
            .and_then(convert_selector),
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

/// An invalid selector selects no pod, as in the eviction endpoint.
fn convert_selector(selector: meta::LabelSelector) -> Option<LabelSelector> {
    let expressions = selector.match_expressions.unwrap_or_default();
    Some(LabelSelector {
        match_labels: selector.match_labels.unwrap_or_default(),
        match_expressions: expressions
            .into_iter()
            .map(convert_requirement)
            .collect::<Option<_>>()?,
    })
}

fn convert_requirement(requirement: meta::LabelSelectorRequirement) -> Option<LabelRequirement> {
    let operator = match requirement.operator.as_str() {
        "In" => LabelOperator::In,
        "NotIn" => LabelOperator::NotIn,
        "Exists" => LabelOperator::Exists,
        "DoesNotExist" => LabelOperator::DoesNotExist,
        _ => return None,
    };
    Some(LabelRequirement {
        key: requirement.key,
        operator,
        values: requirement.values.unwrap_or_default(),
    })
}
