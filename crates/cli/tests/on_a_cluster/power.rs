//! Tests `dogwatch power`: what it writes, what it refuses, and how long it waits.

use std::process::Stdio;
use std::time::{Duration, Instant};

use dogwatch_kubesim::api::ApiVerb;
use serde_json::{Value, json};

use super::hosts::{conditions, host, path, with_hosts};
use super::pseudo_terminal::PseudoTerminal;
use super::stage::{Stage, ended};

const LONG: Duration = Duration::from_mins(2);

fn dogwatch(stage: &Stage, args: &[&str]) -> (i32, String, String) {
    ended(stage.dogwatch(args).stdin(Stdio::null()))
}

fn h1(stage: &Stage) -> Value {
    stage.get(&path("metal", "h1"))
}

fn annotations(stage: &Stage) -> Value {
    h1(stage)["metadata"]["annotations"].clone()
}

fn version(stage: &Stage) -> Value {
    h1(stage)["metadata"]["resourceVersion"].clone()
}

fn on() -> Stage {
    let stage = with_hosts();
    host(&stage, "metal", "h1", &json!({}));
    stage
}

fn off(more: &Value) -> Stage {
    let stage = with_hosts();
    let off = json!({ "status": {
        "poweredOn": false,
        "power": { "state": "Off", "offConfirmedAt": "2026-01-01T00:00:30.000000Z" },
    } });
    host(&stage, "metal", "h1", &off);
    stage.merge(&path("metal", "h1"), more);
    stage
}

#[test]
fn off_and_on_write_spec_online_and_nothing_else() {
    let stage = on();
    let (code, text, errors) = dogwatch(&stage, &["power", "off", "metal/h1"]);
    assert_eq!((code, errors.as_str()), (0, ""), "{text}");
    assert_eq!(text, "host/metal/h1 was requested to be off\n");
    assert_eq!(h1(&stage)["spec"]["online"], false);
    assert_eq!(annotations(&stage), Value::Null);
    let before = version(&stage);
    let (code, text, _) = dogwatch(&stage, &["power", "off", "host/metal/h1"]);
    assert_eq!(
        (code, text.as_str()),
        (
            0,
            "host/metal/h1 was already requested to be off; it is On\n"
        )
    );
    assert_eq!(version(&stage), before, "nothing was written");
    let (code, text, _) = dogwatch(&stage, &["power", "on", "h1", "-n", "metal"]);
    assert_eq!(
        (code, text.as_str()),
        (0, "host/metal/h1 was requested to be on\n")
    );
    assert_eq!(h1(&stage)["spec"]["online"], true);
}

