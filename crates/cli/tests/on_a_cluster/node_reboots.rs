//! Tests `dogwatch reboot` and `dogwatch explain` where the kind NodeReboot is installed.

use dogwatch_kubesim::api::ApiVerb;
use serde_json::{Value, json};

use super::reboot::followed;
use super::stage::{Stage, ended, in_json};
use super::{NODE_REBOOTS, rebooting_cluster, with_node_reboots};

const ASK: [&str; 6] = ["reboot", "n3", "--reason", "kernel", "--requester", "ann"];

fn node_reboots(stage: &Stage) -> Vec<Value> {
    let list = stage.get(NODE_REBOOTS);
    list["items"].as_array().unwrap().clone()
}

fn name_of(reboot: &Value) -> &str {
    reboot["metadata"]["name"].as_str().unwrap()
}

/// Writes what the controller writes: a phase, and how it ended.
pub(super) fn tell(stage: &Stage, name: &str, phase: &str, succeeded: &str, reason: &str) {
    let condition = |kind: &str, status: &str| {
        json!({ "type": kind, "status": status, "reason": reason, "message": "as told",
            "lastTransitionTime": "2026-01-05T00:00:00Z" })
    };
    let conditions = [
        condition("Progressing", "True"),
        condition("Succeeded", succeeded),
    ];
    let status = json!({ "status": {
        "observedGeneration": 1, "phase": phase, "message": "as told", "conditions": conditions,
    } });
    stage.merge(&format!("{NODE_REBOOTS}/{name}/status"), &status);
}

#[test]
fn a_reboot_is_a_node_reboot_that_is_asked_for_once_and_can_be_cancelled() {
    let stage = with_node_reboots();
    let (child, mut until) = followed(&stage, &ASK);
    let line = until("was requested to reboot");
    let made = node_reboots(&stage).pop().unwrap();
    let name = name_of(&made);
    assert!(
        name.starts_with("reboot-n3-") && line.ends_with(name),
        "{line}"
    );
    tell(&stage, name, "Pending", "Unknown", "AskingNode");
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let uid = stage.get("/api/v1/nodes/n3")["metadata"]["uid"].clone();
    let spec = json!({ "nodeName": "n3", "nodeUID": uid, "method": "Reboot",
        "reason": "kernel", "requester": "ann", "ttlAfterFinished": "24h" });
    assert_eq!(made["spec"], spec, "the last field is the schema's default");

    let (code, text, _) = ended(stage.dogwatch(&ASK));
    assert!(code == 0 && text.contains("already"), "{text}");
    let (code, text, _) = ended(stage.dogwatch(&["reboot", "n3", "--cancel"]));
    assert!(code == 0 && text.contains(name), "{text}");
    let cancelled = stage.get(&format!("{NODE_REBOOTS}/{name}"));
    assert_eq!(cancelled["spec"]["cancel"], true);
    let (code, _, errors) = ended(stage.dogwatch(&["reboot", "n1", "--cancel"]));
    assert!(
        code == 1 && errors.contains("no NodeReboot") && errors.contains("dogwatch abort n1"),
        "{errors}"
    );
}

#[test]
fn without_a_controller_the_asker_is_warned() {
    let stage = with_node_reboots();
    let (code, _, errors) = ended(stage.dogwatch(&ASK));
    assert!(
        code == 0 && errors.contains("no controller has answered nodereboot/reboot-n3-"),
        "{errors}"
    );
}

#[test]
fn a_wait_ends_as_the_node_reboot_does() {
    for (succeeded, reason, code, said) in [
        ("True", "Rebooted", 0, "node/n3 is back"),
        (
            "False",
            "DeadlinePassed",
            1,
            "node/n3 was not rebooted: DeadlinePassed: as told",
        ),
    ] {
        let stage = with_node_reboots();
        let wait = [&ASK[..], &["--wait", "--timeout", "60s"]].concat();
        let (child, mut until) = followed(&stage, &wait);
        until("was requested to reboot");
        let made = node_reboots(&stage).pop().unwrap();
        tell(&stage, name_of(&made), "Finished", succeeded, reason);
        until(said);
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(code));
    }
}

#[test]
fn a_wait_ends_when_the_node_reboot_is_deleted() {
    let stage = with_node_reboots();
    let wait = [&ASK[..], &["--wait", "--timeout", "60s"]].concat();
    let (child, mut until) = followed(&stage, &wait);
    until("was requested to reboot");
    let made = node_reboots(&stage).pop().unwrap();
    // The command has seen it when it prints its first step.
    tell(
        &stage,
        name_of(&made),
        "Waiting",
        "Unknown",
        "WaitingForLock",
    );
    let record = json!({
        "phase": "waiting", "run": "coordinator/x", "since": "1970-01-01T00:00:20Z",
        "planned": "1970-01-01T00:00:20Z", "trigger": { "source": "request" },
        "bootId": "boot-1", "cordonedByUs": false,
    });
    let annotations = json!({ "dogwatch.dev/reboot": record.to_string() });
    let patch = json!({ "metadata": { "annotations": annotations } });
    stage.merge("/api/v1/nodes/n3", &patch);
    let status = json!({ "status": { "conditions": [
        { "type": "Ready", "status": "True" },
        { "type": "MaintenancePlanned", "status": "False", "reason": "OutsideWindow",
          "message": "opens at noon" },
    ] } });
    stage.merge("/api/v1/nodes/n3/status", &status);
    until("OutsideWindow");
    stage.delete(&format!("{NODE_REBOOTS}/{}", name_of(&made)));
    until("was deleted");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(1));
}

