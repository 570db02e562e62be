//! metal3's own cases, by their names. Source: `facts/fencing.md` §6.1 and §6.2.

use super::super::annotations::reboot_annotations;
use super::removed_level::held_off_by_pdu;
use super::world::*;
use crate::power::*;

/// Name, annotations, provisioning state, and the outcome.
type Row = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    Option<bool>,
);

/// `None`: no reboot. Otherwise whether the reboot is hard.
fn outcome(annotations: &[(&str, &str)], state: &str) -> Option<bool> {
    let mut world = World::new(annotations, true, true);
    world.seen.host_mut().status.provisioning = Some(state.into());
    world.bmcs[0].shuts_down = None;
    world.run(20);
    let first = world.sent.first()?;
    Some(first.command == PowerCommand::Off)
}

#[test]
fn test_has_reboot_annotation() {
    const FOO: &str = "reboot.metal3.io/foo";
    const BAR: &str = "reboot.metal3.io/bar";
    const SOFT: &str = r#"{"mode":"soft"}"#;
    const FORCED: &str = r#"{"force":true}"#;
    let (is, no) = ("provisioned", "inspecting");
    let rows: [Row; 10] = [
        ("1 none", &[], is, None),
        ("2 base", &[(BASE, "")], is, Some(false)),
        ("3 suffixed", &[(FOO, "")], is, Some(false)),
        ("4 two suffixed", &[(FOO, ""), (BAR, "")], is, Some(false)),
        ("5 soft", &[(FOO, SOFT)], is, Some(false)),
        ("6 hard", &[(FOO, HARD)], is, Some(true)),
        (
            "7 bad JSON",
            &[(FOO, "{\"bad\"= \"json\"]")],
            is,
            Some(false),
        ),
        (
            "8 soft and hard",
            &[(FOO, SOFT), (BAR, HARD)],
            is,
            Some(true),
        ),
        (
            "9 forced, not provisioned",
            &[(BASE, FORCED)],
            no,
            Some(false),
        ),
        ("10 hard, not provisioned", &[(BASE, HARD)], no, None),
    ];
    for (name, annotations, state, wanted) in rows {
        assert_eq!(outcome(annotations, state), wanted, "{name}");
    }
}

const UNSTEADY: [&str; 7] = [
    "registering",
    "inspecting",
    "preparing",
    "provisioning",
    "deprovisioning",
    "powering off before delete",
    "a state of a later version",
];

/// metal3's controller works on the host for a minute in this state, and then dies; so does
/// Dogwatch's leader if it `crashes`.
fn let_metal3_work(world: &mut World, state: &str, crashes: bool) {
    world.seen.owner = HostOwner::Metal3 {
        leader: "bmo-1".into(),
    };
    world.seen.host_mut().status.provisioning = Some(state.into());
    world.version += 1;
    world.run(60);
    if crashes {
        world.crash(0);
    }
    world.seen.owner = HostOwner::Ours;
    world.is_poked = true;
}

/// A host that metal3's controller worked on for a minute before it died.
fn left_in_state(state: &str, online: bool, is_on: bool) -> World {
    let mut world = World::new(&[], online, is_on);
    world.seen.host_mut().status.provisioning = Some(state.into());
    world.seen.owner = HostOwner::Metal3 {
        leader: "bmo-1".into(),
    };
    world.run(60);
    world.seen.owner = HostOwner::Ours;
    world.is_poked = true;
    world
}

#[test]
fn a_host_that_its_provisioner_works_on_is_left_as_it_is() {
    for state in UNSTEADY {
        for (online, is_on) in [(false, true), (false, false), (true, true), (true, false)] {
            let mut world = left_in_state(state, online, is_on);
            world.run(600);
            assert_eq!(world.kinds(), [], "{state} {online} {is_on}");
            assert_eq!(world.because(), PowerReason::ProvisionerAtWork);
            assert_eq!(world.status().powered_on, Some(is_on));
            assert_eq!(world.status().provisioning.as_deref(), Some(state));
            // In a steady state spec.online counts again.
            world.seen.host_mut().status.provisioning = Some("available".into());
            world.version += 1;
            world.run(600);
            assert_eq!(world.is_on(), online, "{state}");
        }
    }
}

#[test]
fn a_command_of_earlier_times_is_not_gone_on_with_where_a_provisioner_works() {
    for (command, online) in [
        (PowerCommand::On, false),
        (PowerCommand::SoftOff, false),
        (PowerCommand::SoftOff, true),
    ] {
        let is_on = command.is_power_off();
        let mut world = World::new(&[], is_on, is_on);
        world.run(60);
        world.seen.host_mut().online = !world.seen.host.online;
        world.bmcs[0].shuts_down = None;
        if !is_on {
            world.bmcs[0].default_takes = Takes::Ignores;
        }
        world.until("it is sent", |world| world.kinds() == [command]);
        world.seen.host_mut().online = online;
        world.seen.host_mut().status.provisioning = Some("preparing".into());
        world.version += 1;
        world.set_power(true);
        world.run(600);
        assert_eq!(world.kinds(), [command], "{command} {online}");
    }
}

