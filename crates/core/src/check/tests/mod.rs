//! Tables of findings, and of holders behind a lock.

mod behind;
mod drain;
mod forced;
mod machine_rules;
mod restore;
mod restore_forced;
mod rolled;
mod standing;

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::drain::{
    BudgetNumbers, ControllerRef, LabelSelector, MachineRulesLookup, ObservedDisruptionBudget,
    ObservedPod, PodIdentity, PodMarks, PodPhase,
};
use crate::explain::testkit::{fleet, node, now};
use crate::explain::{LeaseRow, ObservedCoordinator};
use crate::policy::{ClusterPolicies, Policy};
use crate::reboot::ObservedNode;

/// A node with a ready coordinator, and nothing else.
pub(super) fn view(nodes: Vec<ObservedNode>, leases: Vec<LeaseRow>) -> CheckView {
    CheckView {
        node: nodes[0].name.clone(),
        fleet: fleet(nodes, leases),
        pods: Ok(Vec::new()),
        budgets: Ok(Vec::new()),
        daemonsets: Ok(BTreeSet::new()),
        terminating: Ok(BTreeSet::new()),
        namespace_labels: Ok(BTreeMap::new()),
        deployments: BTreeMap::new(),
        machine_rules: MachineRulesLookup::default(),
        gates: Vec::new(),
        coordinator: Ok(ObservedCoordinator::Pod {
            name: "dogwatch/c".into(),
            ready: true,
            state: "Running".into(),
        }),
        admission: Ok(Vec::new()),
        protected_namespace: None,
        node_reboot_kind: None,
        remediation: None,
    }
}

pub(super) fn alone() -> CheckView {
    view(vec![node("n1")], Vec::new())
}

/// Severity, subject and text, one line each.
pub(super) fn told(view: &CheckView) -> Vec<String> {
    lines(&find_reboot_blockers(view, now(1_000)).unwrap())
}

pub(super) fn lines(findings: &[CheckFinding]) -> Vec<String> {
    findings
        .iter()
        .map(|found| {
            format!(
                "{} {}: {}",
                found.severity.as_str(),
                found.subject,
                found.what
            )
        })
        .collect()
}

pub(super) fn pod(name: &str) -> PodFacts {
    PodFacts {
        observed: ObservedPod {
            pod: PodIdentity {
                namespace: "shop".into(),
                name: name.into(),
                uid: format!("uid-{name}"),
            },
            phase: PodPhase::Running,
            deleting: false,
            mirror: false,
            controller: Some(owner("ReplicaSet")),
            labels: [("app".to_owned(), name.to_owned())].into(),
            tolerates_cordon: false,
            unscheduled: false,
            claims: Vec::new(),
            marks: PodMarks::default(),
        },
        empty_dirs: Vec::new(),
    }
}

pub(super) fn owner(kind: &str) -> ControllerRef {
    ControllerRef {
        api_version: "apps/v1".into(),
        kind: kind.into(),
        name: "owner".into(),
        uid: "o".into(),
    }
}

/// A budget over the pods of one app, of which `healthy` of `of` are healthy.
pub(super) fn budget(
    name: &str,
    app: &str,
    allowed: i32,
    healthy: i32,
    of: i32,
) -> ObservedDisruptionBudget {
    ObservedDisruptionBudget {
        numbers: BudgetNumbers {
            namespace: "shop".into(),
            name: name.into(),
            disruptions_allowed: allowed,
            current_healthy: healthy,
            desired_healthy: 2,
            expected_pods: of,
        },
        selector: Some(LabelSelector {
            match_labels: [("app".to_owned(), app.to_owned())].into(),
            ..LabelSelector::default()
        }),
        generation: 1,
    }
}

pub(super) fn policy(name: &str, priority: i32) -> Policy {
    Policy {
        priority,
        ..Policy::without_rules(crate::name::GroupName::new(name).unwrap())
    }
}

pub(super) fn under(view: CheckView, policies: Vec<Policy>) -> CheckView {
    let mut view = view;
    view.fleet.policies = ClusterPolicies::Known(policies);
    view
}
