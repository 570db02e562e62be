//! What a person can do about it.

use super::coordinator::CoordinatorSigns;
use super::fleet::{CoordinatorSeen, LeaseRow, View, is_true, said};
use crate::Now;
use crate::reboot::{NodeSeen, Parsed, Phase, Record, reason};

/// What advice to reboot a node begins with.
pub(super) const TO_REBOOT: &str = "to reboot it:";

/// What can be done, the most likely help first.
pub(super) fn advice(view: &View, node: &NodeSeen, now: Now) -> Vec<String> {
    let mut advice = unreadable(node);
    match &node.record {
        Parsed::Absent => {
            advice.extend(left_behind(view, node));
            advice.extend(idle(view, node, now));
        }
        Parsed::Bad { .. } => {}
        Parsed::Is(record) => {
            advice.extend(coordinator(view));
            advice.extend(under_way(view, node, record, now));
        }
    }
    if is_true(node, "SentinelSurvivedReboot").is_some() {
        advice.push("remove the sentinel on the node; or touch it, for another reboot".into());
    }
    advice
}

fn unreadable(node: &NodeSeen) -> Vec<String> {
    let remove = |key: &str| format!("kubectl annotate node {} {key}-", node.name);
    let mut advice = Vec::new();
    if matches!(node.record, Parsed::Bad { .. }) {
        advice.push(format!(
            "mend annotation dogwatch.dev/reboot, or remove it ({}) and then look at the cordon and at the lock yourself",
            remove("dogwatch.dev/reboot")
        ));
    }
    if matches!(node.request, Parsed::Bad { .. }) {
        advice.push(format!(
            "mend annotation dogwatch.dev/reboot-requested, or remove it: {}",
            remove("dogwatch.dev/reboot-requested")
        ));
    }
    advice
}

/// The record is written before the first bid and removed after the release, so a Lease without a
/// record is what a person left who removed the record.
fn left_behind(view: &View, node: &NodeSeen) -> Option<String> {
    let lease = &view.fleet.held_by(&node.name)?.lease.name;
    Some(format!(
        "Lease {lease} is held with no reboot under way; the healer frees it after a while, or you do: dogwatch unlock {lease}"
    ))
}

fn idle(view: &View, node: &NodeSeen, now: Now) -> Vec<String> {
    if let Some(row) = view.fleet.locked_by_api(&node.name) {
        let lease = &row.lease.name;
        return vec![format!(
            "its caller gives the lock up after the reboot (POST /api/v1/unlock); if it never will: dogwatch unlock {lease}"
        )];
    }
    let Some(request) = node.request.get() else {
        let known = matches!(node.request, Parsed::Bad { .. });
        let ask = format!("{TO_REBOOT} dogwatch reboot {} --reason …", node.name);
        return if known { Vec::new() } else { vec![ask] };
    };
    if request.not_before.is_some_and(|at| at > now.wall) {
        return vec![format!(
            "to take the request back: dogwatch abort {}",
            node.name
        )];
    }
    let advice = coordinator(view);
    if !advice.is_empty() {
        return advice;
    }
    let signs = view.fleet.coordinator_signs(&node.name);
    let is_installed =
        view.coordinator != CoordinatorSeen::NoDaemonSet || signs != CoordinatorSigns::Nowhere;
    let text = if is_installed {
        "a coordinator accepts a request within a second: read the log of this node's coordinator"
    } else {
        "no DaemonSet dogwatch-coordinator is in Dogwatch's namespace: is it installed, and is --namespace right?"
    };
    vec![text.into()]
}

fn coordinator(view: &View) -> Vec<String> {
    match &view.coordinator {
        CoordinatorSeen::NoPod => vec![
            "no coordinator runs on this node, so nothing happens: kubectl describe daemonset -A -l app.kubernetes.io/name=dogwatch-coordinator".into(),
        ],
        CoordinatorSeen::Pod { name, ready: false, .. } => {
            let (namespace, pod) = name.split_once('/').unwrap_or(("", name));
            vec![format!("the coordinator is not ready: kubectl logs -n {namespace} {pod}")]
        }
        CoordinatorSeen::Unknown | CoordinatorSeen::NoDaemonSet | CoordinatorSeen::Pod { .. } => Vec::new(),
    }
}

