//! What a reboot annotation means. Source: specification §3.2, first and second item.

use proptest::prelude::*;

use super::world::*;
use crate::power::*;

fn read(value: &str) -> HostRebootAnnotation {
    reboot_annotations(&host(&[(KEY, value)], true)).remove(0)
}

#[test]
fn a_value_means_soft_unless_it_says_hard_and_is_reported_when_it_looks_like_an_attempt() {
    // value, hard, forced, reported
    for (value, is_hard, is_forced, is_reported) in [
        ("", false, false, false),
        ("{}", false, false, false),
        (r#"{"mode":"hard"}"#, true, false, false),
        (r#"{"mode":"soft"}"#, false, false, false),
        (r#"{"mode":""}"#, false, false, false),
        (r#"{"mode":"hard","force":true}"#, true, true, false),
        (r#"{"mode":"hard","machineUID":"1-2"}"#, true, false, false),
        ("{'mode':'hard'}", true, false, false),
        ("{'mode':'hard','force':true}", true, true, false),
        (r#" {"mode": "hard"} "#, true, false, false),
        ("0b7c3a52-8e0f-4c1f-9d2e-6f7f0a1b2c3d", false, false, false),
        ("somebody", false, false, false),
        (r#"{"mode":"medium"}"#, false, false, true),
        (r#"{"mode":"Hard"}"#, false, false, true),
        (r#"{"mode":true}"#, false, false, true),
        (r#"{"mode":"hard""#, false, false, true),
        (r#"{"mode":"hard","force":"yes"}"#, false, false, true),
        ("{'mode':\"hard\"}", false, false, true),
        ("mode=hard", false, false, true),
        ("hard", false, false, true),
        (r#""hard""#, false, false, true),
        ("[1]", false, false, false),
    ] {
        let request = read(value);
        assert_eq!(request.is_hard, is_hard, "{value}");
        assert_eq!(request.is_forced, is_forced, "{value}");
        assert_eq!(request.problem.is_some(), is_reported, "{value}");
    }
}

#[test]
fn only_the_prefix_with_a_slash_is_a_key() {
    let host = host(
        &[
            (BASE, ""),
            ("reboot.metal3.io/a", ""),
            ("reboot.metal3.iox", ""),
            ("reboot.metal3", ""),
            ("x.reboot.metal3.io/a", ""),
        ],
        true,
    );
    let keys: Vec<_> = reboot_annotations(&host)
        .into_iter()
        .map(|request| request.key)
        .collect();
    assert_eq!(keys, [None, Some("a".to_owned())]);
}

#[test]
fn a_bad_value_is_kept_and_said() {
    let mut world = World::new(&[(KEY, r#"{"mode":"medium"}"#)], true, true);
    world.until_confirmed();
    assert!(world.said(PowerReason::InvalidAnnotationValue));
    assert!(world.seen.host.annotations.contains_key(KEY));
    assert!(world.condition("PowerAsWanted").message.contains("mode"));
}

#[test]
fn one_hard_among_several_makes_it_hard_also_while_a_soft_power_off_is_under_way() {
    let mut world = World::new(&[(KEY, "")], true, true);
    world.bmcs[0].shuts_down = None;
    world.run(10);
    assert_eq!(world.kinds(), [PowerCommand::SoftOff]);
    world.annotate("reboot.metal3.io/fence", HARD);
    let asked = world.time;
    world.until("off", |world| !world.is_on());
    assert!(world.time - asked < 1_000, "at once");
    assert_eq!(world.kinds(), [PowerCommand::SoftOff, PowerCommand::Off]);
}

#[test]
fn off_provisioned_states_only_force_is_obeyed_and_the_rest_is_said() {
    let mut world = World::new(&[(BASE, HARD)], true, true);
    world.seen.host_mut().externally_provisioned = Some(false);
    world.run(60);
    assert_eq!(world.kinds(), []);
    assert!(world.said(PowerReason::NotProvisioned));
    assert!(world.seen.host.annotations.contains_key(BASE));
    world.annotate(BASE, r#"{"mode":"hard","force":true}"#);
    world.until_confirmed();
    world.until_on();
}

#[test]
fn where_no_provisioner_keeps_the_state_it_follows_externally_provisioned() {
    // spec, remembered, standing, written
    for (spec, remembered, standing, written) in [
        (None, None, None, "externally provisioned"),
        (Some(true), None, None, "externally provisioned"),
        (Some(false), None, None, "available"),
        (
            Some(false),
            None,
            Some("externally provisioned"),
            "available",
        ),
        (
            None,
            Some(true),
            Some("externally provisioned"),
            "available",
        ),
        (None, None, Some("available"), "available"),
        (
            Some(true),
            None,
            Some("available"),
            "externally provisioned",
        ),
        (Some(false), None, Some("provisioned"), "provisioned"),
        (Some(true), None, Some("inspecting"), "inspecting"),
    ] {
        let mut world = World::new(&[], true, true);
        world.seen.host_mut().externally_provisioned = spec;
        world.seen.host_mut().status.provisioning = standing.map(str::to_owned);
        world.seen.host_mut().status.power.externally_provisioned = remembered;
        world.run(5);
        let is = world.status().provisioning.as_deref();
        assert_eq!(is, Some(written), "{spec:?} {remembered:?} {standing:?}");
    }
}

#[test]
fn a_host_that_is_deprovisioned_loses_all_reboot_annotations_and_no_others() {
    let mut world = World::new(&[(KEY, ""), ("mine", "x")], true, true);
    world.until_confirmed();
    world.annotate(BASE, "");
    world.seen.host_mut().externally_provisioned = Some(false);
    world.run(60);
    let left: Vec<_> = world.seen.host.annotations.keys().cloned().collect();
    assert_eq!(left, ["mine"]);
    assert!(world.said(PowerReason::Deprovisioned));
    world.until_on();
    world.annotate(KEY, "");
    world.run(60);
    assert!(
        world.seen.host.annotations.contains_key(KEY),
        "once, not for ever"
    );
    assert!(world.is_on());
}

proptest! {
    #[test]
    fn no_value_is_refused_or_breaks_anything(value in ".*") {
        let request = read(&value);
        prop_assert!(!(request.is_hard && request.problem.is_some()));
    }
}
