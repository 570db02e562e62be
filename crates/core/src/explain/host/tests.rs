//! Tests of the explanation of a host.

use super::testkit::{annotated, going_off, host, level, said, view};
use super::*;
use crate::explain::testkit::{at, now};
use crate::power::{FaultClass, PowerReason, PowerState};

fn told(view: &HostReportInput) -> String {
    let explanation = explain_host(view, now(100));
    let lines = explanation.chain.iter();
    let lines: Vec<String> = lines
        .map(|line| format!("{}: {}", line.topic.as_str(), line.text))
        .collect();
    let advice: Vec<String> = explanation
        .advice
        .iter()
        .map(|text| format!("→ {text}"))
        .collect();
    format!(
        "{}\n{}\n{}\n",
        explanation.summary,
        lines.join("\n"),
        advice.join("\n")
    )
}

#[test]
fn a_host_that_is_well_is_told_in_a_few_lines_and_nothing_is_to_be_done() {
    assert_eq!(
        told(&view(host("h1"))),
        "metal/h1: On, as requested for 60s: AsWanted\n\
         asked: spec.online is true: on\n\
         power: On, observed 40s ago\n\
         says: AsWanted: on, as spec.online says\n\
         bmc: level 0: redfish://192.0.2.1\n\
         bmc: power control works: Checked: it answers\n\
         controller: c-1 leads, renewed 2s ago\n\n"
    );
}

#[test]
fn a_reboot_under_way_names_who_asked_what_was_sent_and_what_comes_next() {
    let asked = annotated(
        going_off(host("h1")),
        &[(
            "reboot.metal3.io",
            r#"{"mode":"soft","requester":"ann","reason":"new firmware"}"#,
        )],
    );
    let told = told(&view(asked));
    for part in [
        "metal/h1: PoweringOff, not as requested for 60s: SoftPowerOff\n",
        "asked: reboot.metal3.io: reboot, once, soft, by ann: \"new firmware\"\n",
        "phase: a reboot is pending since 1970-01-01 00:00:30Z (70s)\n",
        "command: SoftPowerOff decided since 1970-01-01 00:00:30Z (70s) (RebootRequested)\n",
        "command: the BMC accepted it 69s ago\n",
        "says: SoftPowerOff: asked to shut down; the power is cut in 2m50s\n",
    ] {
        assert!(told.contains(part), "{part:?} is not in\n{told}");
    }
}

