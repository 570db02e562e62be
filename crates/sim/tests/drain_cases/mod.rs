//! Cases of the drain: the same functions run on the embedded and on the real API server. Each case
//! is a sentence of specification §2.3 or an answer measured on a real server.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

pub mod fleet;
pub mod machine_rules;
mod rules;
pub mod world;

use std::time::Duration;

use dogwatch_core::drain::{
    AdmissionRefuser, DrainConfig, EvictionAnswer, EvictionAttempt, EvictionId, PodIdentity,
    PodRules, RemovalMethod,
};
use dogwatch_k8s::drain::{AttachmentWatch, request_pod_removal};
use serde_json::json;

#[allow(unused_imports, reason = "each test binary uses its part")]
pub use self::machine_rules::{
    a_machine_drain_rule_that_is_not_valid_holds_every_pod_and_is_named,
    machine_drain_rules_decide_as_in_cluster_api,
    machine_drain_rules_of_another_clusters_machine_do_not_count,
};
#[allow(unused_imports, reason = "each test binary uses its part")]
pub use self::rules::{
    a_higher_order_is_touched_when_the_lower_one_is_gone, a_rule_for_a_namespace_reads_its_labels,
    a_rule_lets_pods_stay_and_deletes_what_refuses_every_eviction,
    marks_of_others_count_only_where_the_policy_lists_them,
};
use fleet::Kind;
use world::World;

/// A retry interval longer than any test: a blocked pod is tried again only after a change of its
/// budget.
fn only_by_a_change() -> DrainConfig {
    DrainConfig {
        budget_retry: Duration::from_hours(1),
        ..DrainConfig::default()
    }
}

/// Passes the name of each case to a macro that makes a test of it.
#[allow(unused_macros, reason = "each test binary uses its part")]
macro_rules! every_case {
    ($run:ident) => {
        $run! {
            what_qualifies_goes_and_what_does_not_stays
            an_empty_node_is_drained_at_once
            excluded_pods_stay
            a_pod_that_appears_during_the_drain_is_drained_too
            a_budget_that_holds_a_pod_up_is_named_and_its_change_lets_the_pod_go
            a_budget_that_is_removed_lets_its_pod_go
            a_pod_under_several_budgets_stays_on_the_list_and_both_are_named
            past_the_deadline_the_rest_is_deleted_budget_or_not
            an_eviction_for_another_incarnation_harms_nobody
            a_pod_that_is_not_there_is_already_gone
            a_pod_in_a_terminating_namespace_is_waited_for_and_reported
            a_daemonset_is_looked_up_by_name_and_one_that_is_gone_protects_nobody
            the_volumes_of_drained_pods_are_waited_for_and_no_others
            the_third_replacement_that_tolerates_the_cordon_stays_and_is_reported
            a_rule_lets_pods_stay_and_deletes_what_refuses_every_eviction
            a_rule_for_a_namespace_reads_its_labels
            a_higher_order_is_touched_when_the_lower_one_is_gone
            marks_of_others_count_only_where_the_policy_lists_them
            machine_drain_rules_decide_as_in_cluster_api
            machine_drain_rules_of_another_clusters_machine_do_not_count
            a_machine_drain_rule_that_is_not_valid_holds_every_pod_and_is_named
        }
    };
}
#[allow(unused_imports, reason = "each test binary uses its part")]
pub(crate) use every_case;

pub async fn what_qualifies_goes_and_what_does_not_stays(world: &World) {
    fleet::owners(world).await;
    for kind in fleet::ALL {
        fleet::create(world, *kind).await;
    }
    let drain = world.drain(DrainConfig::default());
    world.until_drained(&drain).await;
    let stays: Vec<&str> = fleet::ALL
        .iter()
        .filter(|kind| !kind.goes())
        .map(|kind| kind.name())
        .collect();
    assert_eq!(world.pods().await, stays);
}

pub async fn an_empty_node_is_drained_at_once(world: &World) {
    let drain = world.drain(DrainConfig::default());
    world.until_drained(&drain).await;
    assert_eq!(drain.progress.borrow().gone, 0);
}

pub async fn excluded_pods_stay(world: &World) {
    world
        .pod("keep", json!({"metadata": {"labels": {"keep": "yes"}}}))
        .await;
    world.pod("go", json!({})).await;
    let exclude = serde_json::from_value(json!({"matchLabels": {"keep": "yes"}})).unwrap();
    let config = DrainConfig {
        rules: PodRules {
            exclude: Some(exclude),
            ..PodRules::default()
        },
        ..DrainConfig::default()
    };
    let drain = world.drain(config);
    world.until_drained(&drain).await;
    assert_eq!(world.pods().await, ["keep"]);
}

