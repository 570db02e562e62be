//! Cases of policies for every API server. Each case begins without the kind.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

pub mod world;

use dogwatch_core::policy::ClusterPolicies;
use serde_json::json;

use world::{World, is_known, only};

/// Passes every case to a macro that makes a test of it.
macro_rules! every_case {
    ($run:ident) => {
        $run! {
            where_the_kind_is_not_installed_there_are_no_policies
            a_kind_that_is_installed_later_is_found
            a_change_is_seen_and_a_status_is_none
            a_policy_that_is_deleted_rules_no_longer
            a_kind_that_is_taken_out_leaves_no_policies_and_is_found_again
        }
    };
}
pub(crate) use every_case;

pub async fn where_the_kind_is_not_installed_there_are_no_policies(world: &World) {
    assert_eq!(world.read().await, ClusterPolicies::Known(Vec::new()));
    let seen = world.sight().next().await;
    assert_eq!(
        (seen.policies, seen.error),
        (ClusterPolicies::Known(Vec::new()), None)
    );
}

pub async fn a_kind_that_is_installed_later_is_found(world: &World) {
    let mut sight = world.sight();
    assert!(is_known(&sight.next().await, &[]));
    world.install_the_kind().await;
    world
        .create("workers", &json!({ "maxUnavailable": 3 }))
        .await;
    let seen = sight.until(|seen| is_known(seen, &["workers"])).await;
    assert_eq!(
        only(&seen.policies).max_unavailable.unwrap().to_string(),
        "3"
    );
    assert_eq!(seen.policies, world.read().await);
}

pub async fn a_change_is_seen_and_a_status_is_none(world: &World) {
    world.install_the_kind().await;
    world
        .create("workers", &json!({ "maxUnavailable": 3 }))
        .await;
    let mut sight = world.sight();
    assert!(is_known(&sight.next().await, &["workers"]));
    world
        .write_status("workers", &json!({ "nodes": 5, "outTotal": 1 }))
        .await;
    world
        .change("workers", &json!({ "paused": { "reason": "freeze" } }))
        .await;
    // The very next item: the status write caused none.
    let seen = sight.next().await;
    assert_eq!(
        only(&seen.policies).paused.as_ref().unwrap().reason,
        "freeze"
    );
}

pub async fn a_policy_that_is_deleted_rules_no_longer(world: &World) {
    world.install_the_kind().await;
    world.create("b", &json!({})).await;
    world.create("a", &json!({})).await;
    let mut sight = world.sight();
    assert!(is_known(&sight.next().await, &["a", "b"]));
    world.delete("a").await;
    assert!(is_known(&sight.next().await, &["b"]));
}

pub async fn a_kind_that_is_taken_out_leaves_no_policies_and_is_found_again(world: &World) {
    world.install_the_kind().await;
    world.create("workers", &json!({})).await;
    let mut sight = world.sight();
    assert!(is_known(&sight.next().await, &["workers"]));
    world.take_the_kind_out().await;
    sight
        .until(|seen| is_known(seen, &[]) && seen.error.is_none())
        .await;
    world.install_the_kind().await;
    world.create("others", &json!({})).await;
    sight.until(|seen| is_known(seen, &["others"])).await;
}
