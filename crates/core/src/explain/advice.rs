//! What a person can do about it.

use super::fleet::{CoordinatorSeen, View, is_true, said};
use crate::Now;
use crate::reboot::{NodeSeen, Parsed, Phase, Record, reason};

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
        "Lease {lease} is held with no reboot under way, and nobody will free it: kubectl patch lease {lease} \
         -n NAMESPACE --type=merge -p '{{\"metadata\":{{\"annotations\":{{\"dogwatch.dev/holder\":null}}}},\
         \"spec\":{{\"holderIdentity\":null,\"acquireTime\":null}}}}'"
    ))
}

fn idle(view: &View, node: &NodeSeen, now: Now) -> Vec<String> {
    let Some(request) = node.request.get() else {
        let known = matches!(node.request, Parsed::Bad { .. });
        let ask = format!("to reboot it: dogwatch reboot {} --reason …", node.name);
        return if known { Vec::new() } else { vec![ask] };
    };
    if request.not_before.is_some_and(|at| at > now.wall) {
        return vec![format!(
            "to take the request back: kubectl annotate node {} dogwatch.dev/reboot-requested-",
            node.name
        )];
    }
    let advice = coordinator(view);
    if !advice.is_empty() {
        return advice;
    }
    vec![match view.coordinator {
        CoordinatorSeen::NoDaemonSet => {
            "no DaemonSet dogwatch-coordinator is in Dogwatch's namespace: is it installed, and is --namespace right?".into()
        }
        CoordinatorSeen::Unknown | CoordinatorSeen::NoPod | CoordinatorSeen::Pod { .. } => {
            "a coordinator takes a request up within a second: look at the log of this node's".into()
        }
    }]
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
    if record.trigger.source == "request" {
        advice.push(format!(
            "to take the request back: kubectl annotate node {} dogwatch.dev/reboot-requested-",
            node.name
        ));
    }
    advice
}

fn draining(view: &View, node: &NodeSeen, now: Now) -> Vec<String> {
    let mut advice: Vec<String> = view
        .on_node
        .iter()
        .flat_map(|on_node| on_node.shut_budgets(now))
        .map(|(namespace, name)| {
            format!("give budget {namespace}/{name} room (more replicas, or its pods made healthy): kubectl describe pdb -n {namespace} {name}")
        })
        .collect();
    advice.push(format!(
        "to call it off: kubectl uncordon {} (it undoes everything and queues again after a pause)",
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