pub async fn a_pod_that_appears_during_the_drain_is_drained_too(world: &World) {
    let drain = world.drain(DrainConfig::default());
    world.until_drained(&drain).await;
    world.pod("late", json!({})).await;
    world
        .until(&drain, |progress| {
            progress.gone == 1 && progress.is_drained()
        })
        .await;
    assert_eq!(world.pods().await, [""; 0]);
}

pub async fn a_budget_that_holds_a_pod_up_is_named_and_its_change_lets_the_pod_go(world: &World) {
    world
        .pod("web", json!({"metadata": {"labels": {"app": "web"}}}))
        .await;
    world.pod("other", json!({})).await;
    world.budget("web-budget", "web", 0).await;
    let drain = world.drain(only_by_a_change());
    let progress = world
        .until(&drain, |progress| {
            progress
                .blocked
                .iter()
                .any(|blocked| !blocked.budgets.is_empty())
        })
        .await;
    let blocked = &progress.blocked[0];
    assert_eq!(blocked.pod.name, "web");
    assert!(
        blocked.message.contains("web-budget"),
        "{}",
        blocked.message
    );
    let numbers = &blocked.budgets[0];
    let read = (
        numbers.disruptions_allowed,
        numbers.current_healthy,
        numbers.desired_healthy,
        numbers.expected_pods,
    );
    assert_eq!((numbers.name.as_str(), read), ("web-budget", (0, 1, 1, 1)));
    world.until(&drain, |progress| progress.gone == 1).await;
    assert_eq!(
        progress.covered_by,
        [format!("{}/web-budget", world.namespace)]
    );

    world.allow("web-budget", 1).await;
    world.until_drained(&drain).await;
}

pub async fn a_budget_that_is_removed_lets_its_pod_go(world: &World) {
    world
        .pod("web", json!({"metadata": {"labels": {"app": "web"}}}))
        .await;
    world.budget("web-budget", "web", 0).await;
    let drain = world.drain(only_by_a_change());
    world
        .until(&drain, |progress| {
            progress
                .blocked
                .iter()
                .any(|blocked| !blocked.budgets.is_empty())
        })
        .await;
    world.remove_budget("web-budget").await;
    world.until_drained(&drain).await;
}

pub async fn a_pod_under_several_budgets_stays_on_the_list_and_both_are_named(world: &World) {
    world
        .pod("web", json!({"metadata": {"labels": {"app": "web"}}}))
        .await;
    world.budget("one", "web", 1).await;
    world.budget("two", "web", 1).await;
    let drain = world.drain(only_by_a_change());
    let progress = world
        .until(&drain, |progress| {
            progress
                .blocked
                .iter()
                .any(|blocked| blocked.budgets.len() == 2)
        })
        .await;
    assert!(
        progress.blocked[0]
            .message
            .contains("more than one PodDisruptionBudget")
    );
    assert!(!progress.is_incomplete());
    world.remove_budget("two").await;
    world.until_drained(&drain).await;
}

pub async fn past_the_deadline_the_rest_is_deleted_budget_or_not(world: &World) {
    world
        .pod("web", json!({"metadata": {"labels": {"app": "web"}}}))
        .await;
    world.budget("web-budget", "web", 0).await;
    let drain = world.drain(DrainConfig::default());
    world
        .until(&drain, |progress| !progress.blocked.is_empty())
        .await;
    drain.delete_rest();
    world.until_drained(&drain).await;
    assert_eq!(world.pods().await, [""; 0]);
}

pub async fn an_eviction_for_another_incarnation_harms_nobody(world: &World) {
    world.pod("web", json!({})).await;
    for (way, id) in [(RemovalMethod::Evict, 1), (RemovalMethod::Delete, 2)] {
        let pod = PodIdentity {
            namespace: world.namespace.clone(),
            name: "web".into(),
            uid: "00000000-0000-4000-8000-000000000000".into(),
        };
        let answer = request_pod_removal(
            &world.client,
            &EvictionAttempt {
                id: EvictionId(id),
                pod,
                removal_method: way,
            },
        )
        .await;
        assert_eq!(answer, EvictionAnswer::AlreadyGone, "{way:?}");
    }
    assert!(!world.is_deleting("web").await);
}

