//! What a check says about pods that a rule replaces by a rollout first.

use std::time::Duration;

use super::*;
use crate::drain::{
    DeploymentLookup, ObservedDeployment, PodRule, PodRules, ReplicaSetRef, ReplicaShare,
    RolloutStrategy, RuleAction,
};
use crate::policy::DrainRules;

fn view_of(lookup: Option<DeploymentLookup>) -> CheckView {
    let mut policy = policy("p", 0);
    policy.drain = DrainRules {
        pods: PodRules {
            rules: vec![PodRule {
                action: RuleAction::RollFirst {
                    timeout: Duration::from_mins(10),
                },
                ..PodRule::default()
            }],
            ..PodRules::default()
        },
        ..DrainRules::default()
    };
    let web = pod("web");
    let set = ReplicaSetRef::of_pod(&web.observed).unwrap();
    let view = CheckView {
        pods: Ok(vec![web]),
        budgets: Ok(vec![budget("web", "web", 0, 1, 1)]),
        deployments: lookup
            .into_iter()
            .map(|lookup| (set.clone(), lookup))
            .collect(),
        ..alone()
    };
    under(view, vec![policy])
}

fn deployment(strategy: RolloutStrategy, has_same_template: bool) -> DeploymentLookup {
    DeploymentLookup::Found(Box::new(ObservedDeployment {
        name: "web".into(),
        uid: "u".into(),
        resource_version: "1".into(),
        deleting: false,
        paused: false,
        has_same_template,
        replicas: 1,
        strategy,
        stuck: (!has_same_template).then(|| "ProgressDeadlineExceeded: slow".into()),
    }))
}

#[test]
fn the_plan_names_the_deployment_or_why_it_is_not_restarted() {
    let quarter = ReplicaShare::Percent(25);
    let rolling = RolloutStrategy::RollingUpdate {
        max_surge: quarter,
        max_unavailable: quarter,
    };
    for (lookup, action, why, blocked) in [
        (
            Some(deployment(rolling, true)),
            "restart Deployment shop/web, wait up to 10m, then evict",
            "drain.rules[0]",
            false,
        ),
        (
            Some(deployment(rolling, false)),
            "wait up to 10m for the rollout of Deployment shop/web, then evict",
            "drain.rules[0]; ProgressDeadlineExceeded: slow",
            false,
        ),
        (
            Some(deployment(RolloutStrategy::Recreate, true)),
            "evict",
            "drain.rules[0]; evicted without a rollout: Deployment shop/web has the strategy \
             Recreate: its pods go before new ones come",
            true,
        ),
        (
            None,
            "restart its Deployment, wait up to 10m, then evict",
            "drain.rules[0]; its Deployment cannot be read: not read",
            false,
        ),
    ] {
        let planned = plan_drain(&view_of(lookup), now(0)).unwrap().remove(0);
        assert_eq!(
            (planned.action.as_str(), planned.why.as_str()),
            (action, why)
        );
        assert_eq!(!planned.blocked_by.is_empty(), blocked, "{action}");
    }
}

#[test]
fn a_shut_budget_does_not_block_a_pod_that_a_rollout_replaces() {
    let quarter = ReplicaShare::Percent(25);
    let rolling = RolloutStrategy::RollingUpdate {
        max_surge: quarter,
        max_unavailable: quarter,
    };
    // As `check` asks: at the beginning of a drain.
    let told_at_start = |view| lines(&find_reboot_blockers(&view, now(0)).unwrap());
    let rolled = told_at_start(view_of(Some(deployment(rolling, true))));
    assert_eq!(
        rolled,
        [
            "note pod shop/web: goes after a rollout, by drain.rules[0]: Deployment shop/web is restarted"
        ]
    );
    let evicted = told_at_start(view_of(Some(deployment(RolloutStrategy::Recreate, true))));
    assert!(
        evicted[0].starts_with("blocks PodDisruptionBudget shop/web"),
        "{evicted:?}"
    );
    assert!(
        evicted[1].starts_with("warns pod shop/web: drain.rules[0] wants"),
        "{evicted:?}"
    );
}