fn under_way(view: &View, node: &NodeSeen, record: &Record, now: Now) -> Vec<String> {
    match record.phase {
        Phase::Waiting => waiting(view, node, record),
        Phase::Draining => draining(view, node, now),
        Phase::Rebooting => rebooting(node),
        Phase::Returning => returning(node),
    }
}

fn waiting(view: &View, node: &NodeSeen, record: &Record) -> Vec<String> {
    let mut advice = Vec::new();
    let slots = view.fleet.slots(&view.fleet.group(node));
    let holders = slots.iter().filter_map(|row| view.fleet.holder(&row.lease));
    for holder in holders.filter_map(Result::ok).take(3) {
        advice.push(format!(
            "for what holds the holder up: dogwatch explain node/{}",
            holder.name
        ));
    }
    if said(node).is_some_and(|condition| condition.reason == reason::OVER_BUDGET) {
        advice.push("bring the nodes back that are named above, or raise --max-unavailable; one that is out for long can be left out of the count: kubectl label node NAME dogwatch.dev/ignore=true".into());
    }
    advice.extend(held_otherwise(&slots));
    advice.extend(by_policy(view, node));
    let taken_back = if record.trigger.source == "request" {
        "to take the request back"
    } else {
        "to stop it (what asked for it then counts as served)"
    };
    advice.push(format!("{taken_back}: dogwatch abort {}", node.name));
    advice
}

/// Slots of holders that are no Nodes, whom no coordinator can ask.
fn held_otherwise(slots: &[&LeaseRow]) -> Vec<String> {
    let held = slots.iter().filter(|row| {
        let holder = row.lease.holder.as_ref();
        holder.is_some_and(|holder| !holder.is_node())
    });
    held.take(3)
        .map(|row| {
            let name = &row.lease.name;
            format!("for what is known of the holder of {name}: dogwatch unlock {name}")
        })
        .collect()
}

/// What a person can change of what the policy holds back.
fn by_policy(view: &View, node: &NodeSeen) -> Option<String> {
    let policy = &view.fleet.rule(node).policy?.name;
    match said(node)?.reason.as_str() {
        reason::PAUSED => Some(format!("to end the pause: dogwatch resume {policy}")),
        reason::OUTSIDE_WINDOW | reason::WINDOW_TOO_SHORT | reason::TOO_SOON => Some(format!(
            "to let it go earlier, change the policy: kubectl edit rebootpolicy {policy}"
        )),
        reason::POLICY_INVALID => Some(format!(
            "mend the policy: kubectl edit rebootpolicy {policy}"
        )),
        reason::GATE_SHUT => Some(format!(
            "make what the gate names well, or change the policy's gates: kubectl edit rebootpolicy {policy}"
        )),
        _ => None,
    }
}

fn draining(view: &View, node: &NodeSeen, now: Now) -> Vec<String> {
    let rule = view.fleet.rule(node);
    let mut advice: Vec<String> = view
        .on_node
        .iter()
        .flat_map(|on_node| on_node.shut_budgets(rule.config.exclude.as_ref(), now))
        .map(|(namespace, name)| {
            format!("give budget {namespace}/{name} room (more replicas, or its pods made healthy): kubectl describe pdb -n {namespace} {name}")
        })
        .collect();
    advice.push(format!(
        "to stop it (everything is undone, and what asked for it counts as served): dogwatch abort {}",
        node.name
    ));
    advice.push(format!(
        "to have it queue again after a pause: kubectl uncordon {}",
        node.name
    ));
    advice
}

fn rebooting(node: &NodeSeen) -> Vec<String> {
    let failed = said(node).is_some_and(|condition| condition.reason == reason::REBOOT_FAILED);
    if failed {
        return vec![
            "reboot the machine by hand: cordon and lock go when it comes up with a new boot id"
                .into(),
            format!(
                "or, when it is sure that it will not go down any more: dogwatch abort {}",
                node.name
            ),
        ];
    }
    Vec::new()
}

fn returning(node: &NodeSeen) -> Vec<String> {
    let reason = said(node).map(|condition| condition.reason.as_str());
    if matches!(reason, Some(reason::GATES_SHUT | reason::GATES_TIMED_OUT)) {
        return vec!["make what is named above well; the lock stays held until then".into()];
    }
    if !node.ready {
        return vec![format!(
            "the Node is not Ready: kubectl describe node {}",
            node.name
        )];
    }
    Vec::new()
}