#[test]
fn a_host_that_is_held_off_names_each_key_and_whether_off_is_proved_for_it() {
    let mut held = annotated(
        host("h1"),
        &[
            ("reboot.metal3.io/early", ""),
            ("reboot.metal3.io/late", r#"{"mode":"hard"}"#),
        ],
    );
    held.status.power.state = Some(PowerState::Off);
    held.status.powered_on = Some(false);
    held.status.power.off_confirmed_at = Some(at(50));
    held.status.power.confirmed_for = vec![explained_annotations(&held)[0].request.id()];
    held.status.conditions[0] = said(
        POWER_AS_WANTED,
        "True",
        "HeldOff",
        "held off by early, late",
    );
    let told = told(&view(held.clone()));
    for part in [
        "metal/h1: Off, as requested for 60s: HeldOff\n",
        "asked: reboot.metal3.io/early: off until it is removed, soft\n",
        "asked: reboot.metal3.io/late: off until it is removed, hard\n",
        "off: confirmed since 1970-01-01 00:00:50Z (50s), after the request of early\n",
        "off: to be confirmed again for late, which was added later\n",
        "dogwatch power release metal/h1 --key early\n",
    ] {
        assert!(told.contains(part), "{part:?} is not in\n{told}");
    }
    let row = host_row(&held, None);
    assert_eq!(
        (row.wanted, row.held_off_by),
        ("held off", vec!["early".into(), "late".into()])
    );
}

#[test]
fn off_that_was_only_read_is_not_told_as_confirmed() {
    let mut off = host("h1");
    off.status.power.state = Some(PowerState::Off);
    let told = told(&view(off));
    assert!(
        told.contains("off: not confirmed: Dogwatch releases no Node of this host\n"),
        "{told}"
    );
    assert!(told.contains("status.poweredOn is true"), "{told}");
}

#[test]
fn an_annotation_that_is_not_obeyed_is_told_with_the_reason_and_wants_nothing() {
    let mut inspecting = annotated(host("h1"), &[("reboot.metal3.io/k", "")]);
    inspecting.status.provisioning = Some("inspecting".into());
    let told = told(&view(inspecting.clone()));
    assert!(
        told.contains("NOT obeyed: the host is in provisioning state inspecting"),
        "{told}"
    );
    assert_eq!(wanted_power(&inspecting), WantedPower::On);
    let forced = annotated(inspecting, &[("reboot.metal3.io/k", r#"{"force":true}"#)]);
    assert_eq!(wanted_power(&forced), WantedPower::HeldOff);
}

#[test]
fn a_value_that_cannot_be_understood_is_told_with_what_to_write() {
    let told = told(&view(annotated(
        host("h1"),
        &[("reboot.metal3.io/k", "hard")],
    )));
    assert!(told.contains("and counts as soft\n"), "{told}");
    assert!(
        told.contains("→ write it as JSON: kubectl annotate -n metal bmh h1"),
        "{told}"
    );
}

#[test]
fn where_the_power_is_wanted_follows_from_spec_keys_and_times() {
    let offline = |mut host: HostSnapshot| {
        host.online = false;
        host
    };
    let off = |mut host: HostSnapshot| {
        host.status.powered_on = Some(false);
        host
    };
    let base = ("reboot.metal3.io", "");
    let key = ("reboot.metal3.io/k", "");
    for (host, expected) in [
        (host("h"), WantedPower::On),
        (offline(host("h")), WantedPower::Off),
        (annotated(host("h"), &[base]), WantedPower::Reboot),
        (annotated(off(host("h")), &[base]), WantedPower::On),
        (going_off(host("h")), WantedPower::Reboot),
        (
            annotated(offline(host("h")), &[key, base]),
            WantedPower::HeldOff,
        ),
    ] {
        assert_eq!(
            wanted_power(&host),
            expected,
            "{:?} {}",
            host.annotations,
            host.online
        );
    }
}

#[test]
fn what_no_reading_can_change_is_told_by_the_decision_itself_before_the_controller_looked() {
    let mut unseen = host("h1");
    unseen.status.conditions.clear();
    unseen.status.power.state = None;
    let mut without = unseen.clone();
    without.levels.clear();
    let mut no_address = unseen.clone();
    no_address.levels = vec![level("gopher://x")];
    let mut always_on = unseen.clone();
    always_on.disable_power_off = true;
    let theirs = HostReportInput {
        owner: HostOwner::Metal3 {
            leader: "bmo-1".into(),
        },
        ..view(unseen.clone())
    };
    let shared = HostReportInput {
        shared_with: vec![HostName::new("metal", "h2")],
        ..view(unseen.clone())
    };
    let detached = annotated(unseen.clone(), &[("baremetalhost.metal3.io/detached", "")]);
    let held_off = annotated(always_on, &[("reboot.metal3.io/key", "")]);
    for (view, reason) in [
        (view(without), PowerReason::NoBMC),
        (view(no_address), PowerReason::InvalidBMCAddress),
        (view(held_off), PowerReason::PowerOffDisabled),
        (theirs, PowerReason::OwnedByBaremetalOperator),
        (shared, PowerReason::SharedBMC),
        (view(detached), PowerReason::Detached),
    ] {
        let told = told(&view);
        let summary = format!("metal/h1: Dogwatch does not control its power: {reason}\n");
        assert!(told.starts_with(&summary), "{reason}: {told}");
        let says = format!("says: current state: {reason}: ");
        assert!(told.contains(&says), "{reason}: {told}");
    }
}

#[test]
fn a_host_that_nobody_has_looked_at_says_so_and_how_to_have_it_looked_at() {
    let mut unseen = host("h1");
    unseen.status.conditions.clear();
    unseen.status.power.state = None;
    let leads = told(&view(unseen.clone()));
    assert!(
        leads.starts_with("metal/h1: no power controller has checked it\n"),
        "{leads}"
    );
    assert!(
        leads.contains("→ run the controller with --components power\n"),
        "{leads}"
    );
    for controller in [
        ObservedController::Nobody,
        ObservedController::Leads {
            holder: "dead".into(),
            renewed: Some(at(20)),
        },
    ] {
        let nobody = told(&HostReportInput {
            controller,
            ..view(unseen.clone())
        });
        assert!(nobody.contains("→ start the controller: "), "{nobody}");
    }
}

#[test]
fn each_class_of_trouble_with_a_bmc_has_its_next_step() {
    for class in FaultClass::ALL {
        let mut sick = host("h1");
        sick.status.conditions[1] = said(
            POWER_CONTROL_READY,
            "False",
            class.power_reason().as_str(),
            "the BMC did not do it",
        );
        let told = told(&view(sick));
        assert!(
            told.contains(&format!("→ {}\n", class.next_step())),
            "{told}"
        );
        assert!(
            told.contains("bmc: power control does not work: "),
            "{told}"
        );
    }
}

#[test]
fn who_is_not_well_comes_first_and_no_row_shows_more_of_an_address_than_its_host() {
    let mut sick = host("z");
    sick.status.conditions[1] = said(POWER_CONTROL_READY, "False", "Unreachable", "no route");
    sick.levels = vec![level("fence+fence_apc://pdu:23?plug=3&community=sekret16")];
    let hosts = [host("b"), sick, host("a")];
    let rows = host_rows(&hosts, |_| None);
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["z", "a", "b"]);
    assert_eq!(rows[1].bmc.as_deref(), Some("redfish://192.0.2.1"));
    assert_eq!(rows[0].not_ready.as_deref(), Some("Unreachable: no route"));
    let json = serde_json::to_string(&rows).unwrap();
    assert!(!json.contains("sekret16"), "{json}");
}
