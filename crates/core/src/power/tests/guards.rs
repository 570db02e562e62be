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
