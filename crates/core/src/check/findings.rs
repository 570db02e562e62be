//! What a planned reboot of a node would run into now.

use super::finding::{Finding, Severity};
use super::view::{CheckView, GateAnswer, GateState};
use super::{forced, pods};
use crate::Now;
use crate::explain::{self, CoordinatorSeen, CoordinatorSigns};
use crate::policy::{self, Allowance, MinInterval, Policies, Rule};
use crate::reboot::{NodeSeen, Parsed, Phase};

/// Everything found, what blocks first. `None`: the fleet has no such node.
///
/// The coordinator's flags do not stand on the cluster: where no policy speaks, their defaults are
/// taken.
pub fn findings(view: &CheckView, now: Now) -> Option<Vec<Finding>> {
    let node = view.fleet.node(&view.node)?;
    let rule = view.fleet.rule(node);
    let mut found = Vec::new();
    found.extend(standing(node));
    found.extend(coordinator(view, now));
    found.extend(admission(view));
    found.extend(policies(view, node, &rule, now));
    found.extend(view.gates.iter().filter_map(gate));
    found.extend(budget(view, node));
    found.extend(pods::findings(view, &rule, now));
    found.extend(forced::findings(view));
    found.sort();
    found.dedup();
    Some(found)
}

/// What stands on the Node already.
fn standing(node: &NodeSeen) -> Vec<Finding> {
    let subject = || format!("Node {}", node.name);
    let mut found = Vec::new();
    let mut add = |severity, what: String| found.push(Finding::new(severity, subject(), what));
    match &node.record {
        Parsed::Absent => {}
        Parsed::Bad { why } => add(
            Severity::Blocks,
            format!("annotation dogwatch.dev/reboot cannot be read: {why}"),
        ),
        Parsed::Is(record) => {
            let reason = explain::said(node).map(|condition| format!(": {}", condition.reason));
            let text = format!(
                "a reboot is under way, {}{}",
                record.phase.as_str(),
                reason.unwrap_or_default()
            );
            add(Severity::Note, text);
        }
    }
    if let Parsed::Bad { why } = &node.request {
        let text = format!("annotation dogwatch.dev/reboot-requested cannot be read: {why}");
        add(Severity::Blocks, text);
    }
    if node.abort != Parsed::Absent {
        let text = "annotation dogwatch.dev/abort-requested stands there: a reboot that begins is stopped at once";
        add(Severity::Blocks, text.into());
    }
    if node.api_lock {
        let text = "the lock API has taken it out of service; its own coordinator waits for that, and unlock uncordons it";
        add(Severity::Blocks, text.into());
    }
    if !node.ready {
        let text = "not Ready: what is evicted may never be seen to end";
        add(Severity::Warns, text.into());
    }
    let phase = node.record.get().map(|record| record.phase);
    let is_free = matches!(phase, None | Some(Phase::Waiting));
    if node.unschedulable && is_free && !node.api_lock {
        let text = "cordoned by somebody else: it stays cordoned after a reboot";
        add(Severity::Note, text.into());
    }
    found
}

/// Without a coordinator on the node nobody acts.
fn coordinator(view: &CheckView, now: Now) -> Option<Finding> {
    let blocks = |what: String| Finding::new(Severity::Blocks, "coordinator", what);
    match &view.coordinator {
        Err(why) => Some(unknown("coordinator", why)),
        Ok(CoordinatorSeen::Unknown | CoordinatorSeen::Pod { ready: true, .. }) => None,
        Ok(CoordinatorSeen::NoDaemonSet) => Some(without_daemonset(view, now)),
        Ok(CoordinatorSeen::NoPod) => Some(
            blocks("none runs on this node, so nothing would happen".into()).fix(
                "kubectl describe daemonset -A -l app.kubernetes.io/name=dogwatch-coordinator",
            ),
        ),
        Ok(CoordinatorSeen::Pod { name, state, .. }) => {
            let (namespace, pod) = name.split_once('/').unwrap_or(("", name));
            let fix = format!("kubectl logs -n {namespace} {pod}");
            Some(blocks(format!("pod {name} is {state}, not ready")).fix(fix))
        }
    }
}

