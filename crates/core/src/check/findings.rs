//! Finds what would block or disturb a planned reboot of a node now.

use super::finding::{CheckFinding, FindingSeverity};
use super::view::{CheckView, GateAnswer, GateState};
use super::{controller, pods, remediation};
use crate::Now;
use crate::explain::{self, CoordinatorSigns, ObservedCoordinator};
use crate::policy::{self, ClusterPolicies, EffectivePolicy, MinInterval, RebootAllowance};
use crate::reboot::{ObservedNode, ParsedAnnotation, RebootPhase};

/// All findings, blocking ones first. `None` if the fleet has no such node.
///
/// The cluster does not show the coordinator's flags, so their defaults apply where no policy sets
/// a value.
pub fn find_reboot_blockers(view: &CheckView, now: Now) -> Option<Vec<CheckFinding>> {
    let node = view.fleet.find_node(&view.node)?;
    let rule = view.fleet.rule_of_node(node);
    let mut found = Vec::new();
    found.extend(find_node_state(node));
    found.extend(find_coordinator_state(view, now));
    found.extend(controller::find_missing_leader(view, now));
    found.extend(find_admission_gaps(view));
    found.extend(find_policy_blockers(view, node, &rule, now));
    found.extend(view.gates.iter().filter_map(find_closed_gate));
    found.extend(find_budget_use(view, node));
    found.extend(pods::find_drain_blockers(view, &rule, now));
    found.extend(remediation::find_remediation_blockers(view));
    found.sort();
    found.dedup();
    Some(found)
}

/// Findings about the annotations, labels and cordon of the Node.
fn find_node_state(node: &ObservedNode) -> Vec<CheckFinding> {
    let subject = || format!("Node {}", node.name);
    let mut found = Vec::new();
    let mut add = |severity, what: String| found.push(CheckFinding::new(severity, subject(), what));
    match &node.record {
        ParsedAnnotation::Absent => {}
        ParsedAnnotation::Bad { why } => add(
            FindingSeverity::Blocks,
            format!("annotation dogwatch.dev/reboot cannot be read: {why}"),
        ),
        ParsedAnnotation::Is(record) => {
            let reason =
                explain::leading_condition(node).map(|condition| format!(": {}", condition.reason));
            let text = format!(
                "a reboot is under way, {}{}",
                record.phase.as_str(),
                reason.unwrap_or_default()
            );
            add(FindingSeverity::Note, text);
        }
    }
    if let ParsedAnnotation::Bad { why } = &node.request {
        let text = format!("annotation dogwatch.dev/reboot-requested cannot be read: {why}");
        add(FindingSeverity::Blocks, text);
    }
    if node.abort != ParsedAnnotation::Absent {
        let text = "the node has annotation dogwatch.dev/abort-requested: a reboot that begins is stopped at once";
        add(FindingSeverity::Blocks, text.into());
    }
    if node.api_lock {
        let text = "the lock API has taken it out of service; its coordinator waits until the \
            lock API unlocks and uncordons it";
        add(FindingSeverity::Blocks, text.into());
    }
    if !node.ready {
        let text = "not Ready: the drain may never see the evicted pods end";
        add(FindingSeverity::Warns, text.into());
    }
    let phase = node.record.get().map(|record| record.phase);
    let is_free = matches!(phase, None | Some(RebootPhase::Waiting));
    if node.unschedulable && is_free && !node.api_lock {
        let text = "cordoned by somebody else: it stays cordoned after a reboot";
        add(FindingSeverity::Note, text.into());
    }
    found
}

/// Without a coordinator on the node nothing happens.
fn find_coordinator_state(view: &CheckView, now: Now) -> Option<CheckFinding> {
    let blocks = |what: String| CheckFinding::new(FindingSeverity::Blocks, "coordinator", what);
    match &view.coordinator {
        Err(why) => Some(unknown_finding("coordinator", why)),
        Ok(ObservedCoordinator::Unknown | ObservedCoordinator::Pod { ready: true, .. }) => None,
        Ok(ObservedCoordinator::NoDaemonSet) => Some(find_without_daemonset(view, now)),
        Ok(ObservedCoordinator::NoPod) => Some(
            blocks("no coordinator runs on this node, so nobody would reboot it".into()).with_fix(
                "kubectl describe daemonset -A -l app.kubernetes.io/name=dogwatch-coordinator",
            ),
        ),
        Ok(ObservedCoordinator::Pod { name, state, .. }) => {
            let (namespace, pod) = name.split_once('/').unwrap_or(("", name));
            let fix = format!("kubectl logs -n {namespace} {pod}");
            Some(blocks(format!("pod {name} is {state}, not ready")).with_fix(fix))
        }
    }
}

