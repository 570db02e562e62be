//! Tests the conversion of schedules and their patches.

use std::time::Duration;

use dogwatch_core::condition::{ConditionStatus as Is, DesiredCondition};
use dogwatch_core::schedule::{
    HostRebootMode, RebootRequestPatch, Schedule, ScheduleMark, ScheduleMarks, ScheduleTarget,
    ScheduleTargetKind, ScheduleTiming,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::client::request_patch;
use super::made_reboot::{made_node_reboot, node_reboot_object};
use super::status::status_patch;
use super::{ScheduleObject, convert_schedule};

fn in_namespace(namespace: &str, spec: &Value) -> Schedule {
    let object = json!({
        "metadata": { "namespace": namespace, "name": "monthly", "uid": "u", "resourceVersion": "7",
            "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": spec,
    });
    let object: ScheduleObject = serde_json::from_value(object).unwrap();
    convert_schedule(&object, "dogwatch")
}

fn problems(spec: &Value) -> Vec<String> {
    in_namespace("dogwatch", spec).plan.unwrap_err()
}

#[test]
fn what_is_not_said_has_its_default() {
    let spec = json!({ "at": "2026-12-24T03:00:00Z", "hosts": { "names": ["h1"] } });
    let schedule = in_namespace("metal3", &spec);
    let plan = schedule.plan.unwrap();
    assert_eq!(
        plan.when,
        ScheduleTiming::At("2026-12-24T03:00:00Z".parse().unwrap())
    );
    assert_eq!(plan.starting_deadline, Duration::from_hours(1));
    assert_eq!((plan.suspend, plan.mode), (false, HostRebootMode::Soft));
    assert_eq!(plan.reason, "scheduled reboot");
    assert_eq!(schedule.status.history, []);
}

#[test]
fn everything_that_is_wrong_is_said_at_once_with_its_field() {
    let wrong = problems(&json!({
        "at": "soon", "startingDeadline": "10s",
        "nodes": { "selector": { "matchExpressions": [{ "key": "a", "operator": "In" }] } },
    }));
    for field in ["spec.at:", "spec.startingDeadline:", "spec.nodes.selector:"] {
        assert!(
            wrong.iter().any(|problem| problem.starts_with(field)),
            "{field}: {wrong:?}"
        );
    }
    let nobody = problems(&json!({ "at": "2026-12-24T03:00:00Z" }));
    assert!(
        nobody[0].contains("selects no node and no host"),
        "{nobody:?}"
    );
    let no_start = problems(&json!({ "recurrence": {}, "nodes": {} }));
    assert!(
        no_start[0].starts_with("spec.recurrence.start:"),
        "{no_start:?}"
    );
    for odd in [json!("always"), json!({ "phaseOfMoon": "full" })] {
        assert!(problems(&odd)[0].starts_with("spec:"));
    }
}

#[test]
fn only_dogwatchs_own_namespace_reaches_nodes() {
    let spec = json!({ "at": "2026-12-24T03:00:00Z", "nodes": { "names": ["n1"] } });
    assert!(in_namespace("dogwatch", &spec).plan.is_ok());
    let elsewhere = in_namespace("metal3", &spec).plan.unwrap_err();
    assert!(elsewhere[0].contains("spec.nodes: only a schedule in namespace dogwatch"));
}

#[test]
fn only_a_change_of_the_spec_itself_is_one() {
    let entry = |time: &str, fields: Value, subresource: &str| {
        json!({ "manager": "m", "operation": "Update", "apiVersion": "dogwatch.dev/v1alpha1",
            "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields, "subresource": subresource })
    };
    let spec = json!({ "f:spec": { "f:at": {} } });
    let object = json!({ "metadata": { "name": "x", "namespace": "dogwatch", "managedFields": [
        entry("2026-01-02T00:00:00Z", spec.clone(), ""),
        entry("2026-01-03T00:00:00Z", spec, ""),
        entry("2026-01-04T00:00:00Z", json!({ "f:metadata": { "f:labels": {} } }), ""),
        entry("2026-01-05T00:00:00Z", json!({ "f:status": {} }), "status"),
    ] } });
    let object: ScheduleObject = serde_json::from_value(object).unwrap();
    let changed = convert_schedule(&object, "dogwatch").changed;
    assert_eq!(changed, Some("2026-01-03T00:00:00Z".parse().unwrap()));
}

/// The schedule after the API server has merged the patch.
fn merged(schedule: &Schedule, body: &Value) -> Schedule {
    let mut status = body["status"].clone();
    let fields = status.as_object_mut().unwrap();
    fields.retain(|_, value| !value.is_null());
    let object = json!({ "metadata": { "namespace": schedule.name.namespace,
        "name": schedule.name.name, "uid": "u", "resourceVersion": "8" }, "status": status });
    convert_schedule(&serde_json::from_value(object).unwrap(), "dogwatch")
}

#[test]
fn a_status_reads_back_as_it_was_decided_and_what_is_empty_is_taken_away() {
    use dogwatch_core::schedule::{
        CurrentOccurrence, OccurrenceOutcome, OccurrenceReboots, OccurrenceRecord, RebootFailure,
        ScheduleStatus, SettledReboots, TargetOutcome, TargetResult,
    };
    let at: Timestamp = "2026-12-24T03:00:00.5Z".parse().unwrap();
    let schedule = in_namespace("dogwatch", &json!({}));
    let status = ScheduleStatus {
        observed_generation: Some(3),
        spec_since: Some(at),
        spec_since_generation: Some(3),
        spec_write_seen: Some(at),
        next: Some(at),
        last: Some(at),
        current: Some(CurrentOccurrence { at, begun: at }),
        history: vec![OccurrenceRecord {
            at,
            ended: at,
            outcome: OccurrenceOutcome::PartlyRequested,
            asked: 1,
            noted: 2,
            failed: 3,
            targets: vec![TargetOutcome {
                kind: ScheduleTargetKind::Node,
                name: "n1".into(),
                result: TargetResult::Noted,
                message: "m".into(),
                node_reboot: Some("monthly-1".into()),
            }],
            message: "1 of 6".into(),
            reboots: Some(OccurrenceReboots {
                made: 15,
                open: 1,
                succeeded: 2,
                failed: 3,
                given_up: 4,
                unknown: 5,
                failures: vec![RebootFailure {
                    node: "n1".into(),
                    node_reboot: "monthly-1".into(),
                    reason: "NodeGone".into(),
                    message: "m".into(),
                }],
                ended: Some(at),
                settled: Some(SettledReboots {
                    until: Some(at),
                    succeeded: 6,
                    failed: 7,
                    given_up: 8,
                }),
            }),
        }],
        conditions: Vec::new(),
    };
    let written = status_patch(&schedule, &status, &[], at);
    assert_eq!(merged(&schedule, &written).status, status);
    assert_eq!(
        written["metadata"],
        json!({ "uid": "u", "resourceVersion": "7" })
    );
    let empty = status_patch(&schedule, &ScheduleStatus::default(), &[], at);
    for key in ["nextOccurrence", "current", "history", "conditions"] {
        assert_eq!(empty["status"].get(key), Some(&Value::Null), "{key}");
    }
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let observation = |status| DesiredCondition {
        kind: "Active",
        status,
        reason: "Because".into(),
        message: String::new(),
        heartbeat: false,
        shows_reason: false,
    };
    let (first, later) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(900).unwrap());
    let schedule = in_namespace("dogwatch", &json!({}));
    let written = status_patch(&schedule, &schedule.status, &[observation(Is::True)], first);
    let there = merged(&schedule, &written);
    for (status, since) in [(Is::True, first), (Is::False, later)] {
        let written = status_patch(&there, &there.status, &[observation(status)], later);
        let condition = &merged(&there, &written).status.conditions[0];
        assert_eq!(condition.last_transition, Some(since));
    }
}

#[test]
fn the_request_and_the_mark_are_one_patch_on_what_was_seen() {
    let mark = ScheduleMark {
        by: "dogwatch/monthly".into(),
        at: "2026-12-24T03:00:00Z".parse().unwrap(),
        noted: false,
        node_reboot: None,
    };
    let mut ask = RebootRequestPatch {
        target: ScheduleTarget {
            kind: ScheduleTargetKind::Host,
            name: "h1".into(),
        },
        uid: "hu".into(),
        resource_version: "5".into(),
        marks: ScheduleMarks::from([("u".to_owned(), mark)]),
        request: Some(("reboot.metal3.io", "{\"mode\":\"soft\"}".into())),
    };
    let marks = r#"{"u":{"by":"dogwatch/monthly","at":"2026-12-24T03:00:00Z"}}"#;
    let expected = json!({ "metadata": { "uid": "hu", "resourceVersion": "5", "annotations": {
        "dogwatch.dev/scheduled": marks, "reboot.metal3.io": "{\"mode\":\"soft\"}" } } });
    assert_eq!(request_patch(&ask), expected);
    ask.request = None;
    let noted = request_patch(&ask);
    assert!(
        noted["metadata"]["annotations"]
            .get("reboot.metal3.io")
            .is_none()
    );
}

#[test]
fn a_node_reboot_reads_back_as_it_was_drafted_and_its_end_is_what_its_status_says() {
    use dogwatch_core::schedule::{MadeNodeReboot, MadeRebootEnd, NodeRebootDraft};
    let at: Timestamp = "2026-12-24T03:00:00Z".parse().unwrap();
    let draft = NodeRebootDraft {
        name: "monthly-1".into(),
        target: ScheduleTarget {
            kind: ScheduleTargetKind::Node,
            name: "n1".into(),
        },
        node_uid: "nu".into(),
        schedule_uid: "u".into(),
        at,
        reason: "kernel".into(),
        requester: "rebootschedule/dogwatch/monthly".into(),
        ttl: Duration::from_hours(25),
    };
    let sent = serde_json::to_value(node_reboot_object(&draft)).unwrap();
    assert_eq!(
        (&sent["apiVersion"], &sent["kind"]),
        (&json!("dogwatch.dev/v1alpha1"), &json!("NodeReboot"))
    );
    let mut object: crate::node_reboot::NodeRebootObject = serde_json::from_value(sent).unwrap();
    assert_eq!(
        object.spec,
        json!({ "nodeName": "n1", "nodeUID": "nu", "method": "Reboot", "reason": "kernel",
            "requester": "rebootschedule/dogwatch/monthly", "ttlAfterFinished": "25h" })
    );
    let labels = object.metadata.labels.clone().unwrap();
    assert_eq!(labels["dogwatch.dev/schedule-uid"], "u");
    // A namespaced owner would have it deleted: NodeReboots are cluster-scoped.
    assert_eq!(object.metadata.owner_references, None);
    let mut made = MadeNodeReboot {
        name: "monthly-1".into(),
        node: "n1".into(),
        node_uid: Some("nu".into()),
        at: Some(at),
        end: None,
    };
    assert_eq!(made_node_reboot(&object), made);
    let condition = |status: &str| {
        json!({ "phase": "Finished", "conditions": [{ "type": "Succeeded", "status": status,
            "reason": "Aborted", "message": "m", "lastTransitionTime": at.to_string() }] })
    };
    object.status = condition("Unknown");
    assert_eq!(made_node_reboot(&object), made);
    object.status = condition("False");
    made.end = Some(MadeRebootEnd {
        is_success: false,
        reason: "Aborted".into(),
        message: "m".into(),
        at,
    });
    assert_eq!(made_node_reboot(&object), made);
}

#[test]
fn a_missing_kind_or_right_makes_node_reboots_unavailable_and_a_refusal_of_a_webhook_does_not() {
    use super::made_reboot::find_unavailable_cause;
    use crate::error::Error;
    let cause = |code: u16, message: &str| {
        let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "code": code, "reason": "", "message": message });
        let error = Error::Answer(serde_json::from_value(status).unwrap());
        find_unavailable_cause(&error, "create")
    };
    let denied = "nodereboots.dogwatch.dev is forbidden: User \"c\" cannot create resource \
                  \"nodereboots\" in API group \"dogwatch.dev\" at the cluster scope";
    assert!(cause(403, denied).unwrap().contains("no right to create"));
    assert!(cause(404, "not found").unwrap().contains("not installed"));
    let webhook = "admission webhook \"w\" denied the request: not now";
    for (code, message) in [(403, webhook), (401, "Unauthorized"), (500, denied)] {
        assert_eq!(cause(code, message), None, "{code} {message}");
    }
}
