//! Tests `dogwatch status schedules` and `dogwatch explain schedule/…`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use dogwatch_kubesim::api::ApiVerb;
use serde_json::{Value, json};

use super::stage::{Stage, ended, in_json, shown};

fn with_schedules() -> Stage {
    let stage = Stage::new();
    let kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    stage.post(kinds, &dogwatch_api::reboot_schedule::schedule_crd());
    stage
}

fn path(namespace: &str, name: &str) -> String {
    format!("/apis/dogwatch.dev/v1alpha1/namespaces/{namespace}/rebootschedules/{name}")
}

/// A schedule for the nodes of a pool, far in the future; `over` is merged over its spec.
fn schedule(stage: &Stage, namespace: &str, name: &str, over: &Value) {
    let schedules = format!("/apis/dogwatch.dev/v1alpha1/namespaces/{namespace}/rebootschedules");
    let spec = json!({ "at": "2099-01-01T03:00:00Z", "reason": "kernel",
        "nodes": { "selector": { "matchLabels": { "pool": "a" } } } });
    let object = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootSchedule",
        "metadata": { "name": name, "namespace": namespace }, "spec": spec });
    stage.post(&schedules, &object);
    stage.merge(&path(namespace, name), &json!({ "spec": over }));
}

fn partly(stage: &Stage, namespace: &str, name: &str) {
    let record = json!({ "at": "2026-01-01T03:00:00Z", "ended": "2026-01-01T03:00:09Z",
        "outcome": "PartlyRequested", "requested": 1, "failed": 1, "message": "1 of 2 were requested",
        "targets": [
            { "kind": "Node", "name": "n9", "result": "Failed", "message": "no Node has this name" },
            { "kind": "Node", "name": "n1", "result": "Requested" },
        ] });
    let status = json!({ "status": { "history": [record] } });
    stage.merge(&format!("{}/status", path(namespace, name)), &status);
}

#[test]
fn status_shows_when_each_schedule_issues_and_who_needs_somebody_first() {
    let stage = with_schedules();
    schedule(&stage, "dogwatch", "a", &json!({}));
    schedule(&stage, "dogwatch", "b", &json!({ "suspend": true }));
    schedule(&stage, "dogwatch", "c", &json!({}));
    partly(&stage, "dogwatch", "c");
    // Only schedules in Dogwatch's own namespace may target nodes.
    schedule(&stage, "shop", "d", &json!({}));
    let text = shown(stage.dogwatch(&["status", "schedules"]));
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][..3], ["NAMESPACE", "SCHEDULE", "STATE"], "{text}");
    assert_eq!(rows[1][..3], ["dogwatch", "c", "WaitingForTime"], "{text}");
    assert_eq!(rows[2][..3], ["shop", "d", "Invalid"], "{text}");
    assert_eq!(
        rows[3][..4],
        ["dogwatch", "a", "WaitingForTime", "in"],
        "{text}"
    );
    assert_eq!(rows[4][..4], ["dogwatch", "b", "Suspended", "-"], "{text}");
    assert!(
        text.contains("PartlyRequested: 1 of 2 were requested"),
        "{text}"
    );
    assert!(
        text.contains("only a schedule in namespace dogwatch"),
        "{text}"
    );

    let (_, text, _) = ended(stage.dogwatch(&["status", "schedules", "-n", "shop"]));
    assert_eq!(text.lines().count(), 2, "{text}");
    let (_, text, _) = ended(stage.dogwatch(&["status", "schedules", "-o", "wide"]));
    assert!(text.contains("Node with pool=a"), "{text}");
    let json = in_json(stage.dogwatch(&["status", "schedules", "-A", "-o", "json"]));
    assert_eq!(json["schedules"][2]["next"], "2099-01-01T03:00:00Z");
    assert_eq!(json["schedules"][0]["needsSomebody"], true);
    assert_eq!(json["nodes"], json!([]));
}

#[test]
fn the_whole_status_has_the_schedules_where_they_can_be_had() {
    let stage = with_schedules();
    stage.node("n1", None, 0);
    schedule(&stage, "dogwatch", "a", &json!({}));
    let text = shown(stage.dogwatch(&["status"]));
    assert!(text.contains("\nNAMESPACE   SCHEDULE "), "{text}");
    stage.deny(ApiVerb::List, "rebootschedules");
    let (code, text, errors) = ended(stage.dogwatch(&["status"]));
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("the schedules cannot be shown"), "{errors}");
    assert!(text.contains("n1"), "{text}");
    let (code, _, errors) = ended(stage.dogwatch(&["status", "schedules"]));
    assert_eq!(code, 5, "{errors}");
}

#[test]
fn a_change_of_a_schedule_is_shown_while_it_is_watched() {
    let stage = with_schedules();
    schedule(&stage, "dogwatch", "a", &json!({}));
    let mut child = stage
        .dogwatch(&["status", "schedules", "--watch"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert!(next().starts_with("NAMESPACE"));
    assert!(next().contains("WaitingForTime"));
    let suspended = json!({ "spec": { "suspend": true } });
    stage.merge(&path("dogwatch", "a"), &suspended);
    let changed = next();
    assert!(changed.contains("Suspended"), "{changed}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn explain_tells_when_it_issues_whom_it_asks_and_what_each_got() {
    let stage = with_schedules();
    schedule(&stage, "dogwatch", "monthly", &json!({}));
    partly(&stage, "dogwatch", "monthly");
    for args in [
        &["explain", "schedule/dogwatch/monthly"][..],
        &["explain", "rbs/monthly", "-n", "dogwatch"],
    ] {
        let text = shown(stage.dogwatch(args));
        assert!(
            text.starts_with("dogwatch/monthly: WaitingForTime: "),
            "{text}"
        );
        for part in [
            "whom        Node with pool=a",
            "when        at 2099-01-01 03:00:00Z (in ",
            "target      Node n9: Failed: no Node has this name",
            "controller  no dogwatch controller leads",
            "→ start the controller: ",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
    let json = ["explain", "schedule/dogwatch/monthly", "-o", "json"];
    let json = in_json(stage.dogwatch(&json));
    assert_eq!(json["schedule"], "dogwatch/monthly");
}

#[test]
fn a_schedule_or_the_kind_that_is_not_there_ends_with_3_and_says_what_to_do() {
    let stage = with_schedules();
    schedule(&stage, "dogwatch", "monthly", &json!({}));
    let (code, _, errors) = ended(stage.dogwatch(&["explain", "schedule/shop/monthly"]));
    assert_eq!(code, 3, "{errors}");
    assert!(
        errors.contains("did you mean dogwatch/monthly?"),
        "{errors}"
    );
    let without = Stage::new();
    for args in [
        &["status", "schedules"][..],
        &["status", "schedules", "--watch"],
        &["explain", "schedule/dogwatch/monthly"],
    ] {
        let (code, _, errors) = ended(without.dogwatch(args));
        assert_eq!(code, 3, "{args:?} {errors}");
        assert!(errors.contains("dogwatch crds |"), "{args:?} {errors}");
    }
}
