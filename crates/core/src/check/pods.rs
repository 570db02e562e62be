//! Finds what would block the drain of the node's pods.

use std::collections::BTreeMap;

use super::finding::{CheckFinding, FindingSeverity};
use super::findings::unknown_finding;
use super::view::{CheckView, PodFacts};
use crate::Now;
use crate::drain::{
    DrainStart, MachineRulesLookup, NodeDrain, ObservedDisruptionBudget, ObservedPod, PodAction,
    PodDrainPlan, PodIdentity, PodPhase, RolloutOutlook, WaitLimit,
};
use crate::duration::format_duration;
use crate::explain::{NodePods, format_time};
use crate::policy::EffectivePolicy;

/// How many pods a finding names.
const MAX_NAMED_PODS: usize = 5;

/// What it means for a pod that Dogwatch's own admission policy refuses its eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodProtection {
    /// It is Dogwatch's own.
    Stays,
    /// It is a pod of other software in Dogwatch's namespace.
    Blocks,
}

impl PodProtection {
    /// `None`: no eviction of the pod is refused.
    pub(super) fn of_pod(view: &CheckView, pod: &ObservedPod, plan: &PodDrainPlan) -> Option<Self> {
        let is_protected = view.protected_namespace.as_ref() == Some(&pod.pod.namespace);
        let is_evicted =
            !pod.deleting && !matches!(plan.action, PodAction::Stay | PodAction::Delete);
        (is_protected && is_evicted).then(|| {
            if pod.is_part_of_dogwatch() {
                Self::Stays
            } else {
                Self::Blocks
            }
        })
    }

    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Stays => "Dogwatch's own pod",
            Self::Blocks => {
                "in Dogwatch's namespace: ValidatingAdmissionPolicy coordinator-evictions.dogwatch.dev refuses its eviction"
            }
        }
    }
}

pub(super) fn find_drain_blockers(
    view: &CheckView,
    rule: &EffectivePolicy<'_>,
    now: Now,
) -> Vec<CheckFinding> {
    let pods = match &view.pods {
        Ok(pods) => pods,
        Err(why) => return vec![unknown_finding("pods", why)],
    };
    let on_node = node_pods(view, pods);
    let drain = on_node.judge_pods(&rule.config.pod_rules, DrainStart::default(), now);
    let plans = drain.pod_plans();
    let plans: BTreeMap<&PodIdentity, PodDrainPlan> =
        plans.map(|(pod, plan)| (&pod.pod, plan.clone())).collect();
    let protection = |pod: &ObservedPod| {
        let plan = plans.get(&pod.pod)?;
        PodProtection::of_pod(view, pod, plan)
    };
    let going = drain.current_progress().waiting;
    let going: Vec<&PodFacts> = pods
        .iter()
        .filter(|pod| going.contains(&pod.observed.pod))
        .filter(|pod| protection(&pod.observed) != Some(PodProtection::Stays))
        .collect();
    let asks_budgets = |pod: &&PodFacts| {
        let plan = plans.get(&pod.observed.pod);
        plan.is_none_or(|plan| drain.asks_budgets(&pod.observed, plan))
    };
    let mut found: Vec<CheckFinding> = going
        .iter()
        .filter_map(|pod| {
            let (seen, plan) = (&pod.observed, plans.get(&pod.observed.pod)?);
            find_wait(seen, plan).or_else(|| find_rollout(&drain, seen, plan))
        })
        .collect();
    let foreign = going.iter().map(|pod| &pod.observed);
    let foreign = foreign.filter(|pod| protection(pod) == Some(PodProtection::Blocks));
    found.extend(foreign.map(find_protected_pod));
    found.extend(find_machine_rules_gap(&view.machine_rules));
    match &view.budgets {
        Ok(budgets) => {
            let asking: Vec<&PodFacts> = going.iter().copied().filter(asks_budgets).collect();
            found.extend(find_in_budgets(budgets, &asking));
        }
        Err(why) => found.push(unknown_finding("PodDisruptionBudgets", why)),
    }
    match &view.daemonsets {
        Ok(_) => found.extend(going.iter().filter_map(|pod| find_orphan(pod))),
        Err(why) => found.push(unknown_finding("DaemonSets", why)),
    }
    found.extend(find_ending_namespaces(view, &going));
    found.extend(going.iter().flat_map(|pod| find_in_pod(pod)));
    found
}

