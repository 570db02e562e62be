//! Tests `dogwatch hold` and `dogwatch release`, with and without the kind NodeReboot.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::node_reboots::tell;
use super::reboot::followed;
use super::stage::{Stage, ended};
use super::{NODE_REBOOTS, rebooting_cluster, with_node_reboots};

const HOLD: [&str; 6] = ["hold", "n3", "--reason", "new memory", "--requester", "ann"];

fn node(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

fn holds(stage: &Stage) -> Vec<Value> {
    let list = stage.get(NODE_REBOOTS);
    list["items"].as_array().unwrap().clone()
}

fn request(stage: &Stage, name: &str) -> Value {
    stage.get(&node(name))["metadata"]["annotations"]["dogwatch.dev/reboot-requested"].clone()
}

/// Writes what a coordinator writes in this phase of a hold.
fn begin(stage: &Stage, name: &str, phase: &str) {
    let record = json!({
        "phase": phase, "run": "coordinator/x", "since": "1970-01-01T00:00:20Z",
        "planned": "1970-01-01T00:00:20Z", "bootId": "boot-1", "cordonedByUs": true,
        "trigger": { "source": "request", "reason": "new memory", "requester": "ann", "method": "Hold" },
    });
    let annotations = json!({ "dogwatch.dev/reboot": record.to_string() });
    let cordoned =
        json!({ "metadata": { "annotations": annotations }, "spec": { "unschedulable": true } });
    stage.merge(&node(name), &cordoned);
}

#[test]
fn without_the_kind_a_hold_is_an_annotation_and_a_release_removes_it() {
    let stage = rebooting_cluster();
    let (code, text, _) = ended(stage.dogwatch(&HOLD));
    assert_eq!(
        (code, text.as_str()),
        (0, "node/n3 was requested to be held\n")
    );
    assert_eq!(
        stage.request("n3"),
        json!({ "reason": "new memory", "requester": "ann", "method": "Hold" })
    );
    let (code, text, _) = ended(stage.dogwatch(&HOLD));
    assert!(code == 0 && text.contains("already"), "{text}");
    for more in [&[][..], &["--replace"]] {
        let reboot = [&["reboot", "n3", "--reason", "a new kernel"][..], more].concat();
        let (code, _, errors) = ended(stage.dogwatch(&reboot));
        assert!(
            code == 1
                && errors.contains("somebody holds node n3")
                && errors.contains("dogwatch release n3"),
            "{errors}"
        );
        assert_eq!(stage.request("n3")["method"], "Hold");
    }
    let (code, text, _) = ended(stage.dogwatch(&["release", "node/n3"]));
    assert_eq!((code, text.as_str()), (0, "node/n3 is released\n"));
    assert_eq!(request(&stage, "n3"), Value::Null);
    let (code, _, errors) = ended(stage.dogwatch(&["release", "n3"]));
    assert!(
        code == 1 && errors.contains("nobody holds node n3"),
        "{errors}"
    );
}

#[test]
fn a_release_leaves_requests_for_a_reboot_and_those_of_node_reboots() {
    let stage = rebooting_cluster();
    ended(stage.dogwatch(&["reboot", "n3", "--reason", "kernel"]));
    let (code, _, errors) = ended(stage.dogwatch(&["release", "n3"]));
    assert!(code == 1 && errors.contains("nobody holds"), "{errors}");
    let (code, _, errors) = ended(stage.dogwatch(&HOLD));
    assert!(
        code == 1 && errors.contains("already has another request"),
        "{errors}"
    );
    let carried = json!({ "method": "Hold", "nodeReboots": [{ "name": "nr-1", "uid": "u" }] });
    let annotations = json!({ "dogwatch.dev/reboot-requested": carried.to_string() });
    stage.merge(
        &node("n3"),
        &json!({ "metadata": { "annotations": annotations } }),
    );
    let (code, text, _) = ended(stage.dogwatch(&["release", "n3"]));
    assert!(
        code == 0 && text.contains("by the controller: nr-1"),
        "{text}"
    );
    assert_eq!(request(&stage, "n3"), carried.to_string());
}

#[test]
fn with_the_kind_a_hold_is_a_node_reboot_and_a_release_deletes_it() {
    let stage = with_node_reboots();
    let (code, text, errors) = ended(stage.dogwatch(&HOLD));
    assert_eq!(code, 0, "{errors}");
    let made = holds(&stage).pop().unwrap();
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(
        name.starts_with("hold-n3-") && text.contains(name),
        "{text}"
    );
    let uid = stage.get(&node("n3"))["metadata"]["uid"].clone();
    let spec = json!({ "nodeName": "n3", "nodeUID": uid, "method": "Hold",
        "reason": "new memory", "requester": "ann", "ttlAfterFinished": "24h" });
    assert_eq!(made["spec"], spec, "the last field is the schema's default");
    assert_eq!(request(&stage, "n3"), Value::Null);
    let (code, text, _) = ended(stage.dogwatch(&HOLD));
    assert!(code == 0 && text.contains("already"), "{text}");
    let (code, text, _) = ended(stage.dogwatch(&["release", "n3"]));
    assert!(code == 0 && text.contains(name), "{text}");
    assert!(holds(&stage).is_empty());
}

/// A hold of n3 by ann, with these fields beside or instead. Returns its UID.
fn post_hold(stage: &Stage, name: &str, fields: &Value) -> Value {
    let mut spec = json!({ "nodeName": "n3", "method": "Hold", "reason": "new memory",
        "requester": "ann" });
    for (field, value) in fields.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let object = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "NodeReboot",
        "metadata": { "name": name }, "spec": spec });
    stage.post(NODE_REBOOTS, &object);
    stage.get(&format!("{NODE_REBOOTS}/{name}"))["metadata"]["uid"].clone()
}

