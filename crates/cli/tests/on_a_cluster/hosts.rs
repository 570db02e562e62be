//! Tests `dogwatch status hosts`, `dogwatch explain host/…`, and hosts beside nodes.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use dogwatch_kubesim::api::ApiVerb;
use serde_json::{Value, json};

use super::stage::{Stage, ended, in_json, shown};

/// A cluster with the kind BareMetalHost and namespace `metal`.
pub fn with_hosts() -> Stage {
    let stage = Stage::new();
    let kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    stage.post(kinds, &dogwatch_api::bare_metal_host::host_crd());
    for name in ["metal", "rack-2"] {
        let namespace = json!({ "metadata": { "name": name } });
        stage.post("/api/v1/namespaces", &namespace);
    }
    stage
}

/// The API path of a host.
pub fn path(namespace: &str, name: &str) -> String {
    format!("/apis/metal3.io/v1alpha1/namespaces/{namespace}/baremetalhosts/{name}")
}

/// Creates a provisioned host that is on and well; `over` is merged over it.
pub fn host(stage: &Stage, namespace: &str, name: &str, over: &Value) {
    let hosts = format!("/apis/metal3.io/v1alpha1/namespaces/{namespace}/baremetalhosts");
    stage.post(
        &hosts,
        &json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": name, "namespace": namespace },
            "spec": {
                "online": true,
                "bmc": { "address": format!("redfish://{name}.bmc/redfish/v1/Systems/1"), "credentialsName": "bmc" },
            },
        }),
    );
    let well = json!({ "status": {
        "poweredOn": true,
        "provisioning": { "state": "provisioned", "ID": "", "lastPoweredOn": "2026-01-01T00:00:10.000000Z" },
        "power": { "state": "On", "observedAt": "2026-01-01T00:01:00.000000Z" },
        "conditions": conditions("True", "AsWanted", "on, as spec.online says", "True", "Checked"),
    } });
    stage.merge(&format!("{}/status", path(namespace, name)), &well);
    stage.merge(&path(namespace, name), over);
    if over.get("status").is_some() {
        stage.merge(&format!("{}/status", path(namespace, name)), over);
    }
}

/// The two conditions that every host has.
pub fn conditions(wanted: &str, reason: &str, message: &str, ready: &str, checked: &str) -> Value {
    let at = "2026-01-01T00:00:40Z";
    json!([
        { "type": "PowerAsWanted", "status": wanted, "reason": reason, "message": message,
          "lastTransitionTime": at },
        { "type": "PowerControlReady", "status": ready, "reason": checked, "message": "what the BMC said",
          "lastTransitionTime": at },
    ])
}

fn held_off() -> Value {
    json!({
        "metadata": { "annotations": { "reboot.metal3.io/repair": "", "dogwatch.dev/node": "n1" } },
        "status": {
            "poweredOn": false,
            "power": { "state": "Off", "offConfirmedAt": "2026-01-01T00:00:30.000000Z" },
            "conditions": conditions("True", "HeldOff", "held off by repair", "True", "Checked"),
        },
    })
}

fn unreachable() -> Value {
    json!({ "status": {
        "power": { "state": "Unknown" },
        "conditions": conditions("Unknown", "PowerUnknown", "no reading", "False", "Unreachable"),
    } })
}

#[test]
fn status_shows_each_host_whose_hold_it_is_and_which_bmc_fails() {
    let stage = with_hosts();
    host(&stage, "metal", "h1", &held_off());
    host(&stage, "metal", "h2", &json!({}));
    host(&stage, "rack-2", "h3", &unreachable());
    let text = shown(stage.dogwatch(&["status", "hosts"]));
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows[0].starts_with("NAMESPACE   HOST   POWER"), "{text}");
    assert!(
        rows[1].starts_with("rack-2      h3     Unknown"),
        "who is not well comes first: {text}"
    );
    assert!(
        rows[1].ends_with("Unreachable: what the BMC said"),
        "{text}"
    );
    assert!(
        rows[2].contains("h1     Off       held off   repair"),
        "{text}"
    );
    assert!(
        rows[2].contains(" n1 ") && rows[2].contains("redfish://h1.bmc "),
        "{text}"
    );
    assert!(
        rows[3].ends_with("AsWanted: on, as spec.online says"),
        "{text}"
    );

    let (_, text, _) = ended(stage.dogwatch(&["status", "hosts", "-n", "rack-2"]));
    assert_eq!(text.lines().count(), 2, "{text}");
    let (_, text, _) = ended(stage.dogwatch(&["status", "hosts", "-o", "wide"]));
    assert!(text.contains("OFF-CONFIRMED"), "{text}");
    let json = in_json(stage.dogwatch(&["status", "hosts", "-A", "-o", "json"]));
    assert_eq!(json["hosts"][1]["heldOffBy"], json!(["repair"]));
    assert_eq!(json["hosts"][1]["wanted"], "held off");
    assert_eq!(json["nodes"], json!([]));
}

#[test]
fn the_whole_status_has_the_hosts_below_the_nodes() {
    let stage = with_hosts();
    stage.node("n1", None, 0);
    host(&stage, "metal", "h1", &json!({}));
    let text = shown(stage.dogwatch(&["status"]));
    assert!(text.contains("\n\nNODE "), "{text}");
    assert!(text.contains("\nNAMESPACE   HOST "), "{text}");
    stage.deny(ApiVerb::List, "baremetalhosts");
    let (code, text, errors) = ended(stage.dogwatch(&["status"]));
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("the hosts cannot be shown"), "{errors}");
    assert!(text.contains("n1"), "{text}");
}

