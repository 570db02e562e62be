//! What a drain of the node would do with each pod, by the state machine that drains.

use serde::Serialize;

use super::pods::{PodProtection, node_pods};
use super::view::CheckView;
use crate::Now;
use crate::drain::{
    DrainStart, MachineRulesLookup, NodeDrain, ObservedPod, PodAction, PodDrainPlan,
    RolloutOutlook, WaitLimit,
};
use crate::duration::format_duration;
use crate::explain::{NodePods, format_time};

/// One pod in the plan of a drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedPod {
    /// `namespace/name`.
    pub pod: String,
    /// `evict`, `delete`, `stay`, `wait up to 1h, then evict`,
    /// `restart Deployment shop/web, wait up to 10m, then evict`.
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
        .map(|(pod, plan)| match PodProtection::of_pod(view, pod, plan) {
            Some(protection) => protected_pod(pod, plan, protection),
            None => planned_pod(&on_node, &drain, pod, plan),
        })
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
                why: unknown_reason(&view.machine_rules).into(),
                blocked_by: Vec::new(),
            }),
    );
    planned.sort_by_key(|pod| (pod.order.is_none(), pod.order, pod.pod.clone()));
    Some(planned)
}

/// Without the MachineDrainRules nothing is known of a pod; the labels are read after them.
fn unknown_reason(machine_rules: &MachineRulesLookup) -> &'static str {
    match machine_rules {
        MachineRulesLookup::Failed { .. } => "the MachineDrainRules could not be read",
        MachineRulesLookup::NoMachine
        | MachineRulesLookup::Elsewhere { .. }
        | MachineRulesLookup::Found(_) => "the labels of its namespace could not be read",
    }
}

/// A pod whose eviction Dogwatch's own admission policy refuses.
fn protected_pod(pod: &ObservedPod, plan: &PodDrainPlan, protection: PodProtection) -> PlannedPod {
    let (action, order) = match protection {
        PodProtection::Stays => ("stay", None),
        PodProtection::Blocks => ("evict", Some(plan.order)),
    };
    PlannedPod {
        pod: pod.pod.to_string(),
        action: action.into(),
        order,
        why: protection.reason().into(),
        blocked_by: Vec::new(),
    }
}

fn planned_pod(
    on_node: &NodePods,
    drain: &NodeDrain,
    pod: &ObservedPod,
    plan: &PodDrainPlan,
) -> PlannedPod {
    let evicted = !pod.deleting && drain.asks_budgets(pod, plan);
    let budgets = on_node.budgets.iter().filter(|budget| {
        evicted && budget.numbers.disruptions_allowed <= 0 && budget.covers_pod(pod)
    });
    let rollout = drain.rollout_outlook(pod, plan);
    PlannedPod {
        pod: pod.pod.to_string(),
        action: describe_action(plan.action, rollout.as_ref()),
        order: (plan.action != PodAction::Stay).then_some(plan.order),
        why: describe_reason(plan, rollout.as_ref()),
        blocked_by: budgets.map(|budget| budget.numbers.full_name()).collect(),
    }
}

/// The rule that decides, and why it gets no rollout or does not know of one.
fn describe_reason(plan: &PodDrainPlan, rollout: Option<&RolloutOutlook>) -> String {
    let why = &plan.why;
    match rollout {
        Some(rollout @ (RolloutOutlook::Evict { .. } | RolloutOutlook::Unknown { .. })) => {
            format!("{why}; {rollout}")
        }
        Some(RolloutOutlook::UnderWay {
            trouble: Some(trouble),
            ..
        }) => format!("{why}; {trouble}"),
        Some(RolloutOutlook::Restart { .. } | RolloutOutlook::UnderWay { trouble: None, .. })
        | None => why.to_string(),
    }
}

fn describe_action(action: PodAction, rollout: Option<&RolloutOutlook>) -> String {
    match action {
        PodAction::Stay => "stay".into(),
        PodAction::Evict => "evict".into(),
        PodAction::Delete => "delete".into(),
        PodAction::RollFirst(timeout) => describe_rollout(rollout, &format_duration(timeout)),
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

fn describe_rollout(rollout: Option<&RolloutOutlook>, timeout: &str) -> String {
    match rollout {
        Some(RolloutOutlook::Restart { deployment }) => {
            format!("restart Deployment {deployment}, wait up to {timeout}, then evict")
        }
        Some(RolloutOutlook::UnderWay { deployment, .. }) => {
            format!("wait up to {timeout} for the rollout of Deployment {deployment}, then evict")
        }
        Some(RolloutOutlook::Evict { .. }) => "evict".into(),
        Some(RolloutOutlook::Unknown { .. }) | None => {
            format!("restart its Deployment, wait up to {timeout}, then evict")
        }
    }
}