#[test]
fn a_hold_of_somebody_else_or_for_another_time_is_not_taken_for_the_askers() {
    let stage = with_node_reboots();
    for (name, fields) in [
        ("bobs", json!({ "requester": "bob" })),
        ("other-work", json!({ "reason": "disk" })),
        ("later", json!({ "notBefore": "2999-01-01T00:00:00Z" })),
        ("with-an-end", json!({ "deadline": "2999-01-01T00:00:00Z" })),
        (
            "node-before",
            json!({ "nodeUID": "of-a-node-that-is-gone" }),
        ),
    ] {
        post_hold(&stage, name, &fields);
    }
    let (code, text, errors) = ended(stage.dogwatch(&HOLD));
    assert!(
        code == 0 && !text.contains("already"),
        "{code} {text} {errors}"
    );
    assert_eq!(holds(&stage).len(), 6);
    let (code, _, errors) = ended(stage.dogwatch(&["release", "n3"]));
    assert!(
        code == 1 && errors.contains("nodereboot/bobs by bob"),
        "{errors}"
    );
}

#[test]
fn a_hold_that_was_ended_on_the_node_is_not_reused() {
    let stage = with_node_reboots();
    let uid = post_hold(&stage, "old", &json!({}));
    tell(&stage, "old", "Held", "Unknown", "NodeHeld");
    let last = json!({
        "outcome": "Released", "planned": "1970-01-01T00:00:20Z",
        "finished": "1970-01-01T00:09:00Z", "oldBootId": "boot-1", "newBootId": "boot-1",
        "trigger": { "source": "request", "nodeReboots": [{ "name": "old", "uid": uid }] },
    });
    let annotations = json!({ "dogwatch.dev/last-reboot": last.to_string() });
    stage.merge(
        &node("n3"),
        &json!({ "metadata": { "annotations": annotations } }),
    );
    let (code, text, _) = ended(stage.dogwatch(&HOLD));
    assert!(code == 0 && !text.contains("already"), "{text}");
    assert_eq!(holds(&stage).len(), 2);
}

