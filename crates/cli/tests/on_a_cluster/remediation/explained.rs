//! Tests `dogwatch explain` of a Machine, a Node and a request.

use dogwatch_kubesim::api::ApiVerb;
use serde_json::json;

use super::{REQUESTS, machine, under_way, with_kinds};
use crate::hosts::host;
use crate::stage::{ended, in_json, shown};

#[test]
fn explain_follows_a_machine_to_its_host_its_key_its_power_and_its_steps() {
    let stage = under_way();
    let text = shown(stage.dogwatch(&["explain", "machine/machines/m1"]));
    assert!(
        text.starts_with("machine/machines/m1: PoweringOff for "),
        "{text}"
    );
    for line in [
        "asked       it has annotation host.metal3.io/external-remediation",
        "host        metal/m1, by annotation metal3.io/BareMetalHost on the Machine",
        "node        n1, Ready",
        "key         the host has reboot.metal3.io/machine-remediation: it is kept off",
        "power       PoweringOff, observed",
        "says        PoweringOff: the host goes off",
        "step        Requested at 1970-01-01 00:00:10Z",
        "KeyAdded at 1970-01-01 00:00:12Z, after 2.0s",
        "→ dogwatch explain host/metal/m1",
        "→ to cancel the remediation: kubectl annotate -n machines machines.machine.openshift.io m1 host.metal3.io/external-remediation-",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let (_, by_namespace, _) = ended(stage.dogwatch(&["-n", "machines", "explain", "machine/m1"]));
    assert!(
        by_namespace.starts_with("machine/machines/m1: PoweringOff"),
        "{by_namespace}"
    );
    let json = in_json(stage.dogwatch(&["explain", "machine/machines/m1", "-o", "json"]));
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
fn in_the_middle_of_a_remediation_a_node_is_explained_by_that_first_and_while_it_is_deleted() {
    let stage = under_way();
    let text = shown(stage.dogwatch(&["explain", "node/n1"]));
    assert!(
        text.starts_with("machine/machines/m1: PoweringOff for "),
        "{text}"
    );
    assert!(
        text.contains("\n\nn1: no planned reboot is under way\n"),
        "the planned part: {text}"
    );
    assert!(!text.contains("to reboot it"), "{text}");
    stage.delete("/api/v1/nodes/n1");
    let text = shown(stage.dogwatch(&["explain", "node/n1"]));
    assert!(text.starts_with("machine/machines/m1: "), "{text}");
    assert!(text.contains("node        n1 does not exist"), "{text}");
    let json = in_json(stage.dogwatch(&["explain", "node/n1", "-o", "json"]));
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
        let text = shown(stage.dogwatch(&["explain", name]));
        for line in [
            "OutOfServiceTaint, 3 attempts of 7m each; attempt 2",
            "host        metal/h1, by its annotation dogwatch.dev/node",
            "attempt 2 ends ",
            "KeyAdded at 1970-01-01 00:00:11Z, after 1.5s",
            "→ to cancel the remediation: kubectl delete -n machines powerremediation n1",
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
    assert!(
        text.contains(
            "current state: HostNotFound: machine machines/m1 is linked to BareMetalHost metal/h9"
        ),
        "{text}"
    );
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
    stage.deny(ApiVerb::List, "machines");
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