/// A pod of other software that no coordinator may evict.
fn find_protected_pod(pod: &ObservedPod) -> CheckFinding {
    let why = PodProtection::Blocks.reason();
    CheckFinding::new(FindingSeverity::Blocks, pod_subject(pod), why)
        .with_fix("give Dogwatch a namespace of its own, or move the pod to another namespace")
}

/// Says where the policy's wish to honour MachineDrainRules cannot be met.
fn find_machine_rules_gap(lookup: &MachineRulesLookup) -> Option<CheckFinding> {
    const SUBJECT: &str = "MachineDrainRules";
    match lookup {
        MachineRulesLookup::NoMachine | MachineRulesLookup::Found(_) => None,
        MachineRulesLookup::Elsewhere { why } => {
            let text = format!("cannot be honoured: {why}");
            Some(CheckFinding::new(FindingSeverity::Note, SUBJECT, text))
        }
        MachineRulesLookup::Failed { why } => Some(unknown_finding(SUBJECT, why)),
    }
}

/// A pod that the drain waits for by a rule or a mark.
fn find_wait(pod: &ObservedPod, plan: &PodDrainPlan) -> Option<CheckFinding> {
    let PodAction::WaitCompleted(limit) = plan.action else {
        return None;
    };
    let why = &plan.why;
    let (severity, text) = match limit {
        WaitLimit::DrainTimeout => (
            FindingSeverity::Blocks,
            format!("{why} protects it: the drain waits for its end, until the drain's deadline"),
        ),
        WaitLimit::Until(until) => (
            FindingSeverity::Note,
            format!("{why} protects it until {}", format_time(until)),
        ),
        WaitLimit::Timeout(timeout) => (
            FindingSeverity::Note,
            format!(
                "may end by itself for {}, by {why}",
                format_duration(timeout)
            ),
        ),
    };
    Some(CheckFinding::new(severity, pod_subject(pod), text))
}

/// A pod that its rule wants to be replaced by a rollout first.
fn find_rollout(drain: &NodeDrain, pod: &ObservedPod, plan: &PodDrainPlan) -> Option<CheckFinding> {
    let outlook = drain.rollout_outlook(pod, plan)?;
    let why = &plan.why;
    let (severity, text) = match &outlook {
        RolloutOutlook::Restart { .. } | RolloutOutlook::UnderWay { trouble: None, .. } => (
            FindingSeverity::Note,
            format!("goes after a rollout, by {why}: {outlook}"),
        ),
        RolloutOutlook::UnderWay { .. }
        | RolloutOutlook::Unknown { .. }
        | RolloutOutlook::Evict { .. } => (
            FindingSeverity::Warns,
            format!("{why} wants a rollout first: {outlook}"),
        ),
    };
    Some(CheckFinding::new(severity, pod_subject(pod), text))
}

pub(super) fn node_pods(view: &CheckView, pods: &[PodFacts]) -> NodePods {
    NodePods {
        pods: pods.iter().map(|pod| pod.observed.clone()).collect(),
        daemonsets: view.daemonsets.clone().unwrap_or_default(),
        budgets: view.budgets.clone().unwrap_or_default(),
        namespaces: view.namespace_labels.clone().unwrap_or_default(),
        deployments: view.deployments.clone(),
        machine_rules: view.machine_rules.clone(),
    }
}

fn pod_subject(pod: &ObservedPod) -> String {
    format!("pod {}", pod.pod)
}

/// Checks the budgets of running pods only: the eviction of a terminating pod was already allowed.
fn find_in_budgets(budgets: &[ObservedDisruptionBudget], going: &[&PodFacts]) -> Vec<CheckFinding> {
    let asked: Vec<&ObservedPod> = going
        .iter()
        .map(|pod| &pod.observed)
        .filter(|pod| pod.phase == PodPhase::Running && !pod.deleting)
        .collect();
    let covering = |pod: &ObservedPod| {
        budgets
            .iter()
            .filter(|budget| budget.covers_pod(pod))
            .collect()
    };
    let mut found = Vec::new();
    for pod in &asked {
        let covering: Vec<&ObservedDisruptionBudget> = covering(pod);
        if covering.len() > 1 {
            found.push(find_several_budgets(pod, &covering));
        }
    }
    for budget in budgets {
        let covered: Vec<String> = asked
            .iter()
            .filter(|pod| budget.covers_pod(pod))
            .map(|pod| pod.pod.to_string())
            .collect();
        found.extend(find_in_budget(budget, &covered));
    }
    found
}

