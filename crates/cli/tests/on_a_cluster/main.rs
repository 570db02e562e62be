//! Runs the program against the embedded cluster on a port: its output and its exit code.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod abort;
mod bad_input;
mod check;
mod check_hosts;
mod dashboard;
mod hold;
mod hosts;
mod node_reboots;
mod pause;
mod power;
mod pseudo_terminal;
mod reboot;
mod remediation;
mod schedules;
mod stage;
mod top;
mod unlock;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use dogwatch_kubesim::api::ApiVerb;
use serde_json::{Value, json};

use stage::{Stage, alone, ended, in_json, shown};

fn rebooting_cluster() -> Stage {
    let stage = Stage::new();
    stage.node("n1", Some("draining"), 20);
    stage.node("n2", Some("waiting"), 30);
    stage.node("n3", None, 0);
    stage.lease("dogwatch-default-0", Some("n1"));
    stage.coordinators(&["n1", "n2", "n3"]);
    stage
}

const NODE_REBOOTS: &str = "/apis/dogwatch.dev/v1alpha1/nodereboots";

/// The same, with the kind NodeReboot, and without a controller.
fn with_node_reboots() -> Stage {
    let stage = rebooting_cluster();
    let kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    stage.post(kinds, &dogwatch_api::node_reboot::node_reboot_crd());
    stage
}

#[test]
fn status_shows_who_holds_who_waits_and_why() {
    let stage = rebooting_cluster();
    let text = shown(stage.dogwatch(&["status"]));
    assert!(text.starts_with("0 of 2 done, 1 out, 1 waits."), "{text}");
    let rows: Vec<&str> = text.lines().skip(2).collect();
    assert!(rows[0].starts_with("NODE   GROUP     STATUS"), "{text}");
    assert!(
        rows[1].contains("n1 ") && rows[1].contains("dogwatch-default-0"),
        "{text}"
    );
    assert!(
        rows[1].ends_with("Draining: 3 pods gone, 1 to go"),
        "{text}"
    );
    assert!(rows[2].contains("1st in the queue"), "{text}");
    assert!(rows[5].starts_with("LEASE"), "{text}");
    assert!(rows[6].contains("node/n1"), "{text}");
    assert!(
        !text.contains('\u{1b}'),
        "no colours where there is no terminal: {text:?}"
    );
}

#[test]
fn json_and_yaml_say_the_same_as_each_other() {
    let stage = rebooting_cluster();
    let mut json = in_json(stage.dogwatch(&["status", "-o", "json"]));
    let (_, yaml, _) = ended(stage.dogwatch(&["status", "-o", "yaml"]));
    let mut yaml: Value = serde_saphyr::from_str(&yaml).unwrap();
    // The two calls were made at two times.
    for document in [&mut json, &mut yaml] {
        for moment in ["at", "estimate"] {
            document.as_object_mut().unwrap().remove(moment).unwrap();
        }
    }
    assert_eq!(json, yaml);
    assert_eq!(json["nodes"][0]["name"], "n1");
    assert_eq!(json["nodes"][0]["phase"], "draining");
    assert_eq!(json["nodes"][1]["place"], 1);
    assert_eq!(json["locks"][0]["holder"], "node/n1");
}

