//! What a drain of the node would do with each pod, by the state machine that drains.

use serde::Serialize;

use super::pods::node_pods;
use super::view::CheckView;
use crate::Now;
use crate::drain::{DrainStart, ObservedPod, PodAction, PodDrainPlan, WaitLimit};
use crate::duration::format_duration;
use crate::explain::{NodePods, format_time};

/// One pod in the plan of a drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedPod {
    /// `namespace/name`.
    pub pod: String,
    /// `evict`, `delete`, `stay`, `wait up to 1h, then evict`.
    pub action: String,
    /// Pods of a lower order are gone before this one is touched; `None` for pods that stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<i32>,
    /// The rule, mark or property of the pod that decides.
    pub why: String,
    /// PodDisruptionBudgets that allow no disruption now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<String>,
}

/// The plan in its order, pods that stay last. `None`: the node or its pods could not be read.
pub fn plan_drain(view: &CheckView, now: Now) -> Option<Vec<PlannedPod>> {
    let node = view.fleet.find_node(&view.node)?;
    let rules = view.fleet.rule_of_node(node).config.pod_rules;
    let on_node = node_pods(view, view.pods.as_ref().ok()?);
    let drain = on_node.judge_pods(&rules, DrainStart::default(), now);
    let mut planned: Vec<PlannedPod> = drain
        .pod_plans()
        .map(|(pod, plan)| planned_pod(&on_node, pod, *plan))
        .collect();
    planned.extend(
        drain
            .current_progress()
            .unjudged
            .into_iter()
            .map(|pod| PlannedPod {
                pod: pod.to_string(),
                action: "unknown".into(),
                order: None,
                why: "the labels of its namespace could not be read".into(),
                blocked_by: Vec::new(),
            }),
    );
    planned.sort_by_key(|pod| (pod.order.is_none(), pod.order, pod.pod.clone()));
    Some(planned)
}

fn planned_pod(on_node: &NodePods, pod: &ObservedPod, plan: PodDrainPlan) -> PlannedPod {
    let evicted = match plan.action {
        PodAction::Evict | PodAction::WaitCompleted(_) => !pod.deleting,
        PodAction::Delete | PodAction::Stay => false,
    };
    let budgets = on_node.budgets.iter().filter(|budget| {
        evicted && budget.numbers.disruptions_allowed <= 0 && budget.covers_pod(pod)
    });
    PlannedPod {
        pod: pod.pod.to_string(),
        action: describe_action(plan.action),
        order: (plan.action != PodAction::Stay).then_some(plan.order),
        why: plan.why.to_string(),
        blocked_by: budgets.map(|budget| budget.numbers.full_name()).collect(),
    }
}

fn describe_action(action: PodAction) -> String {
    match action {
        PodAction::Stay => "stay".into(),
        PodAction::Evict => "evict".into(),
        PodAction::Delete => "delete".into(),
        PodAction::WaitCompleted(WaitLimit::Timeout(timeout)) => {
            format!("wait up to {}, then evict", format_duration(timeout))
        }
        PodAction::WaitCompleted(WaitLimit::Until(until)) => {
            format!("wait until {}, then evict", format_time(until))
        }
        PodAction::WaitCompleted(WaitLimit::DrainTimeout) => {
            "wait until the drain's deadline".into()
        }
    }
}
