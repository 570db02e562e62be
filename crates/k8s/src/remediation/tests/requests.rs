//! Tests requests and their status.

use std::time::Duration;

use dogwatch_core::condition::{ConditionStatus, ConditionWrite, DesiredCondition};
use dogwatch_core::power::HostName;
use dogwatch_core::remediation::{
    MachineApi, PowerRequest, ProofNote, RemediationAttempt, RemediationStep, RequestStatus,
    StepStamp, StrategyType,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::object;
use crate::remediation::request::parse_request;
use crate::remediation::status::{dropped_fields, status_patch};

fn seen(metadata: &Value, spec: &Value, status: &Value) -> PowerRequest {
    let mut whole = json!({ "name": "r", "namespace": "ns", "uid": "u", "resourceVersion": "7",
        "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z" });
    let more = metadata.as_object().into_iter().flatten();
    for (key, value) in more {
        whole[key] = value.clone();
    }
    parse_request(&object(
        json!({ "metadata": whole, "spec": spec, "status": status }),
    ))
}

fn plain() -> PowerRequest {
    seen(&json!({}), &json!({}), &json!(null))
}

#[test]
fn a_request_that_says_nothing_means_what_the_book_says() {
    for spec in [json!({}), json!(null), json!({ "strategy": {} })] {
        let request = seen(&json!({}), &spec, &json!(null));
        let strategy = request.strategy.unwrap();
        assert_eq!(strategy.kind, StrategyType::DeleteNode);
        assert_eq!(strategy.retry_limit, 1);
        assert_eq!(strategy.timeout, Duration::from_mins(10));
        assert_eq!(request.status, RequestStatus::default());
        assert_eq!(request.generation, 3);
        assert!(!request.has_finalizer && !request.timed_out && !request.deleting);
    }
}

#[test]
fn what_cannot_be_understood_of_a_request_is_named_and_nothing_is_begun() {
    let status = json!({ "attempt": { "number": "one" } });
    for (spec, status, field) in [
        (
            json!({ "strategy": { "type": "Reboot" } }),
            json!(null),
            "spec",
        ),
        (
            json!({ "strategy": { "retries": 1 } }),
            json!(null),
            "retries",
        ),
        (
            json!({ "strategy": { "retryLimit": 11 } }),
            json!(null),
            "spec.strategy.retryLimit",
        ),
        (
            json!({ "strategy": { "timeout": "59s" } }),
            json!(null),
            "spec.strategy.timeout",
        ),
        (
            json!({ "strategy": { "timeout": "soon" } }),
            json!(null),
            "spec.strategy.timeout",
        ),
        (json!({}), status, "status"),
    ] {
        let problem = seen(&json!({}), &spec, &status).strategy.unwrap_err();
        assert!(problem.contains(field), "{problem}");
    }
}

#[test]
fn whom_it_is_for_is_read_from_what_each_health_check_writes() {
    let metadata = json!({
        "annotations": { "remediation.medik8s.io/node-name": "n",
            "remediation.medik8s.io/nhc-timed-out": "2026-01-01T00:00:00Z" },
        "finalizers": ["other", "dogwatch.dev/power-remediation"],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    });
    let request = seen(&metadata, &json!({}), &json!(null));
    assert_eq!(request.node_name.as_deref(), Some("n"));
    assert!(request.timed_out && request.has_finalizer && request.deleting);
    let owner = |version: &str, kind: &str| json!({ "apiVersion": version, "kind": kind, "name": "m", "uid": "mu" });
    for (owner, api) in [
        (
            owner("cluster.x-k8s.io/v1beta2", "Machine"),
            Some(MachineApi::ClusterApi),
        ),
        (
            owner("cluster.x-k8s.io/v1beta1", "Machine"),
            Some(MachineApi::ClusterApi),
        ),
        (
            owner("machine.openshift.io/v1beta1", "Machine"),
            Some(MachineApi::OpenShift),
        ),
        (
            owner("remediation.medik8s.io/v1alpha1", "NodeHealthCheck"),
            None,
        ),
        (owner("cluster.x-k8s.io/v1beta2", "MachineSet"), None),
        (owner("example.com/v1", "Machine"), None),
        (owner("v1", "Machine"), None),
    ] {
        let other = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "cu" });
        let metadata = json!({ "ownerReferences": [other, owner] });
        let request = seen(&metadata, &json!({}), &json!(null));
        assert_eq!(request.machine.as_ref().map(|it| it.api), api, "{owner}");
        let uid = api.map(|_| "mu".to_owned());
        assert_eq!(request.machine_uid, uid);
    }
}

fn at(nanoseconds: i128) -> Timestamp {
    Timestamp::from_nanosecond(1_790_000_000_000_000_000 + nanoseconds).unwrap()
}

