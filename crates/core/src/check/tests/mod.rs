//! Tables of what is found, of what is not, and of who is behind a lock.

mod behind;
mod drain;
mod forced;
mod restore;
mod standing;

use std::collections::BTreeSet;

use super::*;
use crate::drain::{BudgetNumbers, BudgetSeen, LabelSelector, Owner, PodPhase, PodRef, PodSeen};
use crate::explain::testkit::{fleet, node, now};
use crate::explain::{CoordinatorSeen, LeaseRow};
use crate::policy::{Policies, Policy};
use crate::reboot::NodeSeen;

/// A node with a ready coordinator, and nothing else.
pub(super) fn view(nodes: Vec<NodeSeen>, leases: Vec<LeaseRow>) -> CheckView {
    CheckView {
        node: nodes[0].name.clone(),
        fleet: fleet(nodes, leases),
        pods: Ok(Vec::new()),
        budgets: Ok(Vec::new()),
        daemonsets: Ok(BTreeSet::new()),
        terminating: Ok(BTreeSet::new()),
        gates: Vec::new(),
        coordinator: Ok(CoordinatorSeen::Pod {
            name: "dogwatch/c".into(),
            ready: true,
            state: "Running".into(),
        }),
        admission: Ok(Vec::new()),
        forced: None,
    }
}

pub(super) fn alone() -> CheckView {
    view(vec![node("n1")], Vec::new())
}

/// Severity, subject and text, one line each.
pub(super) fn told(view: &CheckView) -> Vec<String> {
    lines(&findings(view, now(1_000)).unwrap())
}

pub(super) fn lines(findings: &[Finding]) -> Vec<String> {
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
        seen: PodSeen {
            pod: PodRef {
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
            claims: Vec::new(),
        },
        local: Vec::new(),
    }
}

pub(super) fn owner(kind: &str) -> Owner {
    Owner {
        api_version: "apps/v1".into(),
        kind: kind.into(),
        name: "owner".into(),
        uid: "o".into(),
    }
}

/// A budget over the pods of one app, of which `healthy` of `of` are healthy.
pub(super) fn budget(name: &str, app: &str, allowed: i32, healthy: i32, of: i32) -> BudgetSeen {
    BudgetSeen {
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
        ..Policy::silent(crate::name::GroupName::new(name).unwrap())
    }
}

pub(super) fn under(view: CheckView, policies: Vec<Policy>) -> CheckView {
    let mut view = view;
    view.fleet.policies = Policies::Known(policies);
    view
}