#[test]
fn what_only_a_node_reboot_can_ask_for_needs_the_kind() {
    let stage = rebooting_cluster();
    for args in [
        &["reboot", "n3", "--deadline", "1h"][..],
        &["reboot", "n3", "--method", "power-cycle"],
        &["reboot", "n3", "--cancel"],
        &["explain", "nodereboot/a"],
    ] {
        let (code, _, errors) = ended(stage.dogwatch(args));
        assert!(
            code == 3 && errors.contains("CRD NodeReboot is not installed"),
            "{args:?}: {code} {errors}"
        );
    }
}

#[test]
fn a_node_reboot_is_explained_with_its_node_and_a_wrong_name_with_the_right_one() {
    let stage = with_node_reboots();
    let spec = json!({ "nodeName": "n2", "requester": "gpu-operator", "reason": "XID 79" });
    let object = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "NodeReboot",
        "metadata": { "name": "gpu-n2" }, "spec": spec });
    stage.post(NODE_REBOOTS, &object);
    tell(&stage, "gpu-n2", "Waiting", "Unknown", "WaitingForLock");
    let (code, text, errors) = ended(stage.dogwatch(&["explain", "nr/gpu-n2"]));
    assert_eq!(code, 0, "{errors}");
    for part in [
        "gpu-n2: Waiting: WaitingForLock",
        "method Reboot for node n2 by gpu-operator: \"XID 79\"",
        "n2: waiting for ",
        "start the controller",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let (code, text, _) = ended(stage.dogwatch(&["explain", "nr/gpu-n2", "-o", "json"]));
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &told["nodeReboot"]), (0, &json!("gpu-n2")));
    assert_eq!(told["ofNode"]["node"], "n2");
    let (code, _, errors) = ended(stage.dogwatch(&["explain", "nr/gpu-n3"]));
    assert!(code == 3 && errors.contains("gpu-n2"), "{errors}");
}

/// What is asked for later, or without a controller, is on no Node: each command has to look for the
/// object.
#[test]
fn a_node_reboot_that_has_not_reached_its_node_is_seen_by_every_command() {
    let stage = with_node_reboots();
    let spec = json!({ "nodeName": "n3", "requester": "ann", "reason": "kernel",
        "notBefore": "2999-01-01T00:00:00Z" });
    let object = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "NodeReboot",
        "metadata": { "name": "later" }, "spec": spec });
    stage.post(NODE_REBOOTS, &object);
    let (code, text, errors) = ended(stage.dogwatch(&["explain", "n3"]));
    assert_eq!((code, errors.as_str()), (0, ""), "{text}");
    for part in [
        "n3: a reboot is requested by nodereboot/later, and has not reached the node",
        "nodereboot/later, method Reboot by ann: \"kernel\"",
        "no dogwatch controller leads",
        "to withdraw it: dogwatch reboot n3 --cancel",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    assert!(!text.contains("--reason …"), "{text}");

    let (code, _, errors) = ended(stage.dogwatch(&["abort", "n3"]));
    assert!(
        code == 1
            && errors.contains("one is requested by nodereboot/later")
            && errors.contains("dogwatch reboot n3 --cancel"),
        "{code} {errors}"
    );

    let status = in_json(stage.dogwatch(&["status", "-o", "json"]));
    assert_eq!(status["counts"]["requested"], 1);
    let sentence = status["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("1 requested reboot has not reached its node."),
        "{sentence}"
    );
    let tasks = status["needsPerson"].as_array().unwrap().iter();
    let tasks: Vec<&str> = tasks.filter_map(|task| task["subject"].as_str()).collect();
    assert!(tasks.contains(&"controller"), "{tasks:?}");

    let (code, text, _) = ended(stage.dogwatch(&["check", "n3"]));
    assert!(
        code == 6 && text.contains("warns    controller: no dogwatch controller leads"),
        "{code} {text}"
    );

    let (code, _, errors) = ended(stage.dogwatch(&["reboot", "n3", "--cancel"]));
    assert_eq!(code, 0, "{errors}");
    let (_, _, errors) = ended(stage.dogwatch(&["abort", "n3"]));
    assert!(
        errors.contains("no reboot of n3 is under way") && !errors.contains("requested"),
        "{errors}"
    );
}

#[test]
fn node_reboots_that_may_not_be_read_are_told_and_hide_nothing_else() {
    let stage = with_node_reboots();
    stage.deny(ApiVerb::List, "nodereboots");
    let (code, text, errors) = ended(stage.dogwatch(&["explain", "n3"]));
    assert!(
        code == 0 && text.contains("nothing is under way") && errors.contains("the NodeReboots"),
        "{code} {text} {errors}"
    );
    let (code, text, errors) = ended(stage.dogwatch(&["status"]));
    assert!(
        code == 0
            && text.contains("Not everything could be read.")
            && errors.contains("the NodeReboots cannot be read"),
        "{code} {text} {errors}"
    );
    let (code, _, errors) = ended(stage.dogwatch(&["check", "--after-restore"]));
    assert!(
        code == 6 && errors.contains("records contradict"),
        "{code} {errors}"
    );
}