/// Reports admission policies that are not in force: a policy that limits nobody does not report it
/// itself.
fn find_admission_gaps(view: &CheckView) -> Vec<CheckFinding> {
    const SUBJECT: &str = "admission policies";
    match &view.admission {
        Err(why) => vec![unknown_finding(SUBJECT, why)],
        Ok(gaps) => {
            let gaps = gaps.iter().cloned();
            gaps.map(|gap| {
                CheckFinding::new(FindingSeverity::Warns, SUBJECT, gap).with_fix("docs/security.md")
            })
            .collect()
        }
    }
}

/// Coordinators may run without the DaemonSet: what they wrote on Nodes shows whether they do.
fn find_without_daemonset(view: &CheckView, now: Now) -> CheckFinding {
    let finding = |severity, text: String| {
        let text = format!("no DaemonSet dogwatch-coordinator is in Dogwatch's namespace{text}");
        CheckFinding::new(severity, "coordinator", text)
    };
    match view.fleet.coordinator_signs(&view.node) {
        CoordinatorSigns::Here(at) => finding(
            FindingSeverity::Note,
            format!(
                ", but a coordinator has written to this Node {}: it runs without that DaemonSet",
                explain::format_ago(at, now)
            ),
        ),
        CoordinatorSigns::Elsewhere => finding(
            FindingSeverity::Warns,
            ", but coordinators of other nodes run without that DaemonSet; only a reboot request \
             shows whether one runs on this node"
                .into(),
        ),
        CoordinatorSigns::Nowhere => finding(
            FindingSeverity::Blocks,
            ", and no coordinator has ever written to a Node: nobody would serve a request".into(),
        )
        .with_fix("install the coordinators as docs/install.md describes, or correct --namespace"),
    }
}

pub(super) fn unknown_finding(subject: &str, why: &str) -> CheckFinding {
    let text = format!("could not be read: {why}");
    CheckFinding {
        is_unread: true,
        ..CheckFinding::new(FindingSeverity::Unknown, subject, text)
    }
}

/// Windows, pause and interval, by the same function that the coordinator uses.
fn find_policy_blockers(
    view: &CheckView,
    node: &ObservedNode,
    rule: &EffectivePolicy<'_>,
    now: Now,
) -> Vec<CheckFinding> {
    let known = &view.fleet.policies;
    let interval = MinInterval::since_last_reboot(node.last_reboot.get());
    let drain = rule.config.longest_drain();
    let subject = match rule.policy {
        Some(policy) => format!("RebootPolicy {}", policy.name),
        None => "RebootPolicies".into(),
    };
    let mut found = Vec::new();
    let candidate = node.rollout_candidate();
    match policy::may_reboot_begin(known, rule.policy, drain, interval, candidate, now.wall) {
        RebootAllowance::No {
            reason, message, ..
        } => {
            let text = format!("{reason}: {message}");
            found.push(CheckFinding::new(
                FindingSeverity::Blocks,
                subject.clone(),
                text,
            ));
        }
        RebootAllowance::Yes { until: Some(until) } => {
            let text = format!("its window is open until {}", explain::format_time(until));
            found.push(CheckFinding::new(
                FindingSeverity::Note,
                subject.clone(),
                text,
            ));
        }
        RebootAllowance::Yes { until: None } => {}
    }
    let lost: Vec<String> = policy::losing_policies(known.known_policies(), &node.labels)
        .iter()
        .map(|policy| policy.name.to_string())
        .collect();
    if !lost.is_empty() {
        let text = format!(
            "applies to this node; {} match it too, and are overridden",
            lost.join(", ")
        );
        found.push(CheckFinding::new(FindingSeverity::Note, subject, text));
    }
    if rule.policy.is_none() && matches!(known, ClusterPolicies::Known(all) if !all.is_empty()) {
        let text = "no policy applies to this node: the coordinator's flags apply";
        found.push(CheckFinding::new(
            FindingSeverity::Note,
            "RebootPolicies",
            text,
        ));
    }
    found
}

fn find_closed_gate(answer: &GateAnswer) -> Option<CheckFinding> {
    let subject = format!("gate {}", answer.gate);
    match &answer.state {
        GateState::Open => None,
        GateState::Shut(why) => Some(CheckFinding::new(
            FindingSeverity::Blocks,
            subject,
            why.join("; "),
        )),
        GateState::Unknown(why) => Some(unknown_finding(&subject, why)),
    }
}

/// Which nodes are unavailable, and how many may be.
fn find_budget_use(view: &CheckView, node: &ObservedNode) -> Option<CheckFinding> {
    let budget = view.fleet.budget_of_node(node);
    let subject = format!("group {}", budget.group);
    if budget.out.is_empty() {
        return None;
    }
    if budget.has_room() {
        return Some(CheckFinding::new(
            FindingSeverity::Note,
            subject,
            budget.to_sentence(),
        ));
    }
    Some(
        CheckFinding::new(FindingSeverity::Blocks, subject, budget.to_sentence()).with_fix(
            "wait for these nodes or bring them back into service; to leave a node out of the \
             count for a long time: kubectl label node NAME dogwatch.dev/ignore=true",
        ),
    )
}