#[test]
fn several_holds_are_released_only_on_a_clear_word_and_other_nodes_stay_held() {
    let stage = with_node_reboots();
    for (name, node) in [("a", "n3"), ("b", "n3"), ("c", "n1")] {
        let spec = json!({ "nodeName": node, "method": "Hold", "requester": name });
        let object = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "NodeReboot",
            "metadata": { "name": name }, "spec": spec });
        stage.post(NODE_REBOOTS, &object);
    }
    let (code, _, errors) = ended(stage.dogwatch(&["release", "n3"]));
    assert!(
        code == 1 && errors.contains("nodereboot/a by a, nodereboot/b by b"),
        "{errors}"
    );
    assert_eq!(holds(&stage).len(), 3);
    let (code, _, errors) = ended(stage.dogwatch(&["release", "n3", "--all"]));
    assert_eq!(code, 0, "{errors}");
    let left = holds(&stage);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["metadata"]["name"], "c");
}

#[test]
fn a_wait_ends_when_the_node_is_held_and_when_it_is_back() {
    let stage = rebooting_cluster();
    let follow = |args: &[&str]| {
        let mut child = stage.dogwatch(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let until = move |part: &str| while !lines.next().unwrap().unwrap().contains(part) {};
        (child, until)
    };
    let (mut child, mut until) = follow(&["hold", "n3", "--wait"]);
    until("was requested to be held");
    begin(&stage, "n3", "holding");
    until("node/n3 is held");
    assert!(child.wait().unwrap().success());
    let (mut child, mut until) = follow(&["release", "n3", "--wait"]);
    until("is released");
    let back = json!({ "metadata": { "annotations": { "dogwatch.dev/reboot": null } },
        "spec": { "unschedulable": null } });
    stage.merge(&node("n3"), &back);
    until("node/n3 is back");
    assert!(child.wait().unwrap().success());
}

fn only_hold(stage: &Stage) -> String {
    let made = holds(stage).pop().unwrap();
    made["metadata"]["name"].as_str().unwrap().to_owned()
}

/// The end of what was there before is not the end of the hold.
#[test]
fn a_wait_outlasts_the_reboot_that_was_under_way() {
    let stage = with_node_reboots();
    stage.node("n4", Some("returning"), 20);
    let wait = ["hold", "n4", "--wait", "--timeout", "3s"];
    let (child, mut until) = followed(&stage, &wait);
    until("node/n4 was requested to be held");
    until("the node is in phase returning");
    tell(
        &stage,
        &only_hold(&stage),
        "Pending",
        "Unknown",
        "RebootUnderWay",
    );
    until("node/n4 returning: AwaitingReboot");
    let back = json!({ "metadata": { "annotations": { "dogwatch.dev/reboot": null } },
        "spec": { "unschedulable": null } });
    stage.merge(&node("n4"), &back);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("node n4 is not held within 3s; the request stays"),
        "{errors}"
    );
}

#[test]
fn a_wait_is_for_its_own_hold() {
    let stage = with_node_reboots();
    begin(&stage, "n3", "holding");
    let status = json!({ "status": { "conditions": [
        { "type": "Ready", "status": "True" },
        { "type": "MaintenanceInProgress", "status": "True", "reason": "Held",
          "message": "held for ann" },
    ] } });
    stage.merge(&format!("{}/status", node("n3")), &status);
    let (child, mut until) = followed(&stage, &["hold", "n3", "--wait", "--requester", "bob"]);
    until("the node is in phase holding for ann");
    let name = only_hold(&stage);
    tell(&stage, &name, "Pending", "Unknown", "RebootUnderWay");
    until("node/n3 holding: Held");
    tell(&stage, &name, "Held", "Unknown", "NodeHeld");
    until("node/n3 is held");
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn a_wait_fails_when_its_hold_is_refused_or_deleted() {
    for is_refused in [true, false] {
        let stage = with_node_reboots();
        let (child, mut until) = followed(&stage, &["hold", "n3", "--wait"]);
        until("was requested to be held");
        let name = only_hold(&stage);
        let end = if is_refused {
            tell(&stage, &name, "Finished", "False", "OtherNodeUid");
            format!("nodereboot/{name} has ended: OtherNodeUid: as told")
        } else {
            stage.delete(&format!("{NODE_REBOOTS}/{name}"));
            format!("nodereboot/{name} was deleted")
        };
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(1)
                && errors.contains(&format!("node n3 is not held: {end}")),
            "{errors}"
        );
    }
}