#[test]
fn on_names_the_keys_that_hold_the_host_off_and_leaves_them() {
    let keys = json!({
        "metadata": { "annotations": { "reboot.metal3.io/machine-remediation": r#"{"mode":"hard"}"# } },
        "spec": { "online": false },
    });
    let stage = off(&keys);
    let (code, text, errors) = dogwatch(&stage, &["power", "on", "metal/h1"]);
    assert_eq!(code, 0, "{text}{errors}");
    assert!(
        errors.contains("stays off until these keys are released: machine-remediation"),
        "{errors}"
    );
    assert_eq!(annotations(&stage), keys["metadata"]["annotations"]);
}

#[test]
fn a_cycle_is_the_annotation_of_metal3_written_once() {
    let stage = on();
    let ask = |more: &[&str]| {
        let mut args = vec!["power", "cycle", "metal/h1", "--requester", "ann"];
        args.extend(more);
        dogwatch(&stage, &args)
    };
    let asked = || {
        let text = annotations(&stage)["reboot.metal3.io"].clone();
        serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap()
    };
    let (code, text, _) = ask(&["--reason", "new firmware"]);
    assert_eq!(
        (code, text.as_str()),
        (0, "host/metal/h1 was requested to reboot\n")
    );
    assert_eq!(
        asked(),
        json!({ "mode": "soft", "requester": "ann", "reason": "new firmware" })
    );
    let events = stage.get("/api/v1/namespaces/metal/events");
    let said = &events["items"][0];
    assert_eq!(said["reason"], "PowerRequested", "{events}");
    assert_eq!(said["message"], "ann requested a reboot: new firmware");
    assert_eq!(said["involvedObject"]["name"], "h1");

    let before = version(&stage);
    let (code, text, _) = ask(&[]);
    assert_eq!(
        (code, text.as_str()),
        (0, "host/metal/h1 was already requested to reboot (soft)\n")
    );
    assert_eq!(version(&stage), before, "nothing was written");
    let (code, ..) = ask(&["--hard"]);
    assert_eq!(
        (code, asked()["mode"].clone()),
        (0, json!("hard")),
        "hard is more than soft"
    );
    let (_, text, _) = ask(&["--soft"]);
    assert_eq!(
        text,
        "host/metal/h1 was already requested to reboot (hard)\n"
    );
    assert_eq!(asked()["mode"], "hard");
}

#[test]
fn a_host_that_is_off_is_not_rebooted_and_the_way_on_is_named() {
    let held = json!({ "metadata": { "annotations": { "reboot.metal3.io/repair": "" } } });
    for (more, next) in [
        (held, "dogwatch power release metal/h1 --key repair"),
        (
            json!({ "spec": { "online": false } }),
            "dogwatch power on metal/h1",
        ),
        (json!({}), "dogwatch explain host/metal/h1"),
    ] {
        let stage = off(&more);
        let before = version(&stage);
        let (code, _, errors) = dogwatch(&stage, &["power", "cycle", "metal/h1"]);
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains(next), "{next:?} is not in {errors}");
        assert_eq!(version(&stage), before, "nothing was written");
    }
}

#[test]
fn on_a_host_that_is_not_provisioned_only_force_writes_an_annotation() {
    let stage = on();
    let inspecting = json!({ "status": { "provisioning": { "state": "inspecting" } } });
    stage.merge(&format!("{}/status", path("metal", "h1")), &inspecting);
    for args in [
        &["power", "cycle", "metal/h1"][..],
        &["power", "hold", "metal/h1", "--key", "k"],
    ] {
        let (code, _, errors) = dogwatch(&stage, args);
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains("provisioning state inspecting"), "{errors}");
        assert_eq!(annotations(&stage), Value::Null);
    }
    let (code, ..) = dogwatch(&stage, &["power", "cycle", "metal/h1", "--force"]);
    assert_eq!(code, 0);
    let text = annotations(&stage)["reboot.metal3.io"].clone();
    assert!(text.as_str().unwrap().contains(r#""force":true"#), "{text}");
}

#[test]
fn a_host_with_disable_power_off_is_never_asked_to_go_off() {
    let stage = on();
    stage.merge(
        &path("metal", "h1"),
        &json!({ "spec": { "disablePowerOff": true } }),
    );
    let before = version(&stage);
    for args in [
        &["power", "off", "metal/h1"][..],
        &["power", "cycle", "metal/h1"],
        &["power", "hold", "metal/h1", "--key", "k"],
    ] {
        let (code, _, errors) = dogwatch(&stage, args);
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains("spec.disablePowerOff"), "{errors}");
    }
    assert_eq!(version(&stage), before, "nothing was written");
}

/// Makes Node n1 the host's Node, by annotation or by the Node's provider ID.
fn carries(stage: &Stage, by_annotation: bool) {
    if by_annotation {
        let names = json!({ "metadata": { "annotations": { "dogwatch.dev/node": "n1" } } });
        stage.merge(&path("metal", "h1"), &names);
    } else {
        let provider = json!({ "spec": { "providerID": "metal3://metal/h1/machine-7" } });
        stage.merge("/api/v1/nodes/n1", &provider);
    }
}

#[test]
fn a_host_whose_node_is_in_service_keeps_its_power_unless_a_person_says_so() {
    for by_annotation in [true, false] {
        let stage = on();
        stage.node("n1", None, 0);
        carries(&stage, by_annotation);
        let before = version(&stage);
        for args in [
            &["power", "off", "metal/h1"][..],
            &["power", "cycle", "metal/h1"],
            &["power", "hold", "metal/h1", "--key", "k"],
        ] {
            let (code, _, errors) = dogwatch(&stage, args);
            assert_eq!(code, 2, "{args:?} {errors}");
            assert!(
                errors.contains("carries Node n1, which is in service"),
                "{errors}"
            );
            assert!(errors.contains("dogwatch reboot n1"), "{errors}");
        }
        assert_eq!(version(&stage), before, "nothing was written");
        let (code, ..) = dogwatch(&stage, &["power", "off", "metal/h1", "--yes"]);
        assert_eq!(
            (code, h1(&stage)["spec"]["online"].clone()),
            (0, json!(false))
        );
    }
}

#[test]
fn a_cordoned_node_with_pods_is_not_drained_and_one_without_is() {
    let stage = on();
    stage.node("n1", None, 0);
    carries(&stage, true);
    stage.merge(
        "/api/v1/nodes/n1",
        &json!({ "spec": { "unschedulable": true } }),
    );
    stage.blocked_pod("n1");
    let (code, _, errors) = dogwatch(&stage, &["power", "off", "metal/h1"]);
    assert_eq!(code, 2, "{errors}");
    assert!(
        errors.contains("which is not drained: shop/db-0"),
        "{errors}"
    );
    stage.delete("/api/v1/namespaces/shop/pods/db-0");
    let (code, _, errors) = dogwatch(&stage, &["power", "off", "metal/h1"]);
    assert_eq!((code, errors.as_str()), (0, ""));
}

#[test]
fn an_answer_about_a_cordoned_node_is_none_for_one_that_is_in_service_again() {
    let stage = on();
    stage.node("n1", None, 0);
    carries(&stage, true);
    let cordon = |is_cordoned: bool| {
        let spec = json!({ "spec": { "unschedulable": is_cordoned } });
        stage.merge("/api/v1/nodes/n1", &spec);
    };
    stage.blocked_pod("n1");
    let ask = || {
        cordon(true);
        let command = stage.dogwatch(&["power", "off", "metal/h1"]);
        let mut terminal = PseudoTerminal::start(&command, (100, 30));
        terminal.see("which is not drained: shop/db-0");
        terminal.see("[y/N]");
        terminal
    };
    let mut terminal = ask();
    cordon(false);
    terminal.press_and_see(
        "y\n",
        "has changed since you were asked, so nothing was done",
    );
    terminal.see("carries Node n1, which is in service");
    assert_eq!(terminal.wait_for_end(), 1);
    assert_eq!(h1(&stage)["spec"]["online"], true);
    let mut terminal = ask();
    stage.delete("/api/v1/namespaces/shop/pods/db-0");
    terminal.press_and_see("y\n", "was requested to be off");
    assert_eq!(terminal.wait_for_end(), 0);
    assert_eq!(h1(&stage)["spec"]["online"], false);
}

#[test]
fn a_hold_and_its_release_touch_one_key_and_no_other() {
    let others = json!({ "metadata": { "annotations": {
        "reboot.metal3.io/machine-remediation": r#"{"mode":"hard","machineUID":"u"}"#,
    } } });
    let stage = off(&others);
    let hold = [
        "power",
        "hold",
        "metal/h1",
        "--key",
        "repair",
        "--requester",
        "ann",
    ];
    let (code, text, _) = dogwatch(&stage, &hold);
    let asked = "host/metal/h1 was requested to be off until key repair is released\n";
    assert_eq!((code, text.as_str()), (0, asked));
    let (code, text, _) = dogwatch(&stage, &hold);
    assert_eq!(code, 0);
    assert!(
        text.contains("by key repair; it is Off, kept off by machine-remediation, repair"),
        "{text}"
    );
    let (code, _, errors) = dogwatch(&stage, &[&hold[..5], &["--requester", "bob"]].concat());
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("already has key repair"), "{errors}");

    let release = |key: &str| dogwatch(&stage, &["power", "release", "metal/h1", "--key", key]);
    let (code, _, errors) = release("machine-remediation");
    assert_eq!(code, 2, "{errors}");
    assert!(
        errors.contains("was not written by `dogwatch power hold`"),
        "{errors}"
    );
    let (code, text, errors) = release("repair");
    assert_eq!(
        (code, text.as_str()),
        (0, "host/metal/h1 is no longer kept off by key repair\n")
    );
    assert!(
        errors.contains("until these keys are released: machine-remediation"),
        "{errors}"
    );
    assert_eq!(annotations(&stage), others["metadata"]["annotations"]);
    let (code, text, _) = release("repair");
    assert_eq!(
        (code, text.as_str()),
        (
            0,
            "host/metal/h1 is not kept off by key repair, but by machine-remediation\n"
        )
    );
}

