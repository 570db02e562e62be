//! `dogwatch status remediations`, `explain machine/…`, `remediation/…` and `node/…`, `check`: what a person
//! sees of remediations, from objects alone.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use dogwatch_sim::api::Verb;
use serde_json::{Value, json};

use super::hosts::{conditions, host, path, with_hosts};
use super::stage::{Stage, ended};

const MACHINES: &str = "/apis/machine.openshift.io/v1beta1/namespaces/machines/machines";
const REQUESTS: &str = "/apis/dogwatch.dev/v1alpha1/namespaces/machines/powerremediations";
const KEY: &str = "reboot.metal3.io/machine-remediation";

/// Hosts, Machines and requests, and nothing of them.
fn with_kinds() -> Stage {
    let stage = with_hosts();
    let kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    stage.post(kinds, &dogwatch_testbed::fixtures::openshift_machines());
    stage.post(kinds, &dogwatch_api::power_remediation::crd());
    stage.post(
        "/api/v1/namespaces",
        &json!({ "metadata": { "name": "machines" } }),
    );
    stage
}

/// A Machine of a Node on a host in namespace `metal`. The answer is its UID.
fn machine(stage: &Stage, name: &str, node: &str, over: &Value) -> String {
    let machine = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": { "name": name, "namespace": "machines",
            "annotations": { "metal3.io/BareMetalHost": format!("metal/{name}") } },
        "spec": {},
    });
    stage.post(MACHINES, &machine);
    let path = format!("{MACHINES}/{name}");
    let carries = json!({ "status": { "nodeRef": { "kind": "Node", "name": node } } });
    stage.merge(&format!("{path}/status"), &carries);
    stage.merge(&path, over);
    if over.get("status").is_some() {
        stage.merge(&format!("{path}/status"), over);
    }
    let uid = stage.get(&path)["metadata"]["uid"]
        .as_str()
        .map(str::to_owned);
    uid.unwrap()
}

fn marked() -> Value {
    json!({
        "metadata": { "annotations": { "host.metal3.io/external-remediation": "" } },
        "status": { "conditions": [{ "type": "Remediation", "status": "True", "reason": "PoweringOff",
            "message": "the host goes off", "lastTransitionTime": "1970-01-01T00:00:10Z" }] },
    })
}

/// What a host remembers of the remediation of Machine `m1`, with these steps.
fn record(uid: &str, steps: &[(&str, u32)]) -> String {
    let step = |(step, second): &(&str, u32)| json!({ "step": step, "at": format!("1970-01-01T00:00:{second:02}Z") });
    let steps: Vec<Value> = steps.iter().map(step).collect();
    json!({ "subject": "machine/machines/m1", "uid": uid, "node": "n1", "nodeUID": "u1",
        "attempt": 1, "steps": steps })
    .to_string()
}

