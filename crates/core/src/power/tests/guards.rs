//! Hosts that Dogwatch leaves alone, each with its reason. Source: specification §3.2, "Whose
//! hosts".

use super::world::*;
use crate::condition::ConditionStatus;
use crate::power::*;

type Change = Box<dyn Fn(&mut PowerSnapshot)>;

/// Tries to fence this host, and checks that no command is sent.
fn refused(change: impl Fn(&mut PowerSnapshot)) -> World {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    change(&mut world.seen);
    world.run(300);
    assert_eq!(world.kinds(), [], "{}", world.because());
    assert!(world.seen.host.annotations.contains_key(KEY));
    world
}

#[test]
fn a_live_baremetal_operators_host_is_not_ours() {
    let owner = HostOwner::Metal3 {
        leader: "bmo-1".into(),
    };
    let world = refused(|seen| seen.owner = owner.clone());
    assert_eq!(world.because(), PowerReason::OwnedByBaremetalOperator);
    assert!(world.writes.is_empty(), "its status is its own");
    let condition = world.condition("PowerAsWanted");
    assert!(condition.message.contains("bmo-1"), "{}", condition.message);
}

#[test]
fn nothing_is_done_before_it_is_known_whose_it_is() {
    let world = refused(|seen| seen.owner = HostOwner::NotYetKnown);
    assert!(world.writes.is_empty());
    assert!(world.last.as_ref().unwrap().observe.is_empty());
}

#[test]
fn a_bmc_that_two_hosts_name_is_used_for_neither_and_off_is_not_believed() {
    let mut world = World::new(&[], true, false);
    world.seen.shared_with = vec![HostName::new("hosts", "h2")];
    world.run(300);
    assert_eq!(world.kinds(), []);
    assert_eq!(world.status().powered_on, Some(true));
    assert_eq!(world.because(), PowerReason::SharedBMC);
    assert!(
        world
            .condition("PowerControlReady")
            .message
            .contains("hosts/h2")
    );
}

#[test]
fn bad_input_has_a_condition_with_its_reason_and_what_to_do() {
    let missing = |why| LevelAccess::Missing {
        reason: why,
        message: "create it".into(),
    };
    let rows: [(PowerReason, Change); 6] = [
        (
            PowerReason::NoBMC,
            Box::new(|seen| seen.host_mut().levels.clear()),
        ),
        (
            PowerReason::InvalidBMCAddress,
            Box::new(|seen| {
                seen.host_mut().levels[0].devices[0].address =
                    Err(BadBmcAddress("is no address".into()));
            }),
        ),
        (
            PowerReason::SecretNotFound,
            Box::new(move |seen| seen.access[0] = missing(PowerReason::SecretNotFound)),
        ),
        (
            PowerReason::SecretIncomplete,
            Box::new(move |seen| seen.access[0] = missing(PowerReason::SecretIncomplete)),
        ),
        (
            PowerReason::SecretForbidden,
            Box::new(move |seen| seen.access[0] = missing(PowerReason::SecretForbidden)),
        ),
        (
            PowerReason::PowerOffDisabled,
            Box::new(|seen| seen.host_mut().disable_power_off = true),
        ),
    ];
    for (why, change) in rows {
        let world = refused(change);
        let condition = world.condition("PowerControlReady");
        assert_eq!(
            (condition.status, condition.reason.as_str()),
            (ConditionStatus::False, why.as_str())
        );
        assert!(!condition.message.is_empty());
        assert_eq!(world.status().powered_on, Some(true), "{why}");
    }
}

#[test]
fn credentials_that_are_being_read_are_waited_for() {
    let world = refused(|seen| seen.access[0] = LevelAccess::NotYet);
    assert!(world.writes.is_empty());
}

#[test]
fn what_was_in_the_way_goes_and_the_host_is_driven() {
    let mut world = refused(|seen| seen.shared_with = vec![HostName::new("hosts", "h2")]);
    world.seen.shared_with.clear();
    world.until_confirmed();
}

