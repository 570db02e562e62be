//! Tests `dogwatch remediate`: its output, its question, and which object gets the mark.

use dogwatch_kubesim::api::ApiVerb;
use serde_json::{Value, json};

use super::{MACHINES, consumed, machine, under_way, with_kinds};
use crate::hosts::{conditions, host, path};
use crate::stage::{Stage, ended};

const NEED: &str = "host.metal3.io/external-remediation";

/// Node `n1` with Machine `m1`, and Node `n2` that host `metal/h2` names; power control of both
/// works.
pub(super) fn quiet() -> Stage {
    let stage = with_kinds();
    stage.node("n1", None, 0);
    stage.node("n2", None, 0);
    machine(&stage, "m1", "n1", &json!({}));
    host(&stage, "metal", "m1", &consumed("m1"));
    let named = json!({ "metadata": { "annotations": { "dogwatch.dev/node": "n2" } } });
    host(&stage, "metal", "h2", &named);
    for name in ["m1", "h2"] {
        let works = json!({ "status": { "provisioning": { "state": "provisioned" }, "power": { "state": "On" },
            "conditions": conditions("True", "AsWanted", "on", "True", "Checked") } });
        stage.merge(&format!("{}/status", path("metal", name)), &works);
    }
    stage
}

pub(super) fn mark(stage: &Stage, path: &str) -> Value {
    stage.get(path)["metadata"]["annotations"][NEED].clone()
}

#[test]
fn a_healthy_node_is_marked_only_after_it_was_said_what_happens_and_somebody_agreed() {
    let stage = quiet();
    let (code, _, errors) = ended(stage.dogwatch(&["remediate", "n1"]));
    assert_eq!(code, 2, "nobody can be asked here: {errors}");
    for says in [
        "host metal/m1 will be powered off without a shutdown; its power control works",
        "node n1 is Ready: its pods are killed without a drain; `dogwatch reboot n1` drains it first",
        "Node n1 is healthy. Cut the power of host metal/m1 and delete Node n1 anyway?",
        "add --yes",
    ] {
        assert!(errors.contains(says), "{says}: {errors}");
    }
    assert_eq!(mark(&stage, &format!("{MACHINES}/m1")), Value::Null);
    let (code, text, errors) = ended(stage.dogwatch(&["remediate", "node/n1", "--yes"]));
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("machine/machines/m1 is marked"), "{text}");
    assert_eq!(mark(&stage, &format!("{MACHINES}/m1")), "", "the Machine");
    assert_eq!(mark(&stage, "/api/v1/nodes/n1"), Value::Null, "no Node");
    let (code, text, errors) = ended(stage.dogwatch(&["remediate", "machine/machines/m1"]));
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("is being remediated already"), "{text}");
}

#[test]
fn a_node_without_a_machine_is_marked_itself() {
    let stage = quiet();
    let (code, text, errors) = ended(stage.dogwatch(&["remediate", "n2", "-y"]));
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("node/n2 is marked"), "{text}");
    assert_eq!(mark(&stage, "/api/v1/nodes/n2"), "");
    assert!(errors.contains("host metal/h2"), "{errors}");
}

#[test]
fn what_cannot_be_remediated_is_refused_with_what_to_do_and_nothing_is_marked() {
    let stage = quiet();
    stage.node("n3", None, 0);
    stage.node("n4", None, 0);
    machine(&stage, "m4", "n4", &json!({}));
    host(&stage, "metal", "m4", &consumed("another"));
    for (named, path, says) in [
        (
            "n3",
            "/api/v1/nodes/n3",
            "NoHost: no BareMetalHost has annotation dogwatch.dev/node",
        ),
        ("n4", &*format!("{MACHINES}/m4"), "HostOfAnother"),
    ] {
        let (code, _, errors) = ended(stage.dogwatch(&["remediate", named, "--yes"]));
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains("so nothing was done"), "{errors}");
        assert!(errors.contains(says), "{errors}");
        assert!(errors.contains("→ dogwatch explain"), "{errors}");
        assert_eq!(mark(&stage, path), Value::Null);
    }
    for (named, code, says) in [
        ("n9", 3, "did you mean"),
        ("machine/machines/m9", 3, "there is no Machine machines/m9"),
        (
            "remediation/a/b",
            2,
            "a PowerRemediation is itself a request",
        ),
        (
            "pod/a",
            2,
            "write NODE, node/NODE or machine/NAMESPACE/NAME",
        ),
    ] {
        let (ended_with, _, errors) = ended(stage.dogwatch(&["remediate", named, "--yes"]));
        assert_eq!(ended_with, code, "{named}: {errors}");
        assert!(errors.contains(says), "{named}: {errors}");
    }
}

#[test]
fn of_several_machines_of_one_node_name_none_is_marked_and_the_provider_id_says_which_one_is_meant()
{
    let stage = quiet();
    machine(&stage, "other", "n1", &json!({}));
    host(&stage, "metal", "other", &consumed("other"));
    let refused = |says: &str| {
        let (code, _, errors) = ended(stage.dogwatch(&["remediate", "n1", "--yes"]));
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains(says), "{says}: {errors}");
        assert!(
            errors.contains("dogwatch explain machine/NAMESPACE/NAME"),
            "{errors}"
        );
        for name in ["m1", "other"] {
            assert_eq!(mark(&stage, &format!("{MACHINES}/{name}")), Value::Null);
        }
    };
    refused("machine/machines/m1, machine/machines/other have a Node of this name");
    let provider = |path: &str, id: &str| {
        stage.merge(path, &json!({ "spec": { "providerID": id } }));
    };
    provider("/api/v1/nodes/n1", "metal3://metal/m1/x");
    provider(&format!("{MACHINES}/m1"), "metal3://metal/wrong/x");
    provider(&format!("{MACHINES}/other"), "metal3://metal/other/x");
    refused("machine/machines/m1, machine/machines/other have another spec.providerID");
    provider(&format!("{MACHINES}/m1"), "metal3://metal/m1/x");
    let (code, _, errors) = ended(stage.dogwatch(&["remediate", "n1", "--yes"]));
    assert_eq!(code, 1, "{errors}");
    let says = "machine/machines/m1 cannot be remediated, so nothing was done: NodeShared";
    assert!(errors.contains(says), "{errors}");
}

#[test]
fn who_may_not_mark_is_told_so() {
    let stage = quiet();
    stage.deny(ApiVerb::Patch, "machines");
    let (code, _, errors) = ended(stage.dogwatch(&["remediate", "n1", "--yes"]));
    assert_eq!(code, 5, "{errors}");
    assert!(errors.contains("mark machine/machines/m1"), "{errors}");
}

#[test]
fn one_that_is_under_way_is_followed_to_its_end() {
    let stage = under_way();
    let follow = ["remediate", "n1", "--wait", "--timeout", "1s"];
    let (code, text, errors) = ended(stage.dogwatch(&follow));
    assert_eq!(code, 1, "{errors}");
    assert!(text.contains("machine/machines/m1: PoweringOff"), "{text}");
    assert!(errors.contains("its remediation continues"), "{errors}");
}