#[test]
fn a_change_is_shown_while_it_is_watched() {
    let stage = rebooting_cluster();
    let mut child = stage
        .dogwatch(&["status", "--watch", "-o", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let first = next();
    assert_eq!(first["nodes"][0]["phase"], "draining");
    let sentence = first["sentence"].as_str().unwrap();
    assert!(sentence.contains("1 out"), "{sentence}");
    stage.node("n4", Some("rebooting"), 40);
    let changed = loop {
        let status = next();
        if status["nodes"].as_array().unwrap().len() == 4 {
            break status;
        }
    };
    let n4 = changed["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "n4");
    assert_eq!(n4.unwrap()["status"], "Ready,SchedulingDisabled");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The documents of a status that is watched. The process ends with it.
struct WatchedDocuments {
    child: std::process::Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl WatchedDocuments {
    fn of_command(stage: &Stage, args: &[&str]) -> Self {
        let mut command = stage.dogwatch(args);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.next().expect("it goes on").unwrap();
            let document = serde_json::from_str(&line).unwrap();
            if is_it(&document) {
                return document;
            }
        }
    }
}

impl Drop for WatchedDocuments {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_watched_status_says_what_it_may_not_read() {
    let stage = hosts::with_hosts();
    stage.node("n1", None, 0);
    stage.deny(ApiVerb::List, "baremetalhosts");
    let watch = ["status", "--watch", "-o", "json"];
    let mut documents = WatchedDocuments::of_command(&stage, &watch);
    let first = documents.until(|_| true);
    let unreadable = first["unreadable"][0].as_str().unwrap();
    assert!(
        unreadable.contains("the BareMetalHosts cannot be watched"),
        "{first:#}"
    );
    assert_eq!(
        first["sentence"],
        "No reboot is under way, and none waits. Nothing that could be read needs you. Not everything could be read."
    );
}

#[test]
fn a_watched_status_says_that_the_api_server_is_away_and_when_it_is_back() {
    for (args, shown) in [
        (&["status", "--watch", "-o", "json"][..], "nodes"),
        (&["status", "locks", "--watch", "-o", "json"][..], "locks"),
    ] {
        let stage = rebooting_cluster();
        let mut documents = WatchedDocuments::of_command(&stage, args);
        let first = documents.until(|_| true);
        assert_eq!(first["unreadable"], Value::Null, "{first:#}");
        stage.cut_off(true);
        let away = documents.until(|document| document["unreadable"] != Value::Null);
        assert_eq!(away[shown], first[shown], "what was known stays");
        stage.cut_off(false);
        documents.until(|document| document["unreadable"] == Value::Null);
    }
}

#[test]
fn explain_follows_the_chain_to_the_holder_and_to_the_budget() {
    let stage = rebooting_cluster();
    stage.blocked_pod("n1");
    let (code, text, _) = ended(stage.dogwatch(&["explain", "node/n2"]));
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("n2: waiting for "), "{text}");
    assert!(
        text.contains("dogwatch-default-0 is held by node/n1"),
        "{text}"
    );
    assert!(
        text.contains("n1 is draining: Draining: 3 pods gone"),
        "{text}"
    );
    let (_, text, _) = ended(stage.dogwatch(&["explain", "n1"]));
    assert!(
        text.contains("PodDisruptionBudget shop/db allows no disruption (1 healthy of 1 desired) blocks shop/db-0"),
        "{text}"
    );
    assert!(
        text.contains("→ let PodDisruptionBudget shop/db allow a disruption"),
        "{text}"
    );
    let json = in_json(stage.dogwatch(&["explain", "n1", "-o", "json"]));
    assert_eq!(json["node"], "n1");
    assert!(
        json["chain"]
            .as_array()
            .unwrap()
            .iter()
            .any(|line| line["topic"] == "drain"),
        "{json:#}"
    );
}

#[test]
fn what_may_not_be_read_is_left_out_and_said() {
    let stage = rebooting_cluster();
    stage.deny(ApiVerb::List, "pods");
    let (code, text, errors) = ended(stage.dogwatch(&["explain", "node/n1"]));
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("says      Draining"), "{text}");
    assert!(
        errors.contains("the explanation leaves out the node's pods"),
        "{errors}"
    );
}

#[test]
fn a_request_is_written_once_and_never_over_another_one() {
    let stage = rebooting_cluster();
    let ask = |reason: &str, more: &[&str]| {
        let mut args = vec!["reboot", "n3", "--requester", "ann", "--reason", reason];
        args.extend(more);
        ended(stage.dogwatch(&args))
    };
    assert_eq!(
        ask("kernel", &[]),
        (0, "node/n3 was requested to reboot\n".into(), String::new())
    );
    assert_eq!(
        stage.request("n3"),
        json!({ "reason": "kernel", "requester": "ann" })
    );
    let (code, text, _) = ask("kernel", &[]);
    assert_eq!(
        (code, text.as_str()),
        (
            0,
            "node/n3 was already requested to reboot, with the same reason\n"
        )
    );
    let (code, _, errors) = ask("other", &[]);
    assert_eq!(code, 1);
    assert!(
        errors.contains("already has another reboot request") && errors.contains("--replace"),
        "{errors}"
    );
    assert_eq!(stage.request("n3")["reason"], "kernel");
    let (code, ..) = ask(
        "other",
        &["--replace", "--not-before", "2030-01-01T00:00:00Z"],
    );
    assert_eq!(code, 0);
    assert_eq!(
        stage.request("n3"),
        json!({ "reason": "other", "requester": "ann", "notBefore": "2030-01-01T00:00:00Z" })
    );
}

#[test]
fn of_several_nodes_those_that_exist_are_asked() {
    let stage = rebooting_cluster();
    let (code, text, errors) = ended(stage.dogwatch(&["reboot", "n9", "node/n3"]));
    assert_eq!(code, 3);
    assert_eq!(text, "node/n3 was requested to reboot\n");
    assert!(
        errors.contains("there is no Node n9 in this cluster"),
        "{errors}"
    );
}

#[test]
fn what_does_not_exist_ends_with_3_and_says_where_to_look() {
    let stage = rebooting_cluster();
    let (code, text, errors) = ended(stage.dogwatch(&["explain", "node/n9"]));
    assert_eq!((code, text.as_str()), (3, ""));
    assert!(
        errors.contains("no Node n9") && errors.contains("did you mean n1 or n2 or n3?"),
        "{errors}"
    );
}

#[test]
fn what_is_not_allowed_ends_with_5_and_quotes_the_server() {
    let stage = rebooting_cluster();
    stage.deny(ApiVerb::List, "nodes");
    for args in [&["status"][..], &["status", "--watch"], &["explain", "n1"]] {
        let (code, _, errors) = ended(stage.dogwatch(args));
        assert_eq!(code, 5, "{args:?} {errors}");
        assert!(
            errors.contains("cannot list resource \"nodes\""),
            "{errors}"
        );
    }
}

#[test]
fn without_a_cluster_it_ends_with_4_and_says_how_to_get_one() {
    let home = tempfile::tempdir().unwrap();
    let (code, _, errors) = ended(alone(home.path()).arg("status"));
    assert_eq!(code, 4, "{errors}");
    assert!(
        errors.contains("no cluster is named") && errors.contains("dogwatch demo --serve"),
        "{errors}"
    );
    let missing = home.path().join("missing");
    let (code, _, errors) = ended(alone(home.path()).env("KUBECONFIG", &missing).arg("status"));
    assert_eq!(code, 4, "{errors}");
    assert!(
        errors.contains("the kubeconfig that KUBECONFIG names cannot be used"),
        "{errors}"
    );
}

#[test]
fn a_kubeconfig_at_home_that_is_broken_is_an_error_and_not_passed_over() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".kube")).unwrap();
    std::fs::write(home.path().join(".kube/config"), "clusters: 7").unwrap();
    let mut command = alone(home.path());
    command
        .env("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        .env("KUBERNETES_SERVICE_PORT", "1");
    let (code, _, errors) = ended(command.arg("status"));
    assert_eq!(code, 4, "{errors}");
    assert!(errors.contains(".kube/config cannot be used"), "{errors}");
}

#[test]
fn a_cluster_that_is_away_ends_with_4_and_names_its_address() {
    let stage = Stage::away();
    let (code, _, errors) = ended(stage.dogwatch(&["status"]));
    assert_eq!(code, 4, "{errors}");
    assert!(
        errors.contains("http://127.0.0.1:")
            && errors.contains("check that the cluster is running"),
        "{errors}"
    );
    let (code, ..) = ended(stage.dogwatch(&["status", "--watch"]));
    assert_eq!(code, 4);
}

#[test]
fn a_context_that_is_not_there_is_named() {
    let stage = rebooting_cluster();
    let (code, _, errors) = ended(stage.dogwatch(&["--context", "nowhere", "status"]));
    assert_eq!(code, 4, "{errors}");
    assert!(errors.contains("nowhere"), "{errors}");
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let home = tempfile::tempdir().unwrap();
    for args in [
        &["explain", "pod/a"][..],
        &["reboot"],
        &["status", "--no-such-flag"],
        &["reboot", "n1", "--not-before", "soon"],
    ] {
        let (code, _, errors) = ended(alone(home.path()).args(args));
        assert_eq!(code, 2, "{args:?} {errors}");
    }
}

#[test]
fn completions_are_there_for_three_shells() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = ended(alone(home.path()).args(["completions", shell]));
        assert_eq!(code, 0, "{shell}");
        assert!(script.contains("explain"), "{shell}: {script}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let stage = rebooting_cluster();
    let mut child = stage
        .dogwatch(&["completions", "bash"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn another_namespace_is_looked_in_if_it_is_named() {
    let stage = rebooting_cluster();
    let json = in_json(stage.dogwatch(&["-n", "elsewhere", "status", "-o", "json"]));
    assert_eq!(json["locks"], json!([]));
    assert_eq!(json["nodes"].as_array().unwrap().len(), 3);
}