/// A policy that limits nobody says nothing itself.
fn admission(view: &CheckView) -> Vec<Finding> {
    const SUBJECT: &str = "admission policies";
    match &view.admission {
        Err(why) => vec![unknown(SUBJECT, why)],
        Ok(gaps) => {
            let gaps = gaps.iter().cloned();
            gaps.map(|gap| Finding::new(Severity::Warns, SUBJECT, gap).fix("docs/security.md"))
                .collect()
        }
    }
}

/// Coordinators may run in another way: what they wrote on Nodes is the evidence.
fn without_daemonset(view: &CheckView, now: Now) -> Finding {
    let finding = |severity, text: String| {
        let text = format!("no DaemonSet dogwatch-coordinator is in Dogwatch's namespace{text}");
        Finding::new(severity, "coordinator", text)
    };
    match view.fleet.coordinator_signs(&view.node) {
        CoordinatorSigns::Here(at) => finding(
            Severity::Note,
            format!(
                ", but a coordinator wrote on this Node {}: it runs in another way",
                explain::ago(at, now)
            ),
        ),
        CoordinatorSigns::Elsewhere => finding(
            Severity::Warns,
            ", but coordinators of other nodes run in another way; whether one runs on this node shows \
             only when a reboot is requested"
                .into(),
        ),
        CoordinatorSigns::Nowhere => finding(
            Severity::Blocks,
            ", and no coordinator ever wrote on a Node: a request would not be served".into(),
        )
        .fix("install the coordinators as docs/install.md says; or is --namespace wrong?"),
    }
}

pub(super) fn unknown(subject: &str, why: &str) -> Finding {
    Finding::new(
        Severity::Unknown,
        subject,
        format!("could not be looked at: {why}"),
    )
}

/// Windows, pause, interval: by the rule that the coordinator decides with.
fn policies(view: &CheckView, node: &NodeSeen, rule: &Rule<'_>, now: Now) -> Vec<Finding> {
    let known = &view.fleet.policies;
    let interval = MinInterval::of(node.last.get());
    let drain = rule.config.drain_timeout;
    let subject = match rule.policy {
        Some(policy) => format!("RebootPolicy {}", policy.name),
        None => "RebootPolicies".into(),
    };
    let mut found = Vec::new();
    match policy::allowed(known, rule.policy, drain, interval, now.wall) {
        Allowance::No {
            reason, message, ..
        } => {
            let text = format!("{reason}: {message}");
            found.push(Finding::new(Severity::Blocks, subject.clone(), text));
        }
        Allowance::Yes { until: Some(until) } => {
            let text = format!("its window is open until {}", explain::moment(until));
            found.push(Finding::new(Severity::Note, subject.clone(), text));
        }
        Allowance::Yes { until: None } => {}
    }
    let lost: Vec<String> = policy::conflicts(known.known(), &node.labels)
        .iter()
        .map(|policy| policy.name.to_string())
        .collect();
    if !lost.is_empty() {
        let text = format!(
            "rules this node; {} match it too, and do not",
            lost.join(", ")
        );
        found.push(Finding::new(Severity::Note, subject, text));
    }
    if rule.policy.is_none() && matches!(known, Policies::Known(all) if !all.is_empty()) {
        let text = "none of them rules this node: the coordinator's flags do";
        found.push(Finding::new(Severity::Note, "RebootPolicies", text));
    }
    found
}

fn gate(answer: &GateAnswer) -> Option<Finding> {
    let subject = format!("gate {}", answer.gate);
    match &answer.state {
        GateState::Open => None,
        GateState::Shut(why) => Some(Finding::new(Severity::Blocks, subject, why.join("; "))),
        GateState::Unknown(why) => Some(unknown(&subject, why)),
    }
}

/// Who is out, and how many may be.
fn budget(view: &CheckView, node: &NodeSeen) -> Option<Finding> {
    let budget = view.fleet.budget(node);
    let subject = format!("group {}", budget.group);
    if budget.out.is_empty() {
        return None;
    }
    if budget.has_room() {
        return Some(Finding::new(Severity::Note, subject, budget.in_words()));
    }
    Some(
        Finding::new(Severity::Blocks, subject, budget.in_words()).fix(
            "wait for them or bring them back; one that is out for long can be left out of the count: \
             kubectl label node NAME dogwatch.dev/ignore=true",
        ),
    )
}
