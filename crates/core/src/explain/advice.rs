//! Advice for a person about a node's planned reboot.

use super::coordinator::CoordinatorSigns;
use super::fleet::{
    LeaseRow, NodeReportInput, ObservedCoordinator, find_true_condition, leading_reason,
};
use super::requested_reboots::requested_reboot_advice;
use crate::Now;
use crate::reboot::{
    HeldBackBy, ObservedNode, ParsedAnnotation, RebootPhase, RebootReason, RebootRecord,
};

/// How advice to reboot a node begins.
pub(super) const REBOOT_ADVICE_PREFIX: &str = "to reboot it:";

/// The advice, the most likely help first.
pub(super) fn node_advice(view: &NodeReportInput, node: &ObservedNode, now: Now) -> Vec<String> {
    let mut advice = unreadable_annotation_advice(node);
    match &node.record {
        ParsedAnnotation::Absent => {
            advice.extend(leftover_lease_advice(view, node));
            advice.extend(idle_advice(view, node, now));
        }
        ParsedAnnotation::Bad { .. } => {}
        ParsedAnnotation::Is(record) => {
            advice.extend(coordinator_advice(view));
            advice.extend(phase_advice(view, node, record, now));
        }
    }
    if find_true_condition(node, "SentinelSurvivedReboot").is_some() {
        advice.push("remove the sentinel on the node; to request another reboot, touch it".into());
    }
    advice
}

fn unreadable_annotation_advice(node: &ObservedNode) -> Vec<String> {
    let remove = |key: &str| format!("kubectl annotate node {} {key}-", node.name);
    let mut advice = Vec::new();
    if matches!(node.record, ParsedAnnotation::Bad { .. }) {
        advice.push(format!(
            "repair annotation dogwatch.dev/reboot, or remove it ({}) and then check the cordon and the lock yourself",
            remove("dogwatch.dev/reboot")
        ));
    }
    if matches!(node.request, ParsedAnnotation::Bad { .. }) {
        advice.push(format!(
            "repair annotation dogwatch.dev/reboot-requested, or remove it: {}",
            remove("dogwatch.dev/reboot-requested")
        ));
    }
    advice
}

/// A coordinator writes its record before the first bid and removes it after the release. A Lease
/// without a record therefore means that a person removed the record.
fn leftover_lease_advice(view: &NodeReportInput, node: &ObservedNode) -> Option<String> {
    let lease = &view.fleet.lease_held_by(&node.name)?.lease.name;
    Some(format!(
        "Lease {lease} is held although no reboot is under way; the healer frees it later; to \
         free it now: dogwatch unlock {lease}"
    ))
}

fn idle_advice(view: &NodeReportInput, node: &ObservedNode, now: Now) -> Vec<String> {
    if let Some(row) = view.fleet.lease_locked_through_api(&node.name) {
        let lease = &row.lease.name;
        return vec![format!(
            "its caller releases the lock after the reboot (POST /api/v1/unlock); if it never \
             will: dogwatch unlock {lease}"
        )];
    }
    let Some(request) = node.request.get() else {
        let requested = requested_reboot_advice(view, node, now);
        let known = matches!(node.request, ParsedAnnotation::Bad { .. });
        if known || !requested.is_empty() {
            return requested;
        }
        return vec![format!(
            "{REBOOT_ADVICE_PREFIX} dogwatch reboot {} --reason …",
            node.name
        )];
    };
    if request.not_before.is_some_and(|at| at > now.wall) {
        return vec![format!(
            "to withdraw the request: dogwatch abort {}",
            node.name
        )];
    }
    let advice = coordinator_advice(view);
    if !advice.is_empty() {
        return advice;
    }
    let signs = view.fleet.coordinator_signs(&node.name);
    let is_installed =
        view.coordinator != ObservedCoordinator::NoDaemonSet || signs != CoordinatorSigns::Nowhere;
    let text = if is_installed {
        "a coordinator normally accepts a request within a second: read the log of this node's coordinator"
    } else {
        "no DaemonSet dogwatch-coordinator is in Dogwatch's namespace: is it installed, and is --namespace right?"
    };
    vec![text.into()]
}

fn coordinator_advice(view: &NodeReportInput) -> Vec<String> {
    match &view.coordinator {
        ObservedCoordinator::NoPod => vec![
            "no coordinator runs on this node, so nobody serves the request: kubectl describe \
             daemonset -A -l app.kubernetes.io/name=dogwatch-coordinator"
                .into(),
        ],
        ObservedCoordinator::Pod {
            name, ready: false, ..
        } => {
            let (namespace, pod) = name.split_once('/').unwrap_or(("", name));
            vec![format!(
                "the coordinator is not ready: kubectl logs -n {namespace} {pod}"
            )]
        }
        ObservedCoordinator::Unknown
        | ObservedCoordinator::NoDaemonSet
        | ObservedCoordinator::Pod { .. } => Vec::new(),
    }
}

fn phase_advice(
    view: &NodeReportInput,
    node: &ObservedNode,
    record: &RebootRecord,
    now: Now,
) -> Vec<String> {
    match record.phase {
        RebootPhase::Waiting => waiting_advice(view, node, record),
        RebootPhase::Draining => draining_advice(view, node, now),
        RebootPhase::Holding => vec![holding_advice(node)],
        RebootPhase::Rebooting => rebooting_advice(node),
        RebootPhase::Returning => returning_advice(node),
    }
}

