//! Objects in, patches out.

use std::time::Duration;

use dogwatch_api::node_reboot::{NodeRebootPhase, RebootMethod};
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::NodeRequestPatch;
use dogwatch_core::reboot::{NodeRebootRef, RebootRequest};
use serde_json::{Value, json};

use super::client::{finalizer_patch, request_patch};
use super::status::{parse_status, status_patch};
use super::*;

#[expect(clippy::needless_pass_by_value, reason = "callers pass json! values")]
fn object(spec: Value, status: Value) -> NodeRebootObject {
    serde_json::from_value(json!({
        "metadata": {
            "name": "a", "uid": "u1", "resourceVersion": "7", "generation": 2,
            "creationTimestamp": "2026-12-24T02:00:00Z",
            "finalizers": ["example.com/other", "dogwatch.dev/node-reboot"],
        },
        "spec": spec,
        "status": status,
    }))
    .unwrap()
}

#[test]
fn absent_fields_have_the_defaults_of_the_schema() {
    let own = convert_node_reboot(&object(json!({ "nodeName": "n1" }), Value::Null));
    let plan = own.plan.unwrap();
    assert_eq!(plan.method, RebootMethod::Reboot);
    assert_eq!(plan.ttl, Duration::from_hours(24));
    assert_eq!(own.status.phase, NodeRebootPhase::Pending);
    let spec = json!({ "nodeName": "n1", "success": { "conditions": [] } });
    let plan = convert_node_reboot(&object(spec, Value::Null))
        .plan
        .unwrap();
    assert_eq!(plan.success.unwrap().within, Duration::from_mins(10));
}

#[test]
fn what_cannot_be_understood_names_its_field() {
    for (spec, field) in [
        (json!({ "nodeName": "n1", "newRule": 1 }), "newRule"),
        (json!({ "nodeName": "N 1" }), "spec.nodeName"),
        (
            json!({ "nodeName": "n1", "ttlAfterFinished": "soon" }),
            "spec.ttlAfterFinished",
        ),
        (
            json!({ "nodeName": "n1", "success": { "within": "soon" } }),
            "spec.success.within",
        ),
    ] {
        let problems = convert_node_reboot(&object(spec, Value::Null)).plan;
        let problems = problems.unwrap_err().join("; ");
        assert!(problems.contains(field), "{problems}");
    }
}

#[test]
fn a_status_of_another_version_does_not_count_as_empty() {
    let status = json!({ "phase": "Meditating" });
    let own = convert_node_reboot(&object(json!({ "nodeName": "n1" }), status));
    assert!(own.status_problem.is_some());
}

#[test]
fn a_status_reads_back_as_it_was_written() {
    let status = json!({
        "observedGeneration": 2, "phase": "Draining", "message": "drains", "nodeUID": "u2",
        "attempts": [{ "method": "Reboot", "startedAt": "2026-12-24T02:00:00Z", "bootIDBefore": "b" }],
    });
    let own = convert_node_reboot(&object(json!({ "nodeName": "n1" }), status));
    let now = "2026-12-24T02:00:00Z".parse().unwrap();
    let patch = status_patch(&own, &own.status, &[], now);
    assert_eq!(
        patch["metadata"],
        json!({ "uid": "u1", "resourceVersion": "7" })
    );
    assert_eq!(patch["status"]["conditions"], Value::Null);
    let mut written = patch["status"].clone();
    written.as_object_mut().unwrap().remove("conditions");
    assert_eq!(parse_status(&written), Ok(own.status));
}

#[test]
fn the_finalizers_of_others_stay() {
    let own = convert_node_reboot(&object(json!({ "nodeName": "n1" }), Value::Null));
    assert!(own.has_finalizer);
    let removed = finalizer_patch(&own, false);
    assert_eq!(
        removed["metadata"]["finalizers"],
        json!(["example.com/other"])
    );
    let added = finalizer_patch(&own, true);
    assert_eq!(
        added["metadata"]["finalizers"],
        json!(["example.com/other", "dogwatch.dev/node-reboot"])
    );
}

#[test]
fn a_request_is_one_annotation_with_preconditions() {
    let request = RebootRequest {
        reason: "kernel".into(),
        requester: "ann".into(),
        node_reboots: vec![NodeRebootRef {
            name: "a".into(),
            uid: "u1".into(),
        }],
        ..RebootRequest::default()
    };
    let mut patch = NodeRequestPatch {
        node: NodeName::new("n1").unwrap(),
        uid: "u2".into(),
        resource_version: "9".into(),
        request: Some(request),
    };
    let text = r#"{"reason":"kernel","requester":"ann","nodeReboots":[{"name":"a","uid":"u1"}]}"#;
    let key = "dogwatch.dev/reboot-requested";
    let body = request_patch(&patch);
    assert_eq!(body["metadata"]["annotations"][key], text);
    assert_eq!(body["metadata"]["uid"], "u2");
    assert_eq!(body["metadata"]["resourceVersion"], "9");
    patch.request = None;
    let body = request_patch(&patch);
    assert_eq!(body["metadata"]["annotations"], json!({ key: null }));
}
