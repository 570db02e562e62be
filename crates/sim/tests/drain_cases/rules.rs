//! Drain rules: specification §10.2.

use dogwatch_core::drain::{DrainConfig, PodMark, PodRule, PodRules, RuleAction};
use serde_json::json;

use super::world::World;

fn app_rule(app: &str, action: RuleAction, order: i32) -> PodRule {
    PodRule {
        pods: serde_json::from_value(json!({ "matchLabels": { "app": app } })).unwrap(),
        action,
        order,
        ..PodRule::default()
    }
}

fn rules_config(rules: Vec<PodRule>, honor: &[PodMark]) -> DrainConfig {
    DrainConfig {
        rules: PodRules {
            exclude: None,
            honor: honor.iter().copied().collect(),
            rules,
        },
        ..DrainConfig::default()
    }
}

async fn pod_of(world: &World, app: &str) {
    let labels = json!({ "metadata": { "labels": { "app": app } } });
    world.pod(app, labels).await;
}

pub async fn a_rule_lets_pods_stay_and_deletes_what_refuses_every_eviction(world: &World) {
    for app in ["cache", "agent", "web"] {
        pod_of(world, app).await;
    }
    world.budget("shut", "cache", 0).await;
    let rules = vec![
        app_rule("cache", RuleAction::Delete, 0),
        app_rule("agent", RuleAction::Skip, 0),
    ];
    let drain = world.drain(rules_config(rules, &[]));
    let progress = world.until_drained(&drain).await;
    assert_eq!((progress.gone, progress.is_incomplete()), (2, false));
    assert_eq!(world.pods().await, ["agent"]);
}

pub async fn a_rule_for_a_namespace_reads_its_labels(world: &World) {
    pod_of(world, "web").await;
    let name = world.pod("other", json!({})).await;
    let namespace = name.metadata.namespace.unwrap();
    let labels = json!({ "matchLabels": { "kubernetes.io/metadata.name": namespace } });
    let here = PodRule {
        namespaces: Some(serde_json::from_value(labels).unwrap()),
        ..app_rule("web", RuleAction::Skip, 0)
    };
    let drain = world.drain(rules_config(vec![here], &[]));
    world.until_drained(&drain).await;
    assert_eq!(world.pods().await, ["web"]);
}

pub async fn a_higher_order_is_touched_when_the_lower_one_is_gone(world: &World) {
    pod_of(world, "web").await;
    pod_of(world, "database").await;
    world.budget("shut", "web", 0).await;
    let rules = vec![app_rule("database", RuleAction::Evict, 10)];
    let drain = world.drain(rules_config(rules, &[]));
    world
        .until(&drain, |progress| {
            let is_blocked = progress.blocked.iter().any(|it| it.pod.name == "web");
            is_blocked && progress.held.iter().any(|it| it.pod.name == "database")
        })
        .await;
    assert!(!world.is_deleting("database").await);
    world.allow("shut", 1).await;
    let progress = world.until_drained(&drain).await;
    assert_eq!(progress.gone, 2);
}

pub async fn marks_of_others_count_only_where_the_policy_lists_them(world: &World) {
    let stays = json!({ "metadata": { "labels": { "cluster.x-k8s.io/drain": "skip" } } });
    world.pod("stays", stays).await;
    let marked =
        json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
    world.pod("unlisted", marked).await;
    let drain = world.drain(rules_config(Vec::new(), &[PodMark::ClusterApiDrain]));
    world.until_drained(&drain).await;
    assert_eq!(world.pods().await, ["stays"]);
    drop(drain);
    let marked =
        json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
    world.pod("listed", marked).await;
    let honor = [PodMark::ClusterApiDrain, PodMark::DoNotDisrupt];
    let drain = world.drain(rules_config(Vec::new(), &honor));
    world
        .until(&drain, |progress| progress.held.len() == 1)
        .await;
    assert!(!world.is_deleting("listed").await);
}
