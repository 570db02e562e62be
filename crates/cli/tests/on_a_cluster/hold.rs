//! Tests `dogwatch hold` and `dogwatch release`, with and without the kind NodeReboot.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

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
