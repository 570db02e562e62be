//! Tests `dogwatch remediate` where the cluster changes while it asks or waits.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use serde_json::{Value, json};

use super::asked::{mark, quiet};
use super::{MACHINES, REQUESTS, under_way};
use crate::hosts::{host, path};
use crate::pseudo_terminal::PseudoTerminal;
use crate::stage::{Stage, ended};

const NODE: &str = "/api/v1/nodes/n2";
const SIZE: (u16, u16) = (100, 30);

fn set_ready(stage: &Stage, node: &str, status: &str) {
    let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": status }] } });
    stage.merge(&format!("/api/v1/nodes/{node}/status"), &ready);
}

/// Shows the question about Node n2, which is not Ready.
fn ask(stage: &Stage, args: &[&str]) -> PseudoTerminal {
    set_ready(stage, "n2", "Unknown");
    let mut terminal = PseudoTerminal::start(&stage.dogwatch(args), SIZE);
    terminal.see("Cut the power of host metal/h2, and delete Node n2? [y/N]");
    terminal
}

#[test]
fn a_node_that_is_healthy_again_before_the_answer_is_not_marked() {
    let stage = quiet();
    let mut terminal = ask(&stage, &["remediate", "n2"]);
    set_ready(&stage, "n2", "True");
    let says = "node/n2 has changed since you were asked, so nothing was done";
    terminal.press_and_see("y\n", says);
    terminal.see("Node n2 is healthy. Cut the power");
    assert_eq!(terminal.wait_for_end(), 1);
    assert_eq!(mark(&stage, NODE), Value::Null);
}

#[test]
fn another_host_than_that_of_the_question_is_not_powered_off() {
    let stage = quiet();
    let mut terminal = ask(&stage, &["remediate", "n2"]);
    let names =
        |node: Value| json!({ "metadata": { "annotations": { "dogwatch.dev/node": node } } });
    stage.merge(&path("metal", "h2"), &names(Value::Null));
    host(&stage, "metal", "h3", &names(json!("n2")));
    terminal.press_and_see("y\n", "its host was metal/h2, and is metal/h3 now");
    assert_eq!(terminal.wait_for_end(), 1);
    assert_eq!(mark(&stage, NODE), Value::Null);
}

#[test]
fn a_node_that_is_another_one_by_the_answer_is_not_marked() {
    let stage = quiet();
    let mut terminal = ask(&stage, &["remediate", "n2"]);
    stage.delete(NODE);
    stage.node("n2", None, 0);
    set_ready(&stage, "n2", "Unknown");
    terminal.press_and_see("y\n", "it was deleted and created again");
    assert_eq!(terminal.wait_for_end(), 1);
    assert_eq!(mark(&stage, NODE), Value::Null);
}

#[test]
fn a_change_that_the_question_does_not_mention_is_none() {
    let stage = quiet();
    let mut terminal = ask(&stage, &["remediate", "n2"]);
    let label = json!({ "metadata": { "labels": { "rack": "7" } } });
    stage.merge(NODE, &label);
    terminal.press_and_see("y\n", "node/n2 is marked");
    assert_eq!(terminal.wait_for_end(), 0);
    assert_eq!(mark(&stage, NODE), "");
}

/// PowerRemediation `n2` of Node `n2` is under way.
fn requested() -> Stage {
    let stage = quiet();
    let request = json!({
        "apiVersion": "dogwatch.dev/v1alpha1", "kind": "PowerRemediation",
        "metadata": { "name": "n2", "namespace": "machines" },
        "spec": { "strategy": { "type": "DeleteNode", "retryLimit": 1, "timeout": "10m" } },
    });
    stage.post(REQUESTS, &request);
    stage
}

#[test]
fn a_request_for_the_node_is_followed_to_its_end() {
    let stage = requested();
    let follow = ["remediate", "n2", "--wait", "--timeout", "2m"];
    let mut child = stage
        .dogwatch(&follow)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut next_line = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    let by = "node/n2 is being remediated already, by powerremediation/machines/n2\n";
    assert_eq!(next_line(), by);
    let state = next_line();
    assert!(
        state.starts_with("powerremediation/machines/n2: "),
        "{state}"
    );
    assert_eq!(mark(&stage, NODE), Value::Null);
    let now = jiff::Timestamp::now();
    let stamp = |step: &str| json!({ "at": now, "what": step });
    let succeeded = json!({ "status": {
        "startedAt": now, "endedAt": now,
        "timeline": [stamp("Requested"), stamp("NodeReady")],
        "conditions": [{ "type": "Succeeded", "status": "True", "reason": "Remediated",
            "message": "it is back", "lastTransitionTime": now }],
    } });
    stage.merge(&format!("{REQUESTS}/n2/status"), &succeeded);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest}");
    let end = "powerremediation/machines/n2: the Node is Ready with a new boot";
    assert!(rest.contains(end), "{rest}");
}

#[test]
fn a_withdrawn_remediation_is_not_joined_while_its_key_is_on_the_host() {
    let stage = under_way();
    let withdrawn =
        json!({ "metadata": { "annotations": { "host.metal3.io/external-remediation": null } } });
    stage.merge(&format!("{MACHINES}/m1"), &withdrawn);
    for named in ["machine/machines/m1", "n1"] {
        let (code, text, errors) = ended(stage.dogwatch(&["remediate", named, "--yes"]));
        assert_eq!((code, text.as_str()), (1, ""), "{errors}");
        for says in [
            "is being withdrawn",
            "its key is still on host metal/m1",
            "run the command again",
        ] {
            assert!(errors.contains(says), "{says}: {errors}");
        }
    }
    assert_eq!(mark(&stage, &format!("{MACHINES}/m1")), Value::Null);
}
