//! The cases of NodeReboots on a real API server, with exactly the rights that are shipped and all
//! admission policies active; and tests of the kind's definition.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod heal_rights;
#[allow(dead_code, reason = "each test binary uses its part")]
mod node_reboot_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::time::{Duration, Instant};

use dogwatch_runtime::clock::ProcessClock;
use dogwatch_testbed::{UsedRights, rights_in_manifests, shared_control_plane};
use serde_json::{Value, json};

use node_reboot_cases as cases;
use node_reboot_cases::world::World;
use support::real::{ALONE, ROLES, alone_on_real, asked_by_controller, client};

cases::every_case!(alone_on_real);

async fn world() -> World {
    let mut world = World::on(client().await, ProcessClock::system_clock()).await;
    world.leading = heal_rights::controller(&world.home).await;
    world
}

/// Checks that nothing was refused in this case and, after the last case, that every right was
/// used. `power_on_real.rs` does so for the rights of power cycles.
async fn after(world: &World) {
    static USED: UsedRights = UsedRights::none();
    let shipped = rights_in_manifests(&[ROLES], |why| {
        why.contains("NodeReboots") && !why.contains("in a power cycle")
    });
    assert!(shipped.len() > 7, "{shipped:?}");
    USED.record_test(&asked_by_controller(&world.home).await, CASES, &shipped);
}

/// Source: specification §10.1 and the numbers of its issue; the reach is 100 ms on an idle machine.
#[tokio::test]
async fn a_request_reaches_its_node_within_the_time_that_is_promised() {
    let _alone = ALONE.lock().await;
    let world = world().await;
    world.make_node("n1").await;
    let _leader = world.leader();
    world.ask("first", json!({})).await;
    world.until_asked().await;
    world.cancel("first").await;
    world.until_succeeded("first", "False Cancelled").await;
    #[expect(clippy::disallowed_methods, reason = "the time on a real server")]
    let begun = Instant::now();
    world.ask("a", json!({})).await;
    while world.request().await.is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = begun.elapsed();
    println!("from the NodeReboot to the request on its Node: {took:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    world.end().await;
}

/// A spec, the field of the refusal, and a part of its message.
const REFUSED: &[(&str, &str, &str)] = &[
    ("{}", "spec.nodeName", "Required"),
    (r#"{"nodeName": "N 1"}"#, "spec.nodeName", "write a name"),
    (
        r#"{"nodeName": "n1", "method": "Restart"}"#,
        "spec.method",
        "supported values",
    ),
    (
        r#"{"nodeName": "n1", "notBefore": "2026-12-24T03:00:00Z", "deadline": "2026-12-24T02:00:00Z"}"#,
        "spec.deadline",
        "later than notBefore",
    ),
    (
        r#"{"nodeName": "n1", "escalation": ["Reboot"]}"#,
        "spec.escalation",
        "write success as well",
    ),
    (
        r#"{"nodeName": "n1", "escalation": ["Reboot", "Reboot", "Reboot"],
            "success": {"conditions": [{"type": "A", "status": "True"}]}}"#,
        "spec.escalation",
        "at most 2",
    ),
    (
        r#"{"nodeName": "n1", "success": {"conditions": []}}"#,
        "spec.success.conditions",
        "at least 1",
    ),
    (
        r#"{"nodeName": "n1", "success": {"conditions": [{"type": "A", "status": "Maybe"}]}}"#,
        "spec.success.conditions[0].status",
        "supported values",
    ),
    (
        r#"{"nodeName": "n1", "method": "Hold", "success": {"conditions": [{"type": "A", "status": "True"}]}}"#,
        "spec.success",
        "leave out success",
    ),
    (
        r#"{"nodeName": "n1", "ttlAfterFinished": "soon"}"#,
        "spec.ttlAfterFinished",
        "write a duration",
    ),
    (
        r#"{"nodeName": "n1", "newRule": 1}"#,
        "spec.newRule",
        "unknown field",
    ),
];

/// A change of an object, the field of the refusal, and a part of its message.
const REFUSED_CHANGES: &[(&str, &str)] = &[
    (r#"{"nodeName": "n2"}"#, "nodeName"),
    (r#"{"method": "Hold"}"#, "method"),
    (r#"{"reason": "other"}"#, "reason"),
    (r#"{"requester": "bob"}"#, "requester"),
    (r#"{"deadline": "2027-12-24T02:00:00Z"}"#, "deadline"),
    (r#"{"ttlAfterFinished": "1h"}"#, "ttlAfterFinished"),
];

#[tokio::test]
async fn bad_input_is_refused_with_the_field_named_and_only_cancel_can_change() {
    let _alone = ALONE.lock().await;
    let world = World::on(client().await, ProcessClock::system_clock()).await;
    let path = "/apis/dogwatch.dev/v1alpha1/nodereboots";
    let admit = async |spec: &str| {
        let spec: Value = serde_json::from_str(spec).unwrap();
        let object = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "NodeReboot",
            "metadata": { "name": "x" }, "spec": spec });
        let request = http::Request::post(format!("{path}?dryRun=All&fieldValidation=Strict"))
            .header("content-type", "application/json")
            .body(object.to_string().into_bytes())
            .unwrap();
        world.client.request::<Value>(request).await
    };
    for (spec, field, says) in REFUSED {
        let Err(kube::Error::Api(status)) = admit(spec).await else {
            panic!("taken: {spec}");
        };
        let said = &status.message;
        assert!(
            said.contains(field) && said.contains(says),
            "{spec}: {said}"
        );
    }
    world.ask("x", json!({ "reason": "kernel" })).await;
    let change = async |spec: &str| {
        let body = format!(r#"{{"spec": {spec}}}"#);
        let request = http::Request::patch(format!("{path}/{}", world.full_name("x")))
            .header("content-type", "application/merge-patch+json")
            .body(body.into_bytes())
            .unwrap();
        world.client.request::<Value>(request).await
    };
    for (spec, field) in REFUSED_CHANGES {
        let Err(kube::Error::Api(status)) = change(spec).await else {
            panic!("taken: {spec}");
        };
        let said = &status.message;
        assert!(
            said.contains(field) && said.contains("cannot be changed"),
            "{spec}: {said}"
        );
    }
    change(r#"{"cancel": true}"#).await.unwrap();
    let Err(kube::Error::Api(status)) = change(r#"{"cancel": false}"#).await else {
        panic!("a cancel was taken back");
    };
    assert!(status.message.contains("cannot be taken back"));
    world.end().await;
}

#[tokio::test]
async fn kubectl_shows_the_node_the_phase_and_the_result_and_can_wait_for_it() {
    let _alone = ALONE.lock().await;
    let world = world().await;
    let _leader = world.leader();
    world.ask("a", json!({ "reason": "kernel" })).await;
    let name = format!("nodereboot/{}", world.full_name("a"));
    let plane = shared_control_plane().await;
    let wait = [
        "wait",
        "--for=condition=Succeeded=false",
        &name,
        "--timeout=30s",
    ];
    plane.run_kubectl(&wait, "").await.unwrap();
    let table = plane
        .run_kubectl(&["get", "nr", "-o", "wide"], "")
        .await
        .unwrap();
    for word in [
        "NODE",
        "METHOD",
        "PHASE",
        "SUCCEEDED",
        "Reboot",
        "Finished",
        "False",
        "NodeNotFound",
    ] {
        assert!(table.contains(word), "{word}: {table}");
    }
    world.end().await;
}
