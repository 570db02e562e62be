//! Policies on the embedded API server: the cases, and tests with its faults.

use std::time::Duration;

use dogwatch_core::policy::ClusterPolicies;
use dogwatch_k8s::policy::{PolicyWatchView, watch_policies};
use dogwatch_kubesim::api::{ApiServer, ApiVerb, Denial, FaultEffect};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::policy_cases;
use crate::policy_cases::world::{World, is_known, names, only};
use crate::support::embedded::{asked, fail, server};

macro_rules! on_embedded {
    ($($name:ident)*) => { $(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            policy_cases::$name(&World::without_the_kind(server().client_for_user("test")).await).await;
        }
    )* };
}

policy_cases::every_case!(on_embedded);

fn lists(server: &ApiServer) -> usize {
    asked(server, "n1", ApiVerb::List)
}

/// A server with the kind and the policy `workers`.
async fn with_workers(server: &ApiServer, spec: &Value) -> World {
    let world = World::without_the_kind(server.client_for_user("test")).await;
    world.install_the_kind().await;
    world.create("workers", spec).await;
    world
}

/// Checks that the watch reports nothing for some time.
async fn assert_quiet(seen: &mut BoxStream<'static, PolicyWatchView>, long: Duration) {
    let told = tokio::time::timeout(long, seen.next()).await;
    assert!(told.is_err(), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_kind_is_looked_for_every_five_minutes_and_no_oftener() {
    let server = server();
    let mut seen = watch_policies(server.client_for_user("n1"), || 1.0).boxed();
    assert!(is_known(&seen.next().await.unwrap(), &[]));
    assert_quiet(&mut seen, Duration::from_secs(3590)).await;
    assert_eq!(lists(&server), 12);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_comes_is_found_within_five_minutes_and_then_only_watched() {
    let server = server();
    let world = World::without_the_kind(server.client_for_user("test")).await;
    let mut seen = watch_policies(server.client_for_user("n1"), || 1.0).boxed();
    assert!(is_known(&seen.next().await.unwrap(), &[]));
    let since = Instant::now();
    world.install_the_kind().await;
    world.create("workers", &json!({})).await;
    assert!(is_known(&seen.next().await.unwrap(), &["workers"]));
    assert!(since.elapsed() <= Duration::from_mins(5));
    server.clear_audit_log();
    assert_quiet(&mut seen, Duration::from_hours(1)).await;
    assert_eq!(lists(&server), 0);
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_taken_away_stops_everything_and_one_that_is_given_is_noticed() {
    let server = server();
    let _world = with_workers(&server, &json!({})).await;
    let mut seen = watch_policies(server.client_for_user("n1"), || 0.5).boxed();
    assert!(is_known(&seen.next().await.unwrap(), &["workers"]));
    server.set_denials(vec![Denial {
        user: Some("n1".into()),
        verb: None,
        resource: Some("rebootpolicies".into()),
    }]);
    server.cut_watches(Some("n1"));
    // One refusal could be that of an API server that has just started.
    let doubted = seen.next().await.unwrap();
    assert!(is_known(&doubted, &["workers"]) && doubted.error.is_some());
    let refused = seen.next().await.unwrap();
    assert!(
        matches!(&refused.policies, ClusterPolicies::Unreadable { why } if why.contains("rbac.yaml")),
        "{refused:?}"
    );
    server.set_denials(Vec::new());
    assert!(is_known(&seen.next().await.unwrap(), &["workers"]));
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_stays_while_the_api_is_away() {
    let server = server();
    let world = with_workers(&server, &json!({ "paused": { "reason": "freeze" } })).await;
    let mut seen = watch_policies(server.client_for_user("n1"), || 0.5).boxed();
    assert!(is_known(&seen.next().await.unwrap(), &["workers"]));
    server.set_partitioned("n1", true);
    server.cut_watches(Some("n1"));
    let away = seen.next().await.unwrap();
    assert!(
        is_known(&away, &["workers"]) && away.error.is_some(),
        "{away:?}"
    );
    assert!(only(&away.policies).paused.is_some());
    world.change("workers", &json!({ "paused": null })).await;
    server.set_partitioned("n1", false);
    let back = seen.next().await.unwrap();
    assert_eq!(
        (back.error, only(&back.policies).paused.as_ref()),
        (None, None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_right_to_list_alone_lets_nothing_begin() {
    let server = server();
    let world = World::without_the_kind(server.client_for_user("test")).await;
    world.install_the_kind().await;
    server.set_denials(vec![Denial {
        user: Some("n1".into()),
        verb: Some(ApiVerb::Watch),
        resource: Some("rebootpolicies".into()),
    }]);
    let mut seen = watch_policies(server.client_for_user("n1"), || 0.5).boxed();
    assert!(is_known(&seen.next().await.unwrap(), &[]));
    // The list succeeds once more before the second refusal confirms the first.
    for is_doubted in [true, false] {
        let view = seen.next().await.unwrap();
        assert!(
            is_known(&view, &[]) && view.error.is_some() == is_doubted,
            "{view:?}"
        );
    }
    let refused = seen.next().await.unwrap();
    assert!(
        matches!(&refused.policies, ClusterPolicies::Unreadable { .. }),
        "{refused:?}"
    );
    assert_quiet(&mut seen, Duration::from_hours(1)).await;
    server.set_denials(Vec::new());
    assert!(is_known(&seen.next().await.unwrap(), &[]));
}

#[tokio::test(start_paused = true)]
async fn trouble_that_is_over_is_said_to_be_over_though_nothing_changed() {
    let server = server();
    let _world = with_workers(&server, &json!({})).await;
    let mut seen = watch_policies(server.client_for_user("n1"), || 0.5).boxed();
    let before = seen.next().await.unwrap();
    server.set_partitioned("n1", true);
    server.cut_watches(Some("n1"));
    assert!(seen.next().await.unwrap().error.is_some());
    server.set_partitioned("n1", false);
    let calm = tokio::time::timeout(Duration::from_mins(3), seen.next()).await;
    assert_eq!(calm.unwrap().unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn one_answer_that_the_kind_is_not_there_takes_no_policy_away() {
    let server = server();
    let _world = with_workers(&server, &json!({ "paused": { "reason": "freeze" } })).await;
    let mut seen = watch_policies(server.client_for_user("n1"), || 0.5).boxed();
    assert!(is_known(&seen.next().await.unwrap(), &["workers"]));
    fail(&server, FaultEffect::Refuse(404), |request| {
        request.user == "n1" && request.verb == Some(ApiVerb::Watch)
    });
    server.cut_watches(Some("n1"));
    let doubted = seen.next().await.unwrap();
    assert!(
        is_known(&doubted, &["workers"]) && doubted.error.is_some(),
        "{doubted:?}"
    );
    server.clear_faults();
    let back = seen.next().await.unwrap();
    assert!(
        is_known(&back, &["workers"]) && back.error.is_none(),
        "{back:?}"
    );
}

/// Replaces the kind's schema by one that refuses nothing, like that of a later version of the kind.
async fn allow_every_form(world: &World) {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let path = "/spec/versions/0/schema/openAPIV3Schema";
    let patch = json!([{ "op": "replace", "path": path, "value": schema }]);
    let definition =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rebootpolicies.dogwatch.dev";
    let request = http::Request::patch(definition)
        .header("content-type", "application/json-patch+json")
        .body(patch.to_string().into_bytes())
        .unwrap();
    let _: serde_json::Value = world.client.request(request).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_form_is_a_policy_that_stops_all_and_hides_no_other() {
    let server = server();
    let world = with_workers(&server, &json!({})).await;
    allow_every_form(&world).await;
    let odd = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicy",
        "metadata": { "name": "odd" }, "spec": { "windows": "always", "phaseOfMoon": "full" } });
    let request = http::Request::post("/apis/dogwatch.dev/v1alpha1/rebootpolicies")
        .header("content-type", "application/json")
        .body(odd.to_string().into_bytes())
        .unwrap();
    let _: serde_json::Value = world.client.request(request).await.unwrap();
    let policies = world.read().await;
    assert_eq!(names(&policies), ["odd", "workers"]);
    let problems: Vec<usize> = policies
        .known_policies()
        .iter()
        .map(|policy| policy.problems.len())
        .collect();
    assert_eq!(problems, [2, 0], "{policies:?}");
    let seen = watch_policies(world.client.clone(), || 0.5)
        .boxed()
        .next()
        .await
        .unwrap();
    assert_eq!(seen.policies, policies);
}