#[test]
fn what_keeps_a_wish_from_coming_about_is_said_at_once() {
    let stage = on();
    let failing = json!({ "status": {
        "conditions": conditions("True", "AsWanted", "", "False", "WrongCredentials"),
    } });
    stage.merge(&format!("{}/status", path("metal", "h1")), &failing);
    let (code, _, errors) = dogwatch(&stage, &["power", "off", "metal/h1"]);
    assert_eq!(code, 0, "{errors}");
    assert!(
        errors.contains("power control does not work now: WrongCredentials"),
        "{errors}"
    );
    assert!(
        errors.contains("→ correct username and password in the host's Secret"),
        "{errors}"
    );
}

#[test]
fn who_may_not_change_hosts_ends_with_5() {
    let stage = on();
    stage.deny(ApiVerb::Patch, "baremetalhosts");
    let (code, _, errors) = dogwatch(&stage, &["power", "off", "metal/h1"]);
    assert_eq!(code, 5, "{errors}");
    assert!(
        errors.contains("not allowed to switch off host metal/h1"),
        "{errors}"
    );
}

#[test]
fn power_status_is_one_row_or_one_object() {
    let stage = on();
    let (code, text, _) = dogwatch(&stage, &["power", "status", "metal/h1"]);
    assert_eq!((code, text.lines().count()), (0, 2), "{text}");
    let (_, json, _) = dogwatch(&stage, &["power", "status", "metal/h1", "-o", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["power"], &json["wanted"]),
        (&json!("On"), &json!("on"))
    );
}