fn consumed(name: &str) -> Value {
    json!({ "spec": { "consumerRef": { "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "namespace": "machines", "name": name } } })
}

/// Machine `m1` is marked, and its host `metal/m1` carries its key since the 12th second.
fn under_way() -> Stage {
    let stage = with_kinds();
    stage.node("n1", None, 0);
    let uid = machine(&stage, "m1", "n1", &marked());
    host(&stage, "metal", "m1", &consumed("m1"));
    let key = json!({ "mode": "hard", "machineUID": uid }).to_string();
    let steps = [("Requested", 10), ("KeyAdded", 12)];
    let held = json!({
        "metadata": { "annotations": { KEY: key, "dogwatch.dev/remediation": record(&uid, &steps) } },
        "status": {
            "power": { "state": "PoweringOff" },
            "conditions": conditions("False", "PoweringOff", "cut", "True", "Checked"),
        },
    });
    stage.merge(&path("metal", "m1"), &held);
    stage.merge(&format!("{}/status", path("metal", "m1")), &held);
    stage
}

#[test]
fn status_shows_who_is_fenced_how_far_it_is_and_why() {
    let stage = under_way();
    let (code, text, errors) = ended(stage.dogwatch(&["status", "remediations"]));
    assert_eq!((code, errors.as_str()), (0, ""), "{text}");
    let rows: Vec<&str> = text.lines().collect();
    assert!(
        rows[0].starts_with("REMEDIATION           NODE   HOST"),
        "{text}"
    );
    assert!(
        rows[1].starts_with("machine/machines/m1   n1     metal/m1   KeyAdded"),
        "{text}"
    );
    assert!(
        rows[1].ends_with("PoweringOff: the host goes off"),
        "{text}"
    );
    let (_, wide, _) = ended(stage.dogwatch(&["status", "remediations", "-o", "wide"]));
    assert!(wide.contains("1         KeyAdded 2.0s"), "{wide}");
    let (_, json, _) = ended(stage.dogwatch(&["status", "remediations", "-o", "json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    let row = &json["remediations"][0];
    assert_eq!(
        row["steps"][1],
        json!({ "step": "KeyAdded", "at": "1970-01-01T00:00:12Z", "afterMs": 2000 })
    );
    assert_eq!(
        (&row["underWay"], &row["reason"]),
        (&json!(true), &json!("PoweringOff"))
    );
    assert_eq!(json["nodes"], json!([]));
    let (_, text, errors) = ended(stage.dogwatch(&["status", "remediations", "-n", "shop"]));
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        errors.contains("no remediation is under way in namespace shop"),
        "{errors}"
    );
}

#[test]
fn the_whole_status_shows_remediations_right_below_the_nodes() {
    let stage = under_way();
    let (code, text, errors) = ended(stage.dogwatch(&["status"]));
    assert_eq!((code, errors.as_str()), (0, ""), "{text}");
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(place("NODE ") < place("\nREMEDIATION "), "{text}");
    assert!(
        place("\nREMEDIATION ") < place("\nNAMESPACE   HOST"),
        "{text}"
    );
    stage.deny(Verb::List, "machines");
    let (code, text, errors) = ended(stage.dogwatch(&["status"]));
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("shown without remediations"), "{errors}");
    assert!(text.contains("n1"), "{text}");
}

#[test]
fn each_step_is_shown_while_it_is_watched() {
    let stage = under_way();
    let mut child = stage
        .dogwatch(&["status", "remediations", "--watch", "-o", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["remediations"][0]["step"], "KeyAdded");
    let steps = [("Requested", 10), ("KeyAdded", 12), ("Released", 20)];
    let seen = json!({ "metadata": { "annotations": { "dogwatch.dev/remediation": record("u", &steps) } } });
    stage.merge(&path("metal", "m1"), &seen);
    while next()["remediations"][0]["step"] != "Released" {}
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn explain_follows_a_machine_to_its_host_its_key_its_power_and_its_steps() {
    let stage = under_way();
    let (code, text, errors) = ended(stage.dogwatch(&["explain", "machine/machines/m1"]));
    assert_eq!((code, errors.as_str()), (0, ""), "{text}");
    assert!(
        text.starts_with("machine/machines/m1: PoweringOff for "),
        "{text}"
    );
    for line in [
        "asked       annotation host.metal3.io/external-remediation stands on it",
        "host        metal/m1, by annotation metal3.io/BareMetalHost on the Machine",
        "node        n1, Ready",
        "key         reboot.metal3.io/machine-remediation stands on the host: it is held off",
        "power       PoweringOff, observed",
        "says        PoweringOff: the host goes off",
        "step        Requested at 1970-01-01 00:00:10Z",
        "KeyAdded at 1970-01-01 00:00:12Z, after 2.0s",
        "→ dogwatch explain host/metal/m1",
        "→ to call it off: kubectl annotate -n machines machines.machine.openshift.io m1 host.metal3.io/external-remediation-",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let (_, by_namespace, _) = ended(stage.dogwatch(&["-n", "machines", "explain", "machine/m1"]));
    assert!(
        by_namespace.starts_with("machine/machines/m1: PoweringOff"),
        "{by_namespace}"
    );
    let (_, json, _) = ended(stage.dogwatch(&["explain", "machine/machines/m1", "-o", "json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["node"], &json["host"]),
        (&json!("n1"), &json!("metal/m1"))
    );
    assert_eq!(json["timeline"][1]["afterMs"], 2000);
    let (_, text, _) = ended(stage.dogwatch(&["explain", "host/metal/m1"]));
    assert!(
        text.contains("remediation  of machine/machines/m1: KeyAdded since"),
        "{text}"
    );
}

#[test]
fn a_node_is_explained_across_planned_and_forced_work_and_while_it_is_deleted() {
    let stage = under_way();
    let (code, text, errors) = ended(stage.dogwatch(&["explain", "node/n1"]));
    assert_eq!((code, errors.as_str()), (0, ""), "{text}");
    assert!(
        text.starts_with("n1: nothing is under way\n"),
        "the planned part: {text}"
    );
    assert!(
        text.contains("\n\nmachine/machines/m1: PoweringOff for "),
        "{text}"
    );
    stage.delete("/api/v1/nodes/n1");
    let (code, text, errors) = ended(stage.dogwatch(&["explain", "node/n1"]));
    assert_eq!((code, errors.as_str()), (0, ""), "{text}");
    assert!(text.starts_with("machine/machines/m1: "), "{text}");
    assert!(text.contains("node        n1 is not there"), "{text}");
    let (_, json, _) = ended(stage.dogwatch(&["explain", "node/n1", "-o", "json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["remediations"][0]["subject"], "machine/machines/m1");
    let (code, ..) = ended(stage.dogwatch(&["explain", "node/n2"]));
    assert_eq!(code, 3, "a Node that nobody remediates is not there");
}

#[test]
fn a_request_is_explained_with_its_attempts_and_its_own_timeline() {
    let stage = with_kinds();
    stage.node("n1", None, 0);
    host(
        &stage,
        "metal",
        "h1",
        &json!({ "metadata": { "annotations": { "dogwatch.dev/node": "n1" } } }),
    );
    let request = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "PowerRemediation",
        "metadata": { "name": "n1", "namespace": "machines" },
        "spec": { "strategy": { "type": "OutOfServiceTaint", "retryLimit": 2, "timeout": "7m" } } });
    stage.post(REQUESTS, &request);
    let status = json!({ "status": {
        "startedAt": "1970-01-01T00:00:10.000000Z",
        "attempt": { "number": 2, "startedAt": "1970-01-01T00:00:20.000000Z" },
        "timeline": [
            { "at": "1970-01-01T00:00:10.000000Z", "what": "Requested" },
            { "at": "1970-01-01T00:00:11.500000Z", "what": "KeyAdded" },
        ],
    } });
    stage.merge(&format!("{REQUESTS}/n1/status"), &status);
    for name in ["remediation/machines/n1", "powerremediation/machines/n1"] {
        let (code, text, errors) = ended(stage.dogwatch(&["explain", name]));
        assert_eq!((code, errors.as_str()), (0, ""), "{text}");
        for line in [
            "OutOfServiceTaint, 3 attempts of 7m each; attempt 2",
            "host        metal/h1, by its annotation dogwatch.dev/node",
            "attempt 2 ends ",
            "KeyAdded at 1970-01-01 00:00:11Z, after 1.5s",
            "→ to call it off: kubectl delete -n machines powerremediation n1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}

#[test]
fn a_link_that_leads_nowhere_is_said_although_no_controller_has_looked() {
    let stage = with_kinds();
    let nowhere = json!({ "metadata": { "annotations": {
        "host.metal3.io/external-remediation": "", "metal3.io/BareMetalHost": "metal/h9" } } });
    machine(&stage, "m1", "n1", &nowhere);
    let (code, text, _) = ended(stage.dogwatch(&["explain", "machine/machines/m1"]));
    assert_eq!(code, 0);
    assert!(
        text.starts_with("machine/machines/m1: HostNotFound\n"),
        "{text}"
    );
    assert!(text.contains("as it stands now: HostNotFound: machine machines/m1 is linked to BareMetalHost metal/h9"), "{text}");
    assert!(text.contains("→ kubectl annotate -n machines machines.machine.openshift.io m1 metal3.io/BareMetalHost=NAMESPACE/NAME"), "{text}");
    assert!(
        text.contains("→ start the controller"),
        "nobody leads: {text}"
    );
    let (_, text, _) = ended(stage.dogwatch(&["status", "remediations"]));
    assert!(text.contains("HostNotFound: machine machines/m1"), "{text}");
}

#[test]
fn what_is_not_there_is_answered_with_what_may_have_been_meant() {
    let stage = under_way();
    for (name, said) in [
        (
            "machine/machines/m2",
            "there is no Machine machines/m2 in this cluster",
        ),
        (
            "remediation/machines/r1",
            "there is no PowerRemediation machines/r1",
        ),
    ] {
        let (code, text, errors) = ended(stage.dogwatch(&["explain", name]));
        assert_eq!((code, text.as_str()), (3, ""), "{errors}");
        assert!(errors.contains(said), "{errors}");
    }
    let (_, _, errors) = ended(stage.dogwatch(&["explain", "machine/machines/m2"]));
    assert!(errors.contains("did you mean machines/m1?"), "{errors}");
    for wrong in ["machine/", "machine/a/b/c", "remediation/machines/UPPER"] {
        let (code, _, errors) = ended(stage.dogwatch(&["explain", wrong]));
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains("NAMESPACE/NAME"), "{errors}");
    }
    stage.deny(Verb::List, "machines");
    for args in [
        &["explain", "machine/machines/m1"][..],
        &["status", "remediations"],
        &["status", "remediations", "--watch"],
    ] {
        let (code, _, errors) = ended(stage.dogwatch(args));
        assert_eq!(code, 5, "{args:?} {errors}");
        assert!(errors.contains("\"machines\""), "{errors}");
    }
}

#[test]
fn without_hosts_there_is_nothing_to_remediate_and_the_kind_is_named() {
    let stage = Stage::new();
    stage.node("n1", None, 0);
    for args in [
        &["status", "remediations"][..],
        &["explain", "machine/a/b"],
        &["status", "remediations", "--watch"],
        &["confirm-off", "metal/h1", "--reason", "r"],
    ] {
        let (code, _, errors) = ended(stage.dogwatch(args));
        assert_eq!(code, 3, "{args:?} {errors}");
        assert!(
            errors.contains("BareMetalHost is not installed"),
            "{errors}"
        );
        assert!(errors.contains("dogwatch crds --hosts"), "{errors}");
    }
    let (code, _, errors) = ended(stage.dogwatch(&["explain", "node/n1"]));
    assert_eq!((code, errors.as_str()), (0, ""));
}

#[test]
fn a_check_says_beforehand_what_would_keep_a_node_from_being_fenced() {
    let stage = with_kinds();
    for node in ["n1", "n2", "n3"] {
        stage.node(node, None, 0);
    }
    stage.coordinators(&["n1", "n2", "n3"]);
    let is_paused = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } } });
    machine(&stage, "m1", "n1", &is_paused);
    host(&stage, "metal", "m1", &consumed("m1"));
    machine(&stage, "m2", "n2", &json!({}));
    let mut away = consumed("m2");
    away["status"] =
        json!({ "conditions": conditions("True", "AsWanted", "on", "False", "Unreachable") });
    host(&stage, "metal", "m2", &away);
    let (code, text, errors) = ended(stage.dogwatch(&["check", "--all"]));
    assert_eq!(code, 0, "{text} {errors}");
    for line in [
        "warns    remediation: if this node failed, none would begin: Paused: machine machines/m1",
        "warns    remediation: host metal/m2 may not be proved off: Unreachable: what the BMC said",
        "note     remediation: if this node failed, none would begin: NoHost: no BareMetalHost has annotation",
        "note     remediation: the Node tells no system UUID",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let stage = under_way();
    stage.coordinators(&["n1"]);
    let (code, text, _) = ended(stage.dogwatch(&["check", "n1"]));
    assert_eq!(code, 6, "{text}");
    assert!(
        text.contains("blocks   remediation: machine/machines/m1 is under way"),
        "{text}"
    );
}

#[test]
fn a_word_without_a_reason_is_none_and_neither_is_one_on_a_host_that_we_do_not_hold_off() {
    let stage = under_way();
    for args in [
        &["confirm-off", "metal/m1"][..],
        &["confirm-off", "metal/m1", "--reason", "  "],
        &["confirm-off", "a/b/c", "--reason", "r"],
        &[
            "confirm-off",
            "metal/m1",
            "--reason",
            "r",
            "--timeout",
            "1m",
        ],
    ] {
        let (code, _, errors) = ended(stage.dogwatch(args));
        assert_eq!(code, 2, "{args:?} {errors}");
    }
    host(&stage, "metal", "h2", &json!({}));
    let refused = |name: &str| {
        let args = ["confirm-off", name, "--reason", "unplugged", "--yes"];
        ended(stage.dogwatch(&args))
    };
    let (code, _, errors) = refused("metal/h2");
    assert_eq!(code, 1, "{errors}");
    assert!(
        errors.contains("carries no key of a remediation"),
        "{errors}"
    );
    let is_on = json!({ "status": { "power": { "state": "On" } } });
    stage.merge(&format!("{}/status", path("metal", "m1")), &is_on);
    let (code, _, errors) = refused("metal/m1");
    assert_eq!(code, 1, "{errors}");
    assert!(
        errors.contains("host metal/m1 is On by its BMC"),
        "{errors}"
    );
    let (code, _, errors) = refused("metal/m9");
    assert_eq!(code, 3, "{errors}");
    assert!(errors.contains("did you mean metal/m1"), "{errors}");
}
