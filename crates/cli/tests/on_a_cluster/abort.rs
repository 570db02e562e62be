//! Tests `dogwatch abort`.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::stage::{Stage, ended};
use super::{NODE_REBOOTS, rebooting_cluster, with_node_reboots};

const ABORT: &str = "dogwatch.dev/abort-requested";
const LONG: Duration = Duration::from_mins(2);

fn node(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

fn abort(stage: &Stage, name: &str) -> Option<Value> {
    let text = stage.get(&node(name))["metadata"]["annotations"][ABORT].clone();
    text.as_str()
        .map(|text| serde_json::from_str(text).unwrap())
}

/// Writes what a coordinator writes once it has undone everything.
fn serve(stage: &Stage, name: &str) {
    let deadline = Instant::now() + LONG;
    while abort(stage, name).is_none() {
        assert!(Instant::now() < deadline, "nobody asked");
        std::thread::sleep(Duration::from_millis(10));
    }
    let last = json!({
        "outcome": "Aborted", "planned": "1970-01-01T00:00:20Z", "finished": "1970-01-01T00:01:00Z",
        "oldBootId": "boot-1", "newBootId": "boot-1", "trigger": { "source": "sentinel:/run/reboot-needed" },
    });
    let served = json!({
        "metadata": { "annotations": {
            ABORT: null, "dogwatch.dev/reboot": null, "dogwatch.dev/last-reboot": last.to_string(),
        } },
        "spec": { "unschedulable": null },
    });
    stage.merge(&node(name), &served);
}

#[test]
fn a_reboot_is_stopped_and_what_was_undone_is_told() {
    let stage = rebooting_cluster();
    let child = stage
        .dogwatch(&[
            "abort",
            "node/n1",
            "--reason",
            "not now",
            "--requester",
            "ann",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    serve(&stage, "n1");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("node/n1: the reboot was aborted"), "{text}");
    assert!(text.contains("uncordoned; evicted pods stay"), "{text}");
    assert!(
        text.contains("sentinel:/run/reboot-needed was treated as done; touch it again"),
        "{text}"
    );
}

#[test]
fn who_asks_and_why_stands_on_the_node_and_a_wait_has_an_end() {
    let stage = rebooting_cluster();
    let args = [
        "abort",
        "n1",
        "--reason",
        "not now",
        "--requester",
        "ann",
        "--timeout",
        "300ms",
    ];
    let (code, text, errors) = ended(stage.dogwatch(&args));
    assert_eq!(code, 1, "{text}");
    assert!(
        errors.contains("was not aborted within 300ms")
            && errors.contains("the healer of `dogwatch controller`"),
        "{errors}"
    );
    assert_eq!(
        abort(&stage, "n1"),
        Some(json!({ "reason": "not now", "requester": "ann" }))
    );
    let (_, text, _) = ended(stage.dogwatch(&["abort", "n1", "--no-wait", "--requester", "bob"]));
    assert!(text.contains("an abort was requested already"), "{text}");
    assert_eq!(abort(&stage, "n1").unwrap()["requester"], "ann");
}

#[test]
fn a_machine_that_may_be_going_down_is_given_up_only_on_a_clear_word() {
    let stage = rebooting_cluster();
    stage.node("n4", Some("rebooting"), 20);
    let (code, _, errors) = ended(stage.dogwatch(&["abort", "n4"]).stdin(Stdio::null()));
    assert_eq!(code, 2, "{errors}");
    assert!(
        errors.contains("an abort cannot stop it") && errors.contains("--yes"),
        "{errors}"
    );
    assert_eq!(abort(&stage, "n4"), None);
    let (code, ..) = ended(stage.dogwatch(&["abort", "n4", "--yes", "--no-wait"]));
    assert_eq!(code, 0);
    assert!(abort(&stage, "n4").is_some());
}

#[test]
fn a_request_that_nobody_took_up_is_taken_back() {
    let stage = rebooting_cluster();
    ended(stage.dogwatch(&["reboot", "n3", "--requester", "ann"]));
    let (code, text, _) = ended(stage.dogwatch(&["abort", "n3"]));
    assert_eq!(code, 0);
    assert_eq!(
        text,
        "node/n3: the request by ann was removed before the reboot began\n"
    );
    let annotations = stage.get(&node("n3"))["metadata"]["annotations"].clone();
    assert!(
        annotations["dogwatch.dev/reboot-requested"].is_null(),
        "{annotations}"
    );
    let (code, _, errors) = ended(stage.dogwatch(&["abort", "n3"]));
    assert_eq!(code, 1);
    assert!(errors.contains("no reboot of n3 is under way"), "{errors}");
    assert_eq!(abort(&stage, "n3"), None);
}

/// A leader that has just taken over would ask the Node for them again.
#[test]
fn the_node_reboots_of_a_request_that_is_taken_back_are_cancelled() {
    let stage = with_node_reboots();
    let mut refs = Vec::new();
    for (name, node) in [("asking", "n3"), ("later", "n3"), ("elsewhere", "n1")] {
        let object = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "NodeReboot",
            "metadata": { "name": name }, "spec": { "nodeName": node } });
        stage.post(NODE_REBOOTS, &object);
        let uid = stage.get(&format!("{NODE_REBOOTS}/{name}"))["metadata"]["uid"].clone();
        refs.push(json!({ "name": name, "uid": uid }));
    }
    let carried = json!({ "requester": "nodereboot/asking", "nodeReboots": [refs[0]] });
    let annotations = json!({ "dogwatch.dev/reboot-requested": carried.to_string() });
    stage.merge(
        &node("n3"),
        &json!({ "metadata": { "annotations": annotations } }),
    );
    let (code, text, errors) = ended(stage.dogwatch(&["abort", "n3"]));
    assert_eq!(code, 0, "{errors}");
    assert!(
        text.contains("node/n3: nodereboot/asking was cancelled"),
        "{text}"
    );
    for (name, cancel) in [
        ("asking", json!(true)),
        ("later", Value::Null),
        ("elsewhere", Value::Null),
    ] {
        let spec = stage.get(&format!("{NODE_REBOOTS}/{name}"))["spec"].clone();
        assert!(
            spec["cancel"] == cancel || spec["cancel"] == false && cancel.is_null(),
            "{name}: {spec}"
        );
    }
}