#[test]
fn an_off_from_before_metal3_managed_the_host_is_not_ended_where_it_works() {
    for (state, crashes) in UNSTEADY
        .into_iter()
        .flat_map(|state| [(state, false), (state, true)])
    {
        let mut world = World::new(&[], false, true);
        world.until_confirmed();
        world.seen.host_mut().online = true;
        let_metal3_work(&mut world, state, crashes);
        world.run(1);
        // Nor by the leader after that one.
        world.crash(0);
        world.run(600);
        assert_eq!(world.kinds(), [PowerCommand::SoftOff], "{state}");
        assert_eq!(world.because(), PowerReason::ProvisionerAtWork);
        let power = world.power();
        assert_eq!((&power.command, power.off_confirmed_at), (&None, None));
        assert_eq!(power.obeyed_in.as_deref(), Some(state));
        // If metal3 never comes back, a person forces a reboot.
        world.annotate(BASE, r#"{"force":true}"#);
        world.until_on();
        let anew = [
            PowerCommand::SoftOff,
            PowerCommand::SoftOff,
            PowerCommand::On,
        ];
        assert_eq!(world.kinds(), anew, "{state}");
    }
}

#[test]
fn a_reboot_that_was_pending_does_not_come_after_the_provisioners_work() {
    for crashes in [false, true] {
        let mut world = World::new(&[(KEY, HARD)], true, true);
        world.until_confirmed();
        world.remove(KEY);
        let_metal3_work(&mut world, "deprovisioning", crashes);
        world.run(600);
        world.set_power(true);
        world.run(600);
        world.seen.host_mut().status.provisioning = Some("provisioned".into());
        world.version += 1;
        world.run(600);
        assert_eq!(world.kinds(), [PowerCommand::Off], "{crashes}");
        assert_eq!(world.because(), PowerReason::AsWanted);
    }
}

#[test]
fn a_reboot_whose_outlet_was_cut_does_not_come_after_the_provisioners_work() {
    for crashes in [false, true] {
        let mut world = held_off_by_pdu();
        world.remove(KEY);
        // Somebody switches the outlet on, and metal3 installs the host anew.
        world.bmcs[0] = Bmc::new(true);
        world.bmcs[1] = Bmc::new(true);
        let_metal3_work(&mut world, "provisioning", crashes);
        world.run(600);
        let state = "provisioned".to_owned();
        world.seen.host_mut().status.provisioning = Some(state);
        world.version += 1;
        let sent = world.sent.len();
        world.run(600);
        let later = world.kinds().split_off(sent);
        assert!(
            later.iter().all(|command| !command.is_power_off()),
            "{crashes}: {later:?}"
        );
        assert!(world.is_on());
        assert_eq!(world.because(), PowerReason::AsWanted, "{crashes}");
    }
}

#[test]
fn a_power_on_that_may_still_run_is_not_forgotten_when_metal3_has_managed_the_host() {
    let mut world = World::new(&[], true, false);
    let (after, runs) = (10_000, Some(25_000));
    world.bmcs[0].takes = vec![Takes::Silent { after, runs }];
    world.until("it is sent", |world| world.sent.len() == 1);
    let before = world.power().obeyed_in.clone();
    world.seen.host_mut().status.provisioning = Some("preparing".into());
    world.version += 1;
    for _ in 0..2 {
        world.crash(0);
        world.run(20);
        assert!(world.power().command.is_some(), "it may still run");
        assert_eq!(world.power().obeyed_in, before);
    }
    world.run(60);
    assert_eq!(world.power().command, None);
    assert_eq!(world.power().obeyed_in.as_deref(), Some("preparing"));
    assert_eq!(world.kinds(), [PowerCommand::On]);
}

#[test]
fn an_outlet_that_was_cut_before_metal3_managed_the_host_is_given_back() {
    for crashes in [false, true] {
        let mut world = held_off_by_pdu();
        world.remove(KEY);
        let_metal3_work(&mut world, "deprovisioning", crashes);
        let sent = world.sent.len();
        world.until("the outlet is on", |world| world.bmcs[1].gives);
        let later = world.sent[sent..].iter();
        let later: Vec<_> = later.map(|trace| (trace.command, trace.level)).collect();
        assert_eq!(later, [(PowerCommand::On, 1)], "{crashes}");
    }
}

#[test]
fn a_forced_reboot_of_a_host_that_its_provisioner_works_on_ends_with_the_host_on() {
    let forced = r#"{"force":true}"#;
    let mut world = left_in_state("preparing", true, true);
    world.annotate(BASE, forced);
    world.until_confirmed();
    world.until_on();
    world.run(600);
    assert_eq!(world.because(), PowerReason::ProvisionerAtWork);
    assert_eq!(world.kinds(), [PowerCommand::SoftOff, PowerCommand::On]);

    // The annotation goes while the operating system shuts down.
    world.annotate(KEY, forced);
    world.until("it is asked", |world| world.sent.len() == 3);
    world.remove(KEY);
    world.until("off", |world| !world.is_on());
    world.until_on();
}

#[test]
fn test_reboot_with_suffixless_annotation() {
    let mut world = World::new(&[], true, true);
    world.run(5);
    world.annotate(BASE, "");
    world.until("off", |world| !world.is_on());
    world.until("key gone", |world| world.seen.host.annotations.is_empty());
    world.until_on();
    world.run(300);
    assert_eq!(world.kinds(), [PowerCommand::SoftOff, PowerCommand::On]);
    assert_eq!(world.status().powered_on, Some(true));
    assert_eq!(world.power().state, Some(PowerState::On));
}

#[test]
fn test_reboot_with_suffixed_annotation() {
    let mut world = World::new(&[(KEY, "")], true, true);
    world.until_confirmed();
    world.run(3_600);
    assert!(!world.is_on(), "it stays off over many passes");
    assert_eq!(world.status().powered_on, Some(false));
    assert!(world.seen.host.annotations.contains_key(KEY));
    world.remove(KEY);
    world.until_on();
    assert_eq!(world.power_offs(), 1);
}

#[test]
fn test_reboot_with_annotations_power_off_disabled() {
    for name in [BASE, KEY] {
        let mut world = World::new(&[(name, "")], true, true);
        world.seen.host_mut().disable_power_off = true;
        world.run(300);
        // Where metal3 reboots without a proof, Dogwatch does nothing and reports that.
        assert_eq!(world.kinds(), []);
        assert_eq!(world.because(), PowerReason::PowerOffDisabled);
        assert!(world.seen.host.annotations.contains_key(name));
    }
}

#[test]
fn test_power_on_and_test_power_off() {
    let mut world = World::new(&[], true, true);
    world.run(10);
    assert_eq!(world.status().powered_on, Some(true));
    world.seen.host_mut().online = false;
    world.until_confirmed();
    assert_eq!(world.status().powered_on, Some(false));
    world.seen.host_mut().online = true;
    world.until_on();
    assert_eq!(world.status().powered_on, Some(true));
    assert_eq!(world.kinds(), [PowerCommand::SoftOff, PowerCommand::On]);
}

#[test]
fn basic_ops_should_control_power_cycle_of_bmh_though_annotations() {
    let forced = r#"{"force":true}"#;
    let mut world = World::new(&[(BASE, forced)], true, true);
    world.seen.host_mut().status.provisioning = Some("available".into());
    world.until_confirmed();
    assert!(
        world
            .writes
            .iter()
            .any(|(_, status)| status.powered_on == Some(false))
    );
    world.until_on();
    assert!(world.seen.host.annotations.is_empty());
    let key = "reboot.metal3.io/poweroff";
    world.annotate(key, forced);
    world.until_confirmed();
    world.run(600);
    assert_eq!(world.status().powered_on, Some(false), "held");
    world.remove(key);
    world.until_on();
}

#[test]
fn externally_provisioned_state_is_reached_and_power_works() {
    let mut world = World::new(&[(BASE, "")], true, true);
    world.seen.host_mut().externally_provisioned = Some(true);
    world.until_confirmed();
    world.until_on();
    let state = world.status().provisioning.as_deref();
    assert_eq!(state, Some("externally provisioned"));
}

#[test]
fn webhook_mode_medium_and_bad_json_are_said() {
    for value in [
        r#"{"mode":"medium"}"#,
        "{mode:hard",
        r#"{"force":"yes"}"#,
        "hard",
    ] {
        let host = host(&[(KEY, value)], true);
        assert!(reboot_annotations(&host)[0].problem.is_some(), "{value}");
    }
}

#[test]
fn test_detach_no_power_action_when_detached() {
    let detached = ("baremetalhost.metal3.io/detached", "");
    let mut world = World::new(&[detached, (BASE, HARD)], true, true);
    world.run(120);
    assert_eq!(world.kinds(), []);
    assert_eq!(world.because(), PowerReason::Detached);
}
