//! Tests `dogwatch reboot` of several nodes, up to their return.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::node_reboots::tell;
use super::pseudo_terminal::PseudoTerminal;
use super::stage::{Stage, ended};
use super::{NODE_REBOOTS, rebooting_cluster, with_node_reboots};

fn node(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

fn request(stage: &Stage, name: &str) -> Value {
    stage.get(&node(name))["metadata"]["annotations"]["dogwatch.dev/reboot-requested"].clone()
}

/// Writes what a coordinator writes at the end.
fn finish(stage: &Stage, name: &str, outcome: &str) {
    let last = json!({
        "outcome": outcome, "planned": "1970-01-01T00:00:20Z", "finished": "1970-01-01T00:09:00Z",
        "oldBootId": "boot-1", "newBootId": "boot-2", "trigger": { "source": "request" },
    });
    let done = json!({ "metadata": { "annotations": {
        "dogwatch.dev/reboot": null, "dogwatch.dev/reboot-requested": null,
        "dogwatch.dev/last-reboot": last.to_string(),
    } } });
    stage.merge(&node(name), &done);
}

/// Writes what a coordinator writes when it accepts a request.
fn begin(stage: &Stage, name: &str) {
    let record = json!({
        "phase": "waiting", "run": "coordinator/x", "since": "1970-01-01T00:00:20Z",
        "planned": "1970-01-01T00:00:20Z", "trigger": { "source": "request" },
        "bootId": "boot-1", "cordonedByUs": false,
    });
    let annotations = json!({ "dogwatch.dev/reboot": record.to_string() });
    stage.merge(
        &node(name),
        &json!({ "metadata": { "annotations": annotations } }),
    );
    let condition = json!({ "type": "MaintenancePlanned", "status": "False",
        "reason": "OutsideWindow", "message": "opens at noon" });
    let ready = json!({ "type": "Ready", "status": "True" });
    let status = json!({ "status": { "conditions": [ready, condition] } });
    stage.merge(&format!("{}/status", node(name)), &status);
}

/// Runs the command. The function reads its lines up to one that contains a text.
pub(super) fn followed(stage: &Stage, args: &[&str]) -> (Child, impl FnMut(&str) -> String) {
    let mut child = stage
        .dogwatch(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let until = move |part: &str| loop {
        let line = lines.next().expect("it goes on").unwrap();
        if line.contains(part) {
            return line;
        }
    };
    (child, until)
}

#[test]
fn nodes_are_chosen_by_label_and_all_of_them_only_on_a_clear_word() {
    let stage = rebooting_cluster();
    stage.merge(
        &node("n2"),
        &json!({ "metadata": { "labels": { "zone": "a" } } }),
    );
    let (code, text, _) = ended(stage.dogwatch(&["reboot", "-l", "zone=a"]));
    assert_eq!(
        (code, text.as_str()),
        (0, "node/n2 was requested to reboot\n")
    );
    let (code, _, errors) = ended(stage.dogwatch(&["reboot", "--all"]).stdin(Stdio::null()));
    assert_eq!(code, 2);
    assert!(
        errors.contains("Reboot all 3 nodes") && errors.contains("--yes"),
        "{errors}"
    );
    assert!(request(&stage, "n3").is_null());
    let (code, ..) = ended(stage.dogwatch(&["reboot", "--all", "--yes", "--replace"]));
    assert_eq!(code, 0);
    assert!(request(&stage, "n3").is_string());
    let (code, ..) = ended(stage.dogwatch(&["reboot", "n1", "--all"]));
    assert_eq!(code, 2);
}

#[test]
fn a_reboot_is_followed_to_the_end_with_why_it_waits() {
    let stage = rebooting_cluster();
    let (child, mut until) = followed(&stage, &["reboot", "n3", "--wait", "--timeout", "60s"]);
    until("node/n3 requested: RebootRequested");
    begin(&stage, "n3");
    let line = until("OutsideWindow");
    assert!(line.starts_with("node/n3 waiting: OutsideWindow"), "{line}");
    assert!(line.contains("opens at noon"), "{line}");
    finish(&stage, "n3", "Rebooted");
    until("node/n3 is back");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn a_reboot_that_somebody_stopped_is_a_failure() {
    let stage = rebooting_cluster();
    let (child, mut until) = followed(&stage, &["reboot", "n3", "--wait", "--timeout", "60s"]);
    until("node/n3 requested");
    finish(&stage, "n3", "Aborted");
    until("somebody aborted the reboot");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("not rebooted: n3"), "{errors}");
}

#[test]
fn a_wait_that_ends_says_why_and_leaves_the_request() {
    let stage = rebooting_cluster();
    begin(&stage, "n3");
    let (code, _, errors) = ended(stage.dogwatch(&["reboot", "n3", "--wait", "--timeout", "1s"]));
    assert_eq!(code, 1);
    assert!(
        errors.contains(
            "not all nodes were rebooted within 1s; the requests stay. n3: OutsideWindow"
        ) && errors.contains("dogwatch explain n3"),
        "{errors}"
    );
    assert!(request(&stage, "n3").is_string());
}

#[test]
fn ctrl_c_leaves_the_request_and_says_so() {
    let stage = rebooting_cluster();
    let (child, mut until) = followed(&stage, &["reboot", "n3", "--wait"]);
    until("node/n3 requested");
    let interrupt = ["-INT", &child.id().to_string()];
    std::process::Command::new("kill")
        .args(interrupt)
        .status()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("the reboot requests stay: n3") && errors.contains("dogwatch abort"),
        "{errors}"
    );
    assert!(request(&stage, "n3").is_string());
}

#[test]
fn a_coordinator_without_a_daemonset_answers_and_nobody_says_that_nothing_happens() {
    let stage = Stage::new();
    stage.node("n1", None, 0);
    let mut child = stage
        .dogwatch(&["reboot", "n1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(
        lines.next().unwrap().unwrap(),
        "node/n1 was requested to reboot"
    );
    begin(&stage, "n1");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

/// A NodeReboot that has not begun, by its status. Returns its UID.
fn post_waiting_reboot(stage: &Stage, node: &str) -> Value {
    let spec = json!({ "nodeName": node, "reason": "kernel", "requester": "ann" });
    let object = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "NodeReboot",
        "metadata": { "name": "first" }, "spec": spec });
    stage.post(NODE_REBOOTS, &object);
    tell(stage, "first", "Waiting", "Unknown", "WaitingForLock");
    stage.get(&format!("{NODE_REBOOTS}/first"))["metadata"]["uid"].clone()
}

fn reboots_of(stage: &Stage, node: &str) -> usize {
    let list = stage.get(NODE_REBOOTS);
    let all = list["items"].as_array().unwrap();
    all.iter()
        .filter(|one| one["spec"]["nodeName"] == node)
        .count()
}

#[test]
fn a_reboot_that_ended_before_the_answer_to_the_question_is_not_reused() {
    let stage = with_node_reboots();
    post_waiting_reboot(&stage, "n3");
    let command = [
        "reboot",
        "--all",
        "--reason",
        "kernel",
        "--requester",
        "ann",
    ];
    let mut terminal = PseudoTerminal::start(&stage.dogwatch(&command), (120, 30));
    terminal.see("Reboot all 3 nodes");
    tell(&stage, "first", "Finished", "True", "Rebooted");
    terminal.press_and_see("y\n", "node/n3 was requested to reboot");
    assert_eq!(terminal.wait_for_end(), 0);
    assert_eq!(reboots_of(&stage, "n3"), 2);
}

#[test]
fn a_reboot_whose_command_may_have_started_is_not_reused_although_its_status_is_behind() {
    let ask = ["reboot", "n3", "--reason", "kernel", "--requester", "ann"];
    for (phase, made) in [("draining", 1), ("rebooting", 2)] {
        let stage = with_node_reboots();
        let uid = post_waiting_reboot(&stage, "n3");
        let record = json!({
            "phase": phase, "run": "coordinator/x", "since": "1970-01-01T00:00:20Z",
            "planned": "1970-01-01T00:00:20Z", "bootId": "boot-1", "cordonedByUs": true,
            "trigger": { "source": "request", "nodeReboots": [{ "name": "first", "uid": uid }] },
        });
        let annotations = json!({ "dogwatch.dev/reboot": record.to_string() });
        stage.merge(
            &node("n3"),
            &json!({ "metadata": { "annotations": annotations } }),
        );
        let (code, text, errors) = ended(stage.dogwatch(&ask));
        assert_eq!(code, 0, "{errors}");
        assert_eq!(text.contains("already"), made == 1, "{phase}: {text}");
        assert_eq!(reboots_of(&stage, "n3"), made, "{phase}");
    }
}