pub async fn a_pod_that_is_not_there_is_already_gone(world: &World) {
    let pod = PodIdentity {
        namespace: world.namespace.clone(),
        name: "none".into(),
        uid: "u".into(),
    };
    for way in [RemovalMethod::Evict, RemovalMethod::Delete] {
        let one = EvictionAttempt {
            id: EvictionId(1),
            pod: pod.clone(),
            removal_method: way,
        };
        assert_eq!(
            request_pod_removal(&world.client, &one).await,
            EvictionAnswer::AlreadyGone,
            "{way:?}"
        );
    }
}

pub async fn a_pod_in_a_terminating_namespace_is_waited_for_and_reported(world: &World) {
    world.pod("web", json!({})).await;
    world.terminate_namespace().await;
    let drain = world.drain(DrainConfig::default());
    let progress = world
        .until(&drain, |progress| !progress.blocked.is_empty())
        .await;
    assert!(
        progress.blocked[0].message.contains("namespace"),
        "{progress:?}"
    );
    assert!(!progress.is_incomplete());
    // As the namespace controller does.
    world.delete("web").await;
    world.until_drained(&drain).await;
}

pub async fn a_daemonset_is_looked_up_by_name_and_one_that_is_gone_protects_nobody(world: &World) {
    fleet::owners(world).await;
    for kind in [Kind::OfDaemonSet, Kind::OfDaemonSetThatIsGone] {
        fleet::create(world, kind).await;
    }
    let drain = world.drain(DrainConfig::default());
    world.until_drained(&drain).await;
    assert_eq!(world.pods().await, [Kind::OfDaemonSet.name()]);
}

pub async fn the_volumes_of_drained_pods_are_waited_for_and_no_others(world: &World) {
    let volume = |claim: &str| json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}});
    world.pod("db", volume("data-db")).await;
    for (name, claim) in [("db", "data-db"), ("else", "data-of-another")] {
        world.attached_volume(name, claim, &world.node).await;
    }
    world
        .attached_volume("elsewhere", "data-db", "another-node")
        .await;
    let drain = world.drain(DrainConfig::default());
    let progress = world.until_drained(&drain).await;
    let claim = format!("{}/data-db", world.namespace);
    assert_eq!(progress.claims, std::slice::from_ref(&claim));

    let mut attachments =
        AttachmentWatch::start_watching(world.client.clone(), &world.node, progress.claims);
    let seen = world
        .within(attachments.left.wait_for(Option::is_some))
        .await
        .unwrap()
        .clone();
    assert_eq!(
        seen.unwrap(),
        [format!("{} (claim {claim})", world.attachment("db"))]
    );
    world.detach("db").await;
    let gone = |left: &Option<Vec<String>>| left.as_ref().is_some_and(Vec::is_empty);
    world.within(attachments.left.wait_for(gone)).await.unwrap();
}

pub async fn the_third_replacement_that_tolerates_the_cordon_stays_and_is_reported(world: &World) {
    let stubborn = json!({
        "metadata": {"ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": true,
            "uid": "00000000-0000-4000-8000-000000000001",
        }]},
        "spec": {"tolerations": [{"operator": "Exists"}]},
    });
    world.pod("web-0", stubborn.clone()).await;
    let drain = world.drain(DrainConfig::default());
    for generation in 1..4 {
        world
            .until(&drain, |progress| progress.gone == generation)
            .await;
        world
            .pod(&format!("web-{generation}"), stubborn.clone())
            .await;
    }
    let progress = world
        .until(&drain, |progress| !progress.tolerated.is_empty())
        .await;
    assert!(progress.is_drained(), "{progress:?}");
    assert_eq!(world.pods().await, ["web-3"]);
}

/// A policy refuses evictions of pods whose name begins with `web`; `admit` removes it.
pub async fn an_eviction_that_a_policy_refuses_is_waited_for_and_the_policy_named(
    world: &World,
    policy: &str,
    message: &str,
    admit: impl AsyncFnOnce(),
) {
    world.until_evictions_are_refused("web-none").await;
    world.pod("web", json!({})).await;
    world.pod("other", json!({})).await;
    let drain = world.drain(DrainConfig::default());
    let progress = world
        .until(&drain, |progress| {
            progress.gone == 1 && !progress.blocked.is_empty()
        })
        .await;
    let refused = progress.blocked[0].refused.clone().unwrap();
    assert_eq!(refused.by, AdmissionRefuser::Policy(policy.to_owned()));
    assert_eq!(refused.said, message);
    assert!(!progress.is_incomplete());
    assert_eq!(world.pods().await, ["web"]);
    admit().await;
    world.until_drained(&drain).await;
    assert_eq!(world.pods().await, [""; 0]);
}
