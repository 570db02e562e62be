//! The embedded API server under an ordinary kube client, with paused time.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_kubesim::api::{ApiServer, ApiServerOptions, ApiVerb, FaultEffect};
use dogwatch_kubesim::clock::TokioClock;
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::Status;
use serde_json::json;

fn server() -> ApiServer {
    ApiServer::new(
        Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)),
        ApiServerOptions::default(),
    )
}

fn node(name: &str) -> Node {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"name": name}}}))
        .expect("a node")
}

fn refusal<T: std::fmt::Debug>(result: kube::Result<T>) -> Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_shows_what_is_there_what_comes_what_changes_and_what_goes() {
    let server = server();
    let nodes: Api<Node> = Api::all(server.client_for_user("tester"));
    nodes
        .create(&PostParams::default(), &node("a"))
        .await
        .unwrap();
    let mut watch = nodes
        .watch(&WatchParams::default(), "0")
        .await
        .unwrap()
        .boxed();
    nodes
        .create(&PostParams::default(), &node("b"))
        .await
        .unwrap();
    let cordon = json!({"spec": {"unschedulable": true}});
    nodes
        .patch("b", &PatchParams::default(), &Patch::Merge(&cordon))
        .await
        .unwrap();
    nodes
        .delete("a", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(match watch.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(node) => format!("added {}", node.metadata.name.unwrap()),
            WatchEvent::Modified(node) => format!("modified {}", node.metadata.name.unwrap()),
            WatchEvent::Deleted(node) => format!("deleted {}", node.metadata.name.unwrap()),
            other @ (WatchEvent::Bookmark(_) | WatchEvent::Error(_)) => {
                panic!("unexpected {other:?}")
            }
        });
    }
    assert_eq!(seen, ["added a", "added b", "modified b", "deleted a"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_sends_bookmarks_and_ends_at_its_timeout() {
    let server = server();
    let nodes: Api<Node> = Api::all(server.client_for_user("tester"));
    let started = tokio::time::Instant::now();
    let parameters = WatchParams::default().timeout(150);
    let watch = nodes.watch(&parameters, "0").await.unwrap();
    let events: Vec<_> = watch.try_collect().await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(150));
    assert_eq!(events.len(), 3, "two by the minute, one before the end");
    assert!(
        events
            .iter()
            .all(|event| matches!(event, WatchEvent::Bookmark(_)))
    );
}

#[tokio::test(start_paused = true)]
async fn a_selector_turns_changes_into_arrivals_and_departures() {
    let server = server();
    let nodes: Api<Node> = Api::all(server.client_for_user("tester"));
    nodes
        .create(&PostParams::default(), &node("a"))
        .await
        .unwrap();
    let parameters = WatchParams::default().fields("spec.unschedulable=true");
    let mut watch = nodes.watch(&parameters, "0").await.unwrap().boxed();
    for unschedulable in [true, false] {
        let patch = json!({"spec": {"unschedulable": unschedulable}});
        nodes
            .patch("a", &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }
    assert!(matches!(
        watch.try_next().await.unwrap(),
        Some(WatchEvent::Added(_))
    ));
    assert!(matches!(
        watch.try_next().await.unwrap(),
        Some(WatchEvent::Deleted(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_before_the_history_is_told_410() {
    let server = server();
    let nodes: Api<Node> = Api::all(server.client_for_user("tester"));
    let made = nodes
        .create(&PostParams::default(), &node("a"))
        .await
        .unwrap();
    nodes
        .create(&PostParams::default(), &node("b"))
        .await
        .unwrap();
    server.compact_history();
    let from = made.metadata.resource_version.unwrap();
    let mut watch = nodes
        .watch(&WatchParams::default(), &from)
        .await
        .unwrap()
        .boxed();
    let Some(WatchEvent::Error(error)) = watch.try_next().await.unwrap() else {
        panic!("no error event")
    };
    assert_eq!((error.code, error.reason.as_str()), (410, "Expired"));
}

#[tokio::test(start_paused = true)]
async fn a_lease_taken_by_apply_refuses_a_second_manager() {
    let server = server();
    let leases: Api<Lease> = Api::namespaced(server.client_for_user("tester"), "default");
    let bid = |holder: &str| json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "slot"}, "spec": {"holderIdentity": holder}});
    leases
        .patch(
            "slot",
            &PatchParams::apply("one"),
            &Patch::Apply(bid("one")),
        )
        .await
        .unwrap();
    let refused = refusal(
        leases
            .patch(
                "slot",
                &PatchParams::apply("two"),
                &Patch::Apply(bid("two")),
            )
            .await,
    );
    assert_eq!(refused.code, 409);
    assert_eq!(
        refused.message,
        "Apply failed with 1 conflict: conflict with \"one\": .spec.holderIdentity"
    );
    let free = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "slot"}});
    let freed = leases
        .patch("slot", &PatchParams::apply("one"), &Patch::Apply(free))
        .await
        .unwrap();
    assert_eq!(freed.spec.unwrap().holder_identity, None);
    leases
        .patch(
            "slot",
            &PatchParams::apply("two"),
            &Patch::Apply(bid("two")),
        )
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_update_of_an_old_version_is_refused() {
    let server = server();
    let nodes: Api<Node> = Api::all(server.client_for_user("tester"));
    let old = nodes
        .create(&PostParams::default(), &node("a"))
        .await
        .unwrap();
    let patch = json!({"metadata": {"labels": {"x": "y"}}});
    nodes
        .patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    let refused = refusal(nodes.replace("a", &PostParams::default(), &old).await);
    assert_eq!(
        refused.message,
        "Operation cannot be fulfilled on nodes \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_has_acted_and_a_lost_request_has_not() {
    let server = server();
    let maps: Api<ConfigMap> = Api::namespaced(server.client_for_user("tester"), "default");
    server.set_faults(|request| match (request.verb, request.nth) {
        (Some(ApiVerb::Create), 0) => vec![FaultEffect::LoseRequest],
        (Some(ApiVerb::Create), 1) => vec![FaultEffect::LoseAnswer],
        _ => vec![FaultEffect::DelayAnswer(Duration::from_secs(7))],
    });
    let map = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    maps.create(&PostParams::default(), &map("lost"))
        .await
        .unwrap_err();
    maps.create(&PostParams::default(), &map("done"))
        .await
        .unwrap_err();
    let started = tokio::time::Instant::now();
    let found = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(7));
    let names: Vec<_> = found
        .items
        .iter()
        .filter_map(|map| map.metadata.name.as_deref())
        .collect();
    assert_eq!(names, ["done"]);
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_state_though_it_changes_between_them() {
    let server = server();
    let nodes: Api<Node> = Api::all(server.client_for_user("tester"));
    for name in ["a", "b", "c"] {
        nodes
            .create(&PostParams::default(), &node(name))
            .await
            .unwrap();
    }
    let first = nodes.list(&ListParams::default().limit(1)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(2));
    nodes
        .delete("c", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    let token = first.metadata.continue_.unwrap();
    let rest = nodes
        .list(&ListParams::default().continue_token(&token))
        .await
        .unwrap();
    let names: Vec<_> = rest
        .items
        .iter()
        .filter_map(|node| node.metadata.name.as_deref())
        .collect();
    assert_eq!(names, ["b", "c"]);
    let selected = nodes
        .list(&ListParams::default().labels("name!=z").limit(1))
        .await
        .unwrap();
    assert_eq!(selected.metadata.remaining_item_count, None);
}

#[tokio::test(start_paused = true)]
async fn a_running_pod_stays_for_its_grace_and_a_pending_one_goes_at_once() {
    let server = server();
    let pods: Api<Pod> = Api::namespaced(server.client_for_user("tester"), "default");
    let pod = |name: &str, node: &str| -> Pod {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}})).unwrap()
    };
    pods.create(&PostParams::default(), &pod("bound", "n"))
        .await
        .unwrap();
    let mut unbound = pod("unbound", "n");
    unbound.spec.as_mut().unwrap().node_name = None;
    pods.create(&PostParams::default(), &unbound).await.unwrap();
    let default = kube::api::DeleteParams::default();
    pods.delete("unbound", &default).await.unwrap();
    assert!(pods.get_opt("unbound").await.unwrap().is_none());
    pods.delete("bound", &default).await.unwrap();
    let terminating = pods.get("bound").await.unwrap();
    assert_eq!(terminating.metadata.deletion_grace_period_seconds, Some(30));
    pods.delete("bound", &default.clone().grace_period(0))
        .await
        .unwrap();
    assert!(pods.get_opt("bound").await.unwrap().is_none());
}
