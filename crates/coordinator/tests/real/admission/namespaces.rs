//! The policies apply in Dogwatch's namespace, whatever its name, and in no other.

use std::time::Duration;

use serde_json::json;

use super::{Stage, Who, compare};
use crate::support::api::{APPLY, JSON, MERGE};
use crate::support::{PATIENCE, token};

/// A second Dogwatch whose controller may not break locks, and a namespace without Dogwatch.
const ELSEWHERE: &str = include_str!("elsewhere.yaml");

#[tokio::test]
async fn a_controller_that_may_not_break_locks_writes_those_of_its_own_prefixes() {
    let stage = Stage::set().await;
    let plane = &stage.cluster.plane;
    let applied = plane.run_kubectl(&["apply", "-f", "-"], ELSEWHERE).await;
    applied.expect("manifests that are accepted");
    let api = &stage.cluster.api;
    let token = token::unbound(api, "elsewhere", "dogwatch-controller").await;
    let hand = super::hand(&stage.cluster, &token).await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/elsewhere/leases";
    let holders = [
        ("api/host.example", Ok(())),
        ("fleetlock/default/0123", Ok(())),
        ("remedy/first", Ok(())),
        ("node/first", Err("only node/first itself")),
        ("apis/host", Err("only apis/host itself")),
    ];
    for (number, (holder, expected)) in holders.into_iter().enumerate() {
        let name = format!("dogwatch-default-{number}");
        let metadata = json!({ "name": name, "labels": { "dogwatch.dev/group": "default" } });
        api.create(leases, &json!({ "metadata": metadata })).await;
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": name, "annotations": { "dogwatch.dev/holder": "record" } },
            "spec": { "holderIdentity": holder },
        });
        let path = format!("{leases}/{name}?fieldManager={holder}");
        let taken = hand.attempt("PATCH", &path, APPLY, &body).await;
        compare(holder, Who::Controller, taken, expected);
    }
    // A node holds it, so this controller may not free it.
    let held = json!({ "spec": { "holderIdentity": "node/first" } });
    let path = format!("{leases}/dogwatch-default-3");
    api.merge(&path, &held).await;
    let free = json!({ "spec": { "holderIdentity": null } });
    let freed = hand.attempt("PATCH", &path, MERGE, &free).await;
    compare(
        "breaking",
        Who::Controller,
        freed,
        Err("only node/first itself"),
    );
}

#[tokio::test]
async fn a_namespace_that_is_not_dogwatchs_is_left_alone_and_dogwatchs_can_be_deleted() {
    let stage = Stage::set().await;
    // Held Leases go with their namespace.
    stage.cluster.break_by_hand("S1");
    let plane = &stage.cluster.plane;
    let applied = plane.run_kubectl(&["apply", "-f", "-"], ELSEWHERE).await;
    applied.expect("manifests that are accepted");
    let api = &stage.cluster.api;
    let (_, person) = stage
        .hands
        .iter()
        .find(|(who, _)| *who == Who::Person)
        .expect("everybody has one");
    let held = json!({
        "metadata": { "name": "dogwatch-other-0" }, "spec": { "holderIdentity": "node/first" },
    });
    let others = "/apis/coordination.k8s.io/v1/namespaces/not-dogwatchs/leases";
    let made = person.attempt("POST", others, JSON, &held).await;
    compare("a Lease elsewhere", Who::Person, made, Ok(()));

    // A finalizer keeps the Lease, and so its namespace, until the test has checked it.
    let mut kept = held.clone();
    kept["metadata"]["finalizers"] = json!(["dogwatch.dev/test"]);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/elsewhere/leases";
    let lease = format!("{leases}/dogwatch-other-0");
    api.create(leases, &kept).await;
    let delete = async || person.attempt("DELETE", &lease, JSON, &json!({})).await;
    let never = Err("is never deleted");
    compare("deleting", Who::Person, delete().await, never);
    for namespace in ["elsewhere", "not-dogwatchs"] {
        api.delete(&format!("/api/v1/namespaces/{namespace}")).await;
    }
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while let Err(refused) = delete().await {
        assert!(tokio::time::Instant::now() < deadline, "{refused}");
        // The API server updates its own cache of namespaces with a delay.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let free = json!({ "metadata": { "finalizers": null } });
    api.merge(&lease, &free).await;
    let gone = [
        "wait",
        "--for=delete",
        "namespace/elsewhere",
        "--timeout=180s",
    ];
    let gone = plane.run_kubectl(&gone, "").await;
    gone.expect("a namespace that is gone, with its Leases");
}