/// Writes `then` as the power controller would, once the host satisfies `is_so`.
fn when(stage: &Stage, is_so: impl Fn(&Value) -> bool, then: &Value) {
    let deadline = Instant::now() + LONG;
    while !is_so(&h1(stage)) {
        assert!(Instant::now() < deadline, "nobody asked");
        std::thread::sleep(Duration::from_millis(10));
    }
    stage.merge(&format!("{}/status", path("metal", "h1")), then);
}

#[test]
fn off_is_waited_for_until_it_is_confirmed_and_each_step_is_told() {
    let stage = on();
    let child = stage
        .dogwatch(&["power", "off", "metal/h1", "--wait", "--timeout", "20s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let going = json!({ "status": {
        "power": { "state": "PoweringOff" },
        "conditions": conditions("False", "SoftPowerOff", "asked to shut down", "True", "Checked"),
    } });
    when(&stage, |host| host["spec"]["online"] == false, &going);
    let read = json!({ "status": { "poweredOn": false, "power": { "state": "Off" },
        "conditions": conditions("False", "ConfirmingOff", "said off once", "True", "Checked") } });
    when(&stage, |_| true, &read);
    let off = json!({ "status": { "power": { "offConfirmedAt": "2026-01-01T00:02:00.000000Z" } } });
    when(&stage, |_| true, &off);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let last = text.lines().last().unwrap();
    assert_eq!(last, "host/metal/h1 is confirmed off", "{text}");
}

#[test]
fn what_does_not_come_about_in_time_ends_with_1_and_the_controllers_own_reason() {
    let stage = on();
    let stuck = json!({ "status": {
        "power": { "state": "Unknown" },
        "conditions": conditions("Unknown", "PowerUnknown", "the BMC does not answer", "True", "Checked"),
    } });
    stage.merge(&format!("{}/status", path("metal", "h1")), &stuck);
    let args = ["power", "off", "metal/h1", "--wait", "--timeout", "300ms"];
    let (code, text, errors) = dogwatch(&stage, &args);
    assert_eq!(code, 1, "{text}{errors}");
    assert!(
        errors.contains("did not reach the requested state within 300ms"),
        "{errors}"
    );
    assert!(
        errors.contains("PowerUnknown: the BMC does not answer"),
        "{errors}"
    );
    assert!(
        errors.contains("dogwatch explain host/metal/h1"),
        "{errors}"
    );
    assert_eq!(h1(&stage)["spec"]["online"], false, "the request stays");
}

#[test]
fn bad_words_end_with_2_and_ask_nobody() {
    let home = tempfile::tempdir().unwrap();
    for args in [
        &["power"][..],
        &["power", "on"],
        &["power", "on", "a/b/c"],
        &["power", "cycle", "metal/h1", "--hard", "--soft"],
        &["power", "hold", "metal/h1"],
        &["power", "hold", "metal/h1", "--key", "a/b"],
        &["power", "off", "metal/h1", "--timeout", "5s"],
        &["status", "hosts", "-A", "-n", "metal"],
    ] {
        let (code, _, errors) = ended(super::stage::alone(home.path()).args(args));
        assert_eq!(code, 2, "{args:?} {errors}");
    }
}