#[test]
fn an_off_confirmed_without_its_command_is_no_proof_of_ours() {
    let mut world = World::new(&[(KEY, HARD)], true, false);
    world.seen.host_mut().status.power.off_confirmed_at = Some(world.now().wall);
    assert_eq!(
        find_off_proof(&world.seen, &world.config, world.now()),
        None
    );
    world.until_confirmed();
    assert_eq!(world.kinds().len(), 1, "proved by us");
}

/// A host that must not be switched off by its BMC.
fn always_on(annotations: &[(&str, &str)], is_on: bool) -> World {
    let mut world = World::new(annotations, true, is_on);
    world.seen.host_mut().disable_power_off = true;
    world
}

#[test]
fn a_host_that_is_never_switched_off_is_switched_on_again_after_it_lost_its_power() {
    let mut world = always_on(&[], false);
    world.bmcs[0].takes = vec![Takes::Ignores];
    world.until_on();
    assert_eq!(
        world.kinds(),
        [PowerCommand::On; 2],
        "the first had no effect"
    );
    assert_eq!(world.because(), PowerReason::AsWanted);
    let ready = world.condition("PowerControlReady");
    assert_eq!(ready.reason, PowerReason::PowerOffDisabled.as_str());
}

#[test]
fn a_host_that_is_held_off_and_may_not_be_switched_off_any_more_is_switched_on_once_it_may_be_on() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until_confirmed();
    world.seen.host_mut().disable_power_off = true;
    world.version += 1;
    world.run(120);
    let proof = find_off_proof(&world.seen, &world.config, world.now());
    assert_eq!((world.is_on(), proof), (false, None));
    world.remove(KEY);
    world.until_on();
    assert_eq!(world.kinds(), [PowerCommand::Off, PowerCommand::On]);
}

#[test]
fn a_key_on_a_host_that_is_never_switched_off_sends_nothing_and_proves_nothing() {
    let mut world = always_on(&[(KEY, HARD)], false);
    world.run(300);
    assert_eq!(world.kinds(), []);
    assert_eq!(world.because(), PowerReason::PowerOffDisabled);
    assert!(world.said(PowerReason::PowerOffDisabled));
    assert_eq!(world.status().pending_reboot_since, None, "it is no reboot");
    let proof = find_off_proof(&world.seen, &world.config, world.now());
    assert_eq!(proof, None);
    let obstacle = find_switching_obstacle(&world.seen, &world.config, world.now());
    let obstacle = obstacle.map(|(reason, _)| reason);
    assert_eq!(obstacle, Some(PowerReason::PowerOffDisabled));
    world.remove(KEY);
    world.until_on();
    assert_eq!(world.kinds(), [PowerCommand::On]);
}

#[test]
fn what_came_on_while_it_was_held_off_and_may_not_be_switched_off_is_no_longer_off() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until_confirmed();
    world.seen.host_mut().disable_power_off = true;
    world.set_power(true);
    world.run(120);
    assert_eq!(world.kinds(), [PowerCommand::Off]);
    assert_eq!(world.because(), PowerReason::PowerOffDisabled);
    let status = world.status();
    assert_eq!(
        (status.power.off_confirmed_at, status.powered_on),
        (None, Some(true))
    );
    let writes = world.writes.len();
    world.run(300);
    assert!(
        world.writes.len() <= writes + 1,
        "it is not written again and again"
    );
}

#[test]
fn a_power_off_that_waits_is_not_sent_once_the_host_may_not_be_switched_off() {
    let mut world = World::new(&[(KEY, "")], true, true);
    world.bmcs[0].shuts_down = None;
    world.until("soft is sent", |world| world.sent.len() == 1);
    world.seen.host_mut().disable_power_off = true;
    world.run(600);
    assert_eq!(world.kinds(), [PowerCommand::SoftOff]);
    assert_eq!(world.because(), PowerReason::PowerOffDisabled);
    assert!(world.is_on());
}