#[test]
fn a_hold_of_no_node_is_refused_and_a_wait_has_an_end() {
    for stage in [rebooting_cluster(), with_node_reboots()] {
        let (code, _, errors) = ended(stage.dogwatch(&["hold", "nobody"]));
        assert!(code == 3 && errors.contains("nobody"), "{code} {errors}");
        let (code, _, errors) =
            ended(stage.dogwatch(&["hold", "n3", "--wait", "--timeout", "100ms"]));
        assert!(
            code == 1 && errors.contains("is not held within 100ms"),
            "{errors}"
        );
    }
}

/// The controller leaves a person's request on the Node when it withdraws a NodeReboot from it.
#[test]
fn a_release_of_an_object_and_an_annotation_needs_a_clear_word_and_ends_both() {
    let stage = with_node_reboots();
    let uid = post_hold(&stage, "bobs", &json!({ "requester": "bob" }));
    let joined = json!({ "method": "Hold", "requester": "ann", "reason": "new memory",
        "nodeReboots": [{ "name": "bobs", "uid": uid }] });
    for asked in [
        json!({ "method": "Hold", "requester": "ann", "reason": "new memory" }),
        joined,
    ] {
        let annotations = json!({ "dogwatch.dev/reboot-requested": asked.to_string() });
        stage.merge(
            &node("n3"),
            &json!({ "metadata": { "annotations": annotations } }),
        );
        let (code, _, errors) = ended(stage.dogwatch(&["release", "n3"]));
        assert!(
            code == 1
                && errors.contains(
                    "nodereboot/bobs by bob, annotation dogwatch.dev/reboot-requested by ann"
                )
                && errors.contains("dogwatch release n3 --all"),
            "{code} {errors}"
        );
        assert_eq!(holds(&stage).len(), 1);
        assert_eq!(request(&stage, "n3"), asked.to_string());
    }
    let (code, text, errors) = ended(stage.dogwatch(&["release", "n3", "--all"]));
    assert_eq!(code, 0, "{errors}");
    assert!(
        text.contains("nodereboot/bobs was deleted") && text.ends_with("node/n3 is released\n"),
        "{text}"
    );
    assert!(holds(&stage).is_empty());
    assert_eq!(request(&stage, "n3"), Value::Null);
}

/// The request is the controller's own, so it goes with its NodeReboot.
#[test]
fn the_annotation_that_the_controller_wrote_for_a_hold_is_no_second_one() {
    let stage = with_node_reboots();
    let uid = post_hold(&stage, "bobs", &json!({ "requester": "bob" }));
    let carried = json!({ "method": "Hold", "requester": "bob (nodereboot/bobs)",
        "nodeReboots": [{ "name": "bobs", "uid": uid }] });
    let annotations = json!({ "dogwatch.dev/reboot-requested": carried.to_string() });
    stage.merge(
        &node("n3"),
        &json!({ "metadata": { "annotations": annotations } }),
    );
    let (code, _, errors) = ended(stage.dogwatch(&["release", "n3"]));
    assert_eq!(code, 0, "{errors}");
    assert!(holds(&stage).is_empty());
    assert_eq!(request(&stage, "n3"), carried.to_string());
}
