//! `do: RollFirst` with the real controllers.

use std::time::Duration;

use dogwatch_core::drain::{
    DrainConfig, DrainProgress, PodRule, PodRules, RolloutOutlook, RuleAction,
};
use dogwatch_testbed::{ControlPlane, shared_control_plane};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;

use super::workload::PlayedWorkload;
use crate::support::real::client_that_asks_once;

/// Longer than any test here.
pub const HOURS: Duration = Duration::from_hours(3);

pub fn roll_first(timeout: Duration) -> DrainConfig {
    let web = serde_json::from_value(json!({"matchLabels": {"app": "web"}})).unwrap();
    DrainConfig {
        rules: PodRules {
            rules: vec![PodRule {
                pods: web,
                action: RuleAction::RollFirst { timeout },
                ..PodRule::default()
            }],
            ..PodRules::default()
        },
        ..DrainConfig::default()
    }
}

/// One ready replica of Deployment `web` on the cordoned node.
async fn web_with(spec: serde_json::Value) -> PlayedWorkload {
    web_on(shared_control_plane().await, spec).await
}

pub async fn web_on(plane: &ControlPlane, spec: serde_json::Value) -> PlayedWorkload {
    let web = PlayedWorkload::start(client_that_asks_once(plane.admin_kubeconfig()).await).await;
    web.world.deployment("web", spec).await;
    web.until_ready().await;
    web.cordon();
    web
}

/// How many templates the Deployment has had.
pub async fn templates(web: &PlayedWorkload) -> i64 {
    let deployment = web.world.api::<Deployment>().get("web").await.unwrap();
    deployment.metadata.generation.unwrap()
}

fn is_rolling(progress: &DrainProgress) -> bool {
    let mut rollouts = progress
        .held
        .iter()
        .filter_map(|held| held.rollout.as_ref());
    rollouts.any(|rollout| matches!(rollout, RolloutOutlook::UnderWay { .. }))
}

#[tokio::test]
async fn a_single_replica_behind_a_shut_budget_is_never_without_a_ready_pod() {
    let web = web_with(json!({})).await;
    web.world.guard("web-budget", "web", 1).await;
    let before = web.world.pods().await;
    let drain = web.world.drain(roll_first(HOURS));
    let progress = web.world.until_drained(&drain).await;
    assert_eq!((progress.gone, progress.unrolled), (1, Vec::new()));
    let after = web.pods_elsewhere().await;
    assert_eq!((before.len(), after.len()), (1, 1));
    assert_ne!(before, after);
    assert_eq!(web.fewest_ready(), 1);
    assert_eq!(templates(&web).await, 2);
}

#[tokio::test]
async fn without_the_rule_there_is_a_moment_without_a_ready_pod() {
    let web = web_with(json!({})).await;
    let drain = web.world.drain(DrainConfig::default());
    web.world.until_drained(&drain).await;
    assert_eq!(web.fewest_ready(), 0);
}

#[tokio::test]
async fn a_drain_that_begins_anew_does_not_restart_the_deployment_again() {
    let web = web_with(json!({})).await;
    web.hold_new_pods();
    for _ in 0..3 {
        let drain = web.world.drain(roll_first(HOURS));
        web.world.until(&drain, is_rolling).await;
    }
    assert_eq!(templates(&web).await, 2);
    let drain = web.world.drain(roll_first(HOURS));
    web.let_new_pods_be_ready().await;
    web.world.until_drained(&drain).await;
    assert_eq!((templates(&web).await, web.fewest_ready()), (2, 1));
}

#[tokio::test]
async fn two_drains_at_once_restart_the_deployment_once() {
    let web = web_with(json!({})).await;
    let drains = [(); 4].map(|()| web.world.drain(roll_first(HOURS)));
    for drain in &drains {
        web.world.until_drained(drain).await;
    }
    assert_eq!((templates(&web).await, web.fewest_ready()), (2, 1));
}

#[tokio::test]
async fn a_strategy_without_a_replacement_first_is_an_eviction_and_said() {
    for (strategy, why) in [
        (json!({"type": "Recreate"}), "has the strategy Recreate"),
        (
            json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
            "has maxSurge 0",
        ),
        (
            json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}),
            "has a maxUnavailable that lets all its pods go",
        ),
    ] {
        let web = web_with(json!({"strategy": strategy})).await;
        let drain = web.world.drain(roll_first(HOURS));
        let progress = web.world.until_drained(&drain).await;
        let said = progress.unrolled[0].to_string();
        assert!(said.contains(why), "{said}");
        assert_eq!(templates(&web).await, 1);
    }
}

#[tokio::test]
async fn at_its_timeout_the_pod_of_a_stuck_rollout_is_evicted() {
    let web = web_with(json!({})).await;
    web.hold_new_pods();
    let drain = web.world.drain(roll_first(Duration::from_secs(3)));
    let progress = web.world.until_drained(&drain).await;
    let said = progress.unrolled[0].to_string();
    assert!(said.contains("took too long"), "{said}");
    assert_eq!((templates(&web).await, web.fewest_ready()), (2, 0));
}

#[tokio::test]
async fn the_progress_deadline_of_a_stuck_rollout_is_named() {
    let web = web_with(json!({"progressDeadlineSeconds": 2})).await;
    web.hold_new_pods();
    let drain = web.world.drain(roll_first(HOURS));
    let names_it = |progress: &DrainProgress| {
        let mut rollouts = progress
            .held
            .iter()
            .filter_map(|held| held.rollout.as_ref());
        rollouts.any(|rollout| rollout.to_string().contains("ProgressDeadlineExceeded"))
    };
    web.world.until(&drain, names_it).await;
    assert_eq!(web.fewest_ready(), 1);
}
