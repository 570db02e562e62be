//! What the drain of the node's pods would run into.

use super::finding::{Finding, Severity};
use super::findings::unknown;
use super::view::{CheckView, PodFacts};
use crate::Now;
use crate::drain::{BudgetSeen, PodPhase, PodSeen};
use crate::explain::OnNode;
use crate::policy::Rule;

/// How many pods are named.
const NAMED: usize = 5;

pub(super) fn findings(view: &CheckView, rule: &Rule<'_>, now: Now) -> Vec<Finding> {
    let pods = match &view.pods {
        Ok(pods) => pods,
        Err(why) => return vec![unknown("pods", why)],
    };
    let on_node = OnNode {
        pods: pods.iter().map(|pod| pod.seen.clone()).collect(),
        daemonsets: view.daemonsets.clone().unwrap_or_default(),
        budgets: view.budgets.clone().unwrap_or_default(),
    };
    let going = on_node.to_go(rule.config.exclude.as_ref(), now);
    let going: Vec<&PodFacts> = pods
        .iter()
        .filter(|pod| going.iter().any(|seen| seen.pod == pod.seen.pod))
        .collect();
    let mut found = Vec::new();
    match &view.budgets {
        Ok(budgets) => found.extend(of_budgets(budgets, &going)),
        Err(why) => found.push(unknown("PodDisruptionBudgets", why)),
    }
    match &view.daemonsets {
        Ok(_) => found.extend(going.iter().filter_map(|pod| orphan(pod))),
        Err(why) => found.push(unknown("DaemonSets", why)),
    }
    match &view.terminating {
        Ok(terminating) => {
            let ends = |pod: &&&PodFacts| terminating.contains(&pod.seen.pod.namespace);
            found.extend(going.iter().filter(ends).map(|pod| ending_namespace(pod)));
        }
        Err(why) => found.push(unknown("Namespaces", why)),
    }
    found.extend(going.iter().flat_map(|pod| of_pod(pod)));
    found
}

fn subject(pod: &PodSeen) -> String {
    format!("pod {}", pod.pod)
}

/// Budgets are asked for pods that run; one that ends already has been let go.
fn of_budgets(budgets: &[BudgetSeen], going: &[&PodFacts]) -> Vec<Finding> {
    let asked: Vec<&PodSeen> = going
        .iter()
        .map(|pod| &pod.seen)
        .filter(|pod| pod.phase == PodPhase::Running && !pod.deleting)
        .collect();
    let covering = |pod: &PodSeen| budgets.iter().filter(|budget| budget.covers(pod)).collect();
    let mut found = Vec::new();
    for pod in &asked {
        let covering: Vec<&BudgetSeen> = covering(pod);
        if covering.len() > 1 {
            found.push(several(pod, &covering));
        }
    }
    for budget in budgets {
        let covered: Vec<String> = asked
            .iter()
            .filter(|pod| budget.covers(pod))
            .map(|pod| pod.pod.to_string())
            .collect();
        found.extend(of_budget(budget, &covered));
    }
    found
}

fn several(pod: &PodSeen, budgets: &[&BudgetSeen]) -> Finding {
    let names: Vec<String> = budgets
        .iter()
        .map(|budget| budget.numbers.full_name())
        .collect();
    let text = format!(
        "covered by {} PodDisruptionBudgets ({}): the API server evicts no such pod",
        names.len(),
        names.join(", ")
    );
    Finding::new(Severity::Blocks, subject(pod), text)
        .fix("change the budgets' selectors, so that one covers it")
}

fn of_budget(budget: &BudgetSeen, covered: &[String]) -> Option<Finding> {
    let numbers = &budget.numbers;
    let subject = format!("PodDisruptionBudget {}", numbers.full_name());
    let healthy = format!(
        "{} healthy of {} desired",
        numbers.current_healthy, numbers.desired_healthy
    );
    let pods = crate::explain::some(covered, NAMED);
    let allowed = usize::try_from(numbers.disruptions_allowed).unwrap_or(0);
    if covered.is_empty() || allowed >= covered.len() {
        return None;
    }
    if allowed > 0 {
        let text = format!("allows {allowed} at a time ({healthy}); here are {pods}");
        return Some(Finding::new(Severity::Note, subject, text));
    }
    let text = format!("allows no disruption ({healthy}); here: {pods}");
    let found = Finding::new(Severity::Blocks, subject, text);
    let never = numbers.desired_healthy >= numbers.expected_pods;
    Some(found.fix(if never {
        "it wants every pod healthy, so it never lets one go: more replicas, or another minAvailable or maxUnavailable"
    } else {
        "make its other pods healthy, or give it more replicas"
    }))
}

fn orphan(pod: &PodFacts) -> Option<Finding> {
    let owner = pod.seen.controller.as_ref()?;
    (owner.kind == "DaemonSet" && owner.api_version == "apps/v1").then(|| {
        let text = format!(
            "its DaemonSet {} does not exist: it goes, and nobody makes it anew",
            owner.name
        );
        Finding::new(Severity::Warns, subject(&pod.seen), text)
    })
}

fn ending_namespace(pod: &PodFacts) -> Finding {
    let text = "its namespace is being deleted: the drain waits for that";
    Finding::new(Severity::Note, subject(&pod.seen), text)
}

fn of_pod(pod: &PodFacts) -> Vec<Finding> {
    let seen = &pod.seen;
    let mut found = Vec::new();
    if seen.phase == PodPhase::Finished {
        return found;
    }
    let mut add = |severity, what: String| found.push(Finding::new(severity, subject(seen), what));
    if seen.controller.is_none() {
        let text = "has no controller: it goes, and nobody makes it anew";
        add(Severity::Warns, text.into());
    }
    if !pod.local.is_empty() {
        let text = format!("what is in its emptyDir {} is lost", pod.local.join(", "));
        add(Severity::Warns, text);
    }
    if seen.tolerates_cordon && seen.controller.is_some() {
        let text = "tolerates the cordon: its controller may put it back on this node; the third time it is left there";
        add(Severity::Warns, text.into());
    }
    if seen.deleting {
        add(Severity::Note, "is ending already".into());
    }
    if !seen.claims.is_empty() {
        let text = format!(
            "its volumes have to be detached: {}",
            seen.claims.join(", ")
        );
        add(Severity::Note, text);
    }
    found
}