#[test]
fn a_change_of_a_host_is_shown_while_it_is_watched() {
    let stage = with_hosts();
    host(&stage, "metal", "h1", &json!({}));
    let mut child = stage
        .dogwatch(&["status", "hosts", "--watch", "-o", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["hosts"][0]["power"], "On");
    stage.merge(&path("metal", "h1"), &held_off());
    stage.merge(&format!("{}/status", path("metal", "h1")), &held_off());
    while next()["hosts"][0]["power"] != "Off" {}
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn explain_names_who_holds_a_host_off_and_what_is_to_be_done() {
    let stage = with_hosts();
    host(&stage, "metal", "h1", &held_off());
    for args in [
        &["explain", "host/metal/h1"][..],
        &["explain", "host/h1", "-n", "metal"],
        &["explain", "bmh/metal/h1"],
    ] {
        let text = shown(stage.dogwatch(args));
        assert!(
            text.starts_with("metal/h1: Off, as requested for "),
            "{text}"
        );
        for part in [
            "asked       spec.online is true",
            "reboot.metal3.io/repair: off until it is removed, soft",
            "node        it runs Node n1",
            "off         confirmed since 2026-01-01 00:00:30Z",
            "says        HeldOff: held off by repair",
            "controller  no dogwatch controller leads",
            "→ the host is powered on when the writer of key repair removes it",
            "→ start the controller: ",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
    let json = in_json(stage.dogwatch(&["explain", "host/metal/h1", "-o", "json"]));
    assert_eq!(json["host"], "metal/h1");
    assert!(
        json["chain"]
            .as_array()
            .unwrap()
            .iter()
            .any(|line| line["topic"] == "off")
    );
}

#[test]
fn two_hosts_with_one_bmc_are_explained_before_any_controller_looked() {
    let stage = with_hosts();
    let same =
        json!({ "spec": { "bmc": { "address": "redfish://one.bmc/redfish/v1/Systems/1" } } });
    host(&stage, "metal", "h1", &same);
    host(&stage, "rack-2", "h2", &same);
    let explained = |host: &str| {
        let (code, text, _) = ended(stage.dogwatch(&["explain", &format!("host/{host}")]));
        assert_eq!(code, 0, "{text}");
        text
    };
    let refused = "Dogwatch does not control its power: SharedBMC";
    let (h1, h2) = (explained("metal/h1"), explained("rack-2/h2"));
    let (newer, older) = if h1.contains(refused) {
        (&h1, "rack-2/h2")
    } else {
        (&h2, "metal/h1")
    };
    assert!(newer.contains(refused), "{h1}{h2}");
    let says = format!("its BMC already belongs to {older}, which keeps it");
    assert!(newer.contains(&says), "{newer}");
}

#[test]
fn a_host_that_is_not_there_ends_with_3_and_the_nearest_is_named() {
    let stage = with_hosts();
    host(&stage, "metal", "h1", &json!({}));
    for args in [
        &["explain", "host/rack-2/h1"][..],
        &["power", "on", "rack-2/h1"],
        &["power", "status", "h1", "-n", "rack-2"],
        &["check", "hosts", "rack-2/h1"],
    ] {
        let (code, _, errors) = ended(stage.dogwatch(args));
        assert_eq!(code, 3, "{args:?} {errors}");
        assert!(errors.contains("no BareMetalHost rack-2/h1"), "{errors}");
        assert!(errors.contains("did you mean metal/h1?"), "{errors}");
    }
}

#[test]
fn without_the_kind_each_command_says_how_to_get_it() {
    let stage = Stage::new();
    for args in [
        &["status", "hosts"][..],
        &["status", "hosts", "--watch"],
        &["explain", "host/metal/h1"],
        &["power", "cycle", "metal/h1"],
        &["check", "hosts"],
    ] {
        let (code, _, errors) = ended(stage.dogwatch(args));
        assert_eq!(code, 3, "{args:?} {errors}");
        assert!(
            errors.contains("dogwatch crds --hosts"),
            "{args:?} {errors}"
        );
    }
}

#[test]
fn who_may_not_list_hosts_is_told_which_right_is_missing() {
    let stage = with_hosts();
    stage.deny(ApiVerb::List, "baremetalhosts");
    for args in [&["status", "hosts"][..], &["check", "hosts"]] {
        let (code, _, errors) = ended(stage.dogwatch(args));
        assert_eq!(code, 5, "{args:?} {errors}");
        assert!(
            errors.contains("cannot list resource \"baremetalhosts\""),
            "{errors}"
        );
    }
}

#[test]
fn hosts_are_completed_by_name_where_kubectl_asks() {
    use std::os::unix::process::CommandExt as _;
    let stage = with_hosts();
    host(&stage, "metal", "h1", &json!({}));
    host(&stage, "rack-2", "h3", &json!({}));
    for (typed, answer) in [
        (&["power", "off", "me"][..], "metal/h1\n:4\n"),
        (&["check", "hosts", ""], "metal/h1\nrack-2/h3\n:4\n"),
        (&["explain", "host/r"], "host/rack-2/h3\n:4\n"),
    ] {
        let mut command = stage.dogwatch(typed);
        let (code, text, _) = ended(command.arg0("kubectl_complete-dogwatch"));
        assert_eq!((code, text.as_str()), (0, answer), "{typed:?}");
    }
    let mut away = Stage::away().dogwatch(&["power", "off", ""]);
    let (code, text, _) = ended(away.arg0("kubectl_complete-dogwatch"));
    assert_eq!((code, text.as_str()), (0, ":4\n"));
}