fn waiting_advice(
    view: &NodeReportInput,
    node: &ObservedNode,
    record: &RebootRecord,
) -> Vec<String> {
    let mut advice = Vec::new();
    let slots = view.fleet.slots_of_group(&view.fleet.group_of_node(node));
    let holders = slots
        .iter()
        .filter_map(|row| view.fleet.holder_node(&row.lease));
    for holder in holders.filter_map(Result::ok).take(3) {
        advice.push(format!(
            "to see what blocks the holder: dogwatch explain node/{}",
            holder.name
        ));
    }
    if leading_reason(node) == Some(RebootReason::OverBudget) {
        advice.push(
            "bring the nodes named above back into service, or raise --max-unavailable; to leave a node out of the \
            count for a long time: kubectl label node NAME dogwatch.dev/ignore=true"
                .into(),
        );
    }
    advice.extend(foreign_holder_advice(&slots));
    advice.extend(policy_advice(view, node));
    let taken_back = if record.trigger.source == "request" {
        "to withdraw the request"
    } else {
        "to stop it (its trigger is then treated as done)"
    };
    advice.push(format!("{taken_back}: dogwatch abort {}", node.name));
    advice
}

/// Slots held by hosts of the lock API, which no coordinator can release.
fn foreign_holder_advice(slots: &[&LeaseRow]) -> Vec<String> {
    let held = slots.iter().filter(|row| {
        let holder = row.lease.holder.as_ref();
        holder.is_some_and(|holder| !holder.is_node())
    });
    held.take(3)
        .map(|row| {
            let name = &row.lease.name;
            format!("to see what is known about the holder of {name}: dogwatch unlock {name}")
        })
        .collect()
}

/// What a person can change in a policy that delays the reboot.
fn policy_advice(view: &NodeReportInput, node: &ObservedNode) -> Option<String> {
    let policy = &view.fleet.rule_of_node(node).policy?.name;
    let reason = leading_reason(node)?;
    match reason.held_back_by() {
        HeldBackBy::Calendar if reason == RebootReason::Paused => {
            Some(format!("to end the pause: dogwatch resume {policy}"))
        }
        HeldBackBy::Calendar | HeldBackBy::MinInterval => Some(format!(
            "to let the reboot begin earlier, change the policy: kubectl edit rebootpolicy {policy}"
        )),
        HeldBackBy::BadPolicy if reason == RebootReason::PolicyInvalid => Some(format!(
            "correct the policy: kubectl edit rebootpolicy {policy}"
        )),
        HeldBackBy::Policy if reason == RebootReason::GateShut => Some(format!(
            "repair what the closed gate names, or change the policy's gates: kubectl edit rebootpolicy {policy}"
        )),
        HeldBackBy::RolloutStop if reason == RebootReason::RolloutHalted => Some(format!(
            "to let the rollout go on, after a repair: dogwatch resume {policy}"
        )),
        HeldBackBy::RolloutWait | HeldBackBy::RolloutStop => {
            Some("to see how far the rollout is: dogwatch status policies -o wide".to_owned())
        }
        HeldBackBy::BadPolicy | HeldBackBy::Policy | HeldBackBy::Cluster | HeldBackBy::Nothing => {
            None
        }
    }
}

fn draining_advice(view: &NodeReportInput, node: &ObservedNode, now: Now) -> Vec<String> {
    let rule = view.fleet.rule_of_node(node);
    let mut advice: Vec<String> = view
        .node_pods
        .iter()
        .flat_map(|on_node| on_node.blocking_budget_names(&rule.config.pod_rules, now))
        .map(|(namespace, name)| {
            format!(
                "let PodDisruptionBudget {namespace}/{name} allow a disruption (add replicas, \
                or make its pods healthy): kubectl describe pdb -n {namespace} {name}"
            )
        })
        .collect();
    advice.push(format!(
        "to stop it (Dogwatch undoes the drain and treats the trigger as done): dogwatch abort {}",
        node.name
    ));
    advice.push(format!(
        "to undo the drain and queue again after a pause: kubectl uncordon {}",
        node.name
    ));
    advice
}

fn holding_advice(node: &ObservedNode) -> String {
    format!(
        "when the work on it is done, to bring it back into service: dogwatch release {}",
        node.name
    )
}

fn rebooting_advice(node: &ObservedNode) -> Vec<String> {
    if leading_reason(node) == Some(RebootReason::RebootFailed) {
        return vec![
            "reboot the machine by hand: Dogwatch removes the cordon and releases the lock when \
             the machine has a new boot id"
                .into(),
            format!(
                "or, if you are sure that the machine will not shut down any more: dogwatch abort {}",
                node.name
            ),
        ];
    }
    Vec::new()
}

fn returning_advice(node: &ObservedNode) -> Vec<String> {
    if matches!(
        leading_reason(node),
        Some(RebootReason::ReturnGatesShut | RebootReason::ReturnGatesTimedOut)
    ) {
        return vec!["repair what is named above; the lock stays held until then".into()];
    }
    if let Some(RebootReason::ReadyChecksUnmet | RebootReason::ReadyChecksTimedOut) =
        leading_reason(node)
    {
        return vec![
            "repair what is named above; the node is uncordoned as soon as the checks pass".into(),
            format!(
                "or, if the node is good enough as it is: dogwatch abort {}, or change return.ready of its policy",
                node.name
            ),
        ];
    }
    if !node.ready {
        return vec![format!(
            "the Node is not Ready: kubectl describe node {}",
            node.name
        )];
    }
    Vec::new()
}
