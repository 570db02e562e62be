//! `dogwatch status remediations`, `explain machine/…`, `remediation/…` and `node/…`, and `check`:
//! what they show of remediations from objects alone.

mod asked;
mod changed_meanwhile;
mod explained;
mod listed;

use serde_json::{Value, json};

use super::hosts::{conditions, host, path, with_hosts};
use super::stage::{Stage, ended, shown};

const MACHINES: &str = "/apis/machine.openshift.io/v1beta1/namespaces/machines/machines";
const REQUESTS: &str = "/apis/dogwatch.dev/v1alpha1/namespaces/machines/powerremediations";
const KEY: &str = "reboot.metal3.io/machine-remediation";

/// Has the kinds BareMetalHost, Machine and PowerRemediation, without objects.
fn with_kinds() -> Stage {
    let stage = with_hosts();
    let kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    stage.post(kinds, &dogwatch_testbed::fixtures::openshift_machines());
    stage.post(kinds, &dogwatch_api::power_remediation::remediation_crd());
    stage.post(
        "/api/v1/namespaces",
        &json!({ "metadata": { "name": "machines" } }),
    );
    stage
}

/// Creates a Machine of a Node on a host in namespace `metal`, and returns its UID.
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

/// The host's record of the remediation of Machine `m1`, with these steps.
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

/// Machine `m1` is marked, and its host `metal/m1` has carried its key since second 12.
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
    shown(stage.dogwatch(&["explain", "node/n1"]));
}

#[test]
fn a_check_says_beforehand_what_would_keep_a_node_from_being_fenced() {
    let stage = with_kinds();
    for node in ["n1", "n2", "n3", "n4"] {
        stage.node(node, None, 0);
    }
    stage.coordinators(&["n1", "n2", "n3", "n4"]);
    let is_paused = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } } });
    machine(&stage, "m1", "n1", &is_paused);
    host(&stage, "metal", "m1", &consumed("m1"));
    machine(&stage, "m3", "n4", &json!({}));
    let mut works = consumed("m3");
    works["status"] = json!({ "provisioning": { "state": "provisioned" },
        "conditions": conditions("True", "AsWanted", "on", "True", "Checked") });
    host(&stage, "metal", "m3", &works);
    machine(&stage, "m2", "n2", &json!({}));
    let mut away = consumed("m2");
    away["status"] =
        json!({ "conditions": conditions("True", "AsWanted", "on", "False", "Unreachable") });
    host(&stage, "metal", "m2", &away);
    let (code, text, errors) = ended(stage.dogwatch(&["check", "--all"]));
    assert_eq!(code, 0, "{text} {errors}");
    for line in [
        "warns    remediation: if this node failed, no remediation would begin: Paused: machine machines/m1",
        "warns    remediation: Dogwatch might be unable to prove host metal/m2 off: Unreachable: what the BMC said",
        "note     remediation: if this node failed, no remediation would begin: NoHost: no BareMetalHost has annotation",
        "note     remediation: the Node reports no system UUID",
        "note     remediation: if this node failed: host metal/m3 would be powered off; power control works",
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
    assert!(errors.contains("has no key of a remediation"), "{errors}");
    let is_on = json!({ "status": { "power": { "state": "On" } } });
    stage.merge(&format!("{}/status", path("metal", "m1")), &is_on);
    let (code, _, errors) = refused("metal/m1");
    assert_eq!(code, 1, "{errors}");
    assert!(
        errors.contains("host metal/m1 is On as its BMC reports"),
        "{errors}"
    );
    let (code, _, errors) = refused("metal/m9");
    assert_eq!(code, 3, "{errors}");
    assert!(errors.contains("did you mean metal/m1"), "{errors}");
}