/// Times have the resolution of the API.
fn full() -> RequestStatus {
    RequestStatus {
        observed_generation: Some(3),
        started_at: Some(at(1000)),
        ended_at: Some(at(2000)),
        attempt: Some(RemediationAttempt {
            number: 2,
            started_at: at(3000),
            key_at: Some(at(4000)),
            off_at: Some(at(5000)),
            released_at: Some(at(6000)),
            key_removed_at: Some(at(7000)),
        }),
        host: Some((HostName::new("site", "h"), "hu".into())),
        node: Some("n".into()),
        node_uid: Some("nu".into()),
        boot_id: Some("b".into()),
        tainted_at: Some(at(10_000)),
        proof: Some(ProofNote {
            source: "Person".into(),
            confirmed_at: at(8000),
            by: Some("ann".into()),
            reason: Some("pulled".into()),
        }),
        timeline: vec![StepStamp {
            step: RemediationStep::Requested,
            at: at(9000),
        }],
        conditions: Vec::new(),
    }
}

fn write(kind: &'static str) -> ConditionWrite {
    ConditionWrite {
        observation: DesiredCondition {
            kind,
            status: ConditionStatus::True,
            reason: "R".into(),
            message: "m".into(),
            heartbeat: false,
            shows_reason: false,
        },
        last_transition: at(0),
    }
}

#[test]
fn a_status_that_is_written_is_read_back() {
    let request = plain();
    let writes = [write("Processing")];
    let body = status_patch(&request, &full(), &writes);
    assert_eq!(
        body["metadata"],
        json!({ "uid": "u", "resourceVersion": "7" })
    );
    let back = seen(&json!({}), &json!({}), &body["status"]).status;
    assert_eq!(
        dropped_fields(&back, &full(), &writes),
        <[&str; 0]>::default()
    );
    assert_eq!(
        RequestStatus {
            conditions: Vec::new(),
            ..back.clone()
        },
        full()
    );
    assert_eq!(back.conditions[0].kind, "Processing");
}

#[test]
fn a_time_finer_than_a_microsecond_is_no_field_that_was_dropped() {
    let status = RequestStatus {
        started_at: Some(at(1234)),
        ..full()
    };
    let body = status_patch(&plain(), &status, &[]);
    let back = seen(&json!({}), &json!({}), &body["status"]).status;
    assert_eq!(dropped_fields(&back, &status, &[]), <[&str; 0]>::default());
}

/// The optional parts of a status.
const PARTS: [&str; 8] = [
    "startedAt",
    "endedAt",
    "attempt",
    "host",
    "node",
    "taintedAt",
    "offProof",
    "timeline",
];

#[test]
fn what_is_not_there_any_more_is_named_so_that_it_goes() {
    let body = status_patch(&plain(), &RequestStatus::default(), &[]);
    for field in PARTS {
        assert_eq!(body["status"].get(field), Some(&Value::Null), "{field}");
    }
    let status = RequestStatus {
        attempt: Some(RemediationAttempt {
            number: 2,
            started_at: at(0),
            key_at: None,
            off_at: None,
            released_at: None,
            key_removed_at: None,
        }),
        node: Some("n".into()),
        ..RequestStatus::default()
    };
    let body = status_patch(&plain(), &status, &[]);
    for field in ["keyAt", "offConfirmedAt", "releasedAt", "keyRemovedAt"] {
        let attempt = &body["status"]["attempt"];
        assert_eq!(attempt.get(field), Some(&Value::Null), "{field}");
    }
    assert_eq!(body["status"]["node"].get("bootID"), Some(&Value::Null));
}

#[test]
fn each_part_that_the_answer_lacks_is_named() {
    let none = RequestStatus::default();
    let named = dropped_fields(&none, &full(), &[write("Succeeded")]);
    assert_eq!(named, [&PARTS[..], &["conditions"]].concat());
}

#[test]
fn conditions_that_are_not_written_stay() {
    let there = json!({ "conditions": [
        { "type": "Theirs", "status": "False", "reason": "X", "message": "y",
            "lastTransitionTime": "2026-01-01T00:00:00Z" },
        { "type": "Processing", "status": "False", "reason": "X", "message": "y",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    let request = seen(&json!({}), &json!({}), &there);
    let body = status_patch(&request, &request.status, &[write("Processing")]);
    let conditions = body["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 2);
    assert_eq!(
        (&conditions[0]["type"], &conditions[0]["status"]),
        (&json!("Theirs"), &json!("False"))
    );
    assert_eq!(
        (&conditions[1]["type"], &conditions[1]["status"]),
        (&json!("Processing"), &json!("True"))
    );
}