fn find_several_budgets(pod: &ObservedPod, budgets: &[&ObservedDisruptionBudget]) -> CheckFinding {
    let names: Vec<String> = budgets
        .iter()
        .map(|budget| budget.numbers.full_name())
        .collect();
    let text = format!(
        "covered by {} PodDisruptionBudgets ({}): the API server does not evict such a pod",
        names.len(),
        names.join(", ")
    );
    CheckFinding::new(FindingSeverity::Blocks, pod_subject(pod), text)
        .with_fix("change their selectors, so that only one PodDisruptionBudget covers the pod")
}

fn find_in_budget(budget: &ObservedDisruptionBudget, covered: &[String]) -> Option<CheckFinding> {
    let numbers = &budget.numbers;
    let subject = format!("PodDisruptionBudget {}", numbers.full_name());
    let healthy = format!(
        "{} healthy of {} desired",
        numbers.current_healthy, numbers.desired_healthy
    );
    let pods = crate::explain::join_first_names(covered, MAX_NAMED_PODS);
    let allowed = usize::try_from(numbers.disruptions_allowed).unwrap_or(0);
    if covered.is_empty() || allowed >= covered.len() {
        return None;
    }
    if allowed > 0 {
        let text = format!(
            "allows {allowed} disruptions at a time ({healthy}); pods on this node: {pods}"
        );
        return Some(CheckFinding::new(FindingSeverity::Note, subject, text));
    }
    let text = format!("allows no disruption ({healthy}); pods on this node: {pods}");
    let found = CheckFinding::new(FindingSeverity::Blocks, subject, text);
    let never = numbers.desired_healthy >= numbers.expected_pods;
    Some(found.with_fix(if never {
        "it requires all pods to be healthy, so it never allows an eviction: add replicas, or \
         change minAvailable or maxUnavailable"
    } else {
        "make its other pods healthy, or add replicas"
    }))
}

fn find_orphan(pod: &PodFacts) -> Option<CheckFinding> {
    let owner = pod.observed.controller.as_ref()?;
    (owner.kind == "DaemonSet" && owner.api_version == "apps/v1").then(|| {
        let text = format!(
            "its DaemonSet {} does not exist: the pod is evicted, and no controller creates it again",
            owner.name
        );
        CheckFinding::new(FindingSeverity::Warns, pod_subject(&pod.observed), text)
    })
}

fn find_ending_namespaces(view: &CheckView, going: &[&PodFacts]) -> Vec<CheckFinding> {
    let terminating = match &view.terminating {
        Ok(terminating) => terminating,
        Err(why) => return vec![unknown_finding("Namespaces", why)],
    };
    let ends = |pod: &&&PodFacts| terminating.contains(&pod.observed.pod.namespace);
    let ending = going.iter().filter(ends);
    ending.map(|pod| find_ending_namespace(pod)).collect()
}

fn find_ending_namespace(pod: &PodFacts) -> CheckFinding {
    let text = "its namespace is being deleted: the drain waits for that";
    CheckFinding::new(FindingSeverity::Note, pod_subject(&pod.observed), text)
}

fn find_in_pod(pod: &PodFacts) -> Vec<CheckFinding> {
    let seen = &pod.observed;
    let mut found = Vec::new();
    if seen.phase == PodPhase::Finished {
        return found;
    }
    let mut add =
        |severity, what: String| found.push(CheckFinding::new(severity, pod_subject(seen), what));
    if seen.controller.is_none() {
        let text = "has no controller: the pod is evicted, and no controller creates it again";
        add(FindingSeverity::Warns, text.into());
    }
    if !pod.empty_dirs.is_empty() {
        let text = format!(
            "the data in its emptyDir {} is lost",
            pod.empty_dirs.join(", ")
        );
        add(FindingSeverity::Warns, text);
    }
    if seen.tolerates_cordon && seen.controller.is_some() {
        let text = "tolerates the cordon: its controller may put it back on this node; after the \
            third time the drain leaves it there";
        add(FindingSeverity::Warns, text.into());
    }
    if seen.deleting {
        add(FindingSeverity::Note, "is already terminating".into());
    }
    if !seen.claims.is_empty() {
        let text = format!("its volumes must be detached: {}", seen.claims.join(", "));
        add(FindingSeverity::Note, text);
    }
    found
}
