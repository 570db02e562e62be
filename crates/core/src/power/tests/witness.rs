//! A PDU proves that an outlet is off; the BMC tells whose it is. Source: specification §1 S2, "of
//! this host".

use super::world::*;
use crate::power::*;

fn proved(world: &World) -> Option<PowerOffProof> {
    find_off_proof(&world.seen, &world.config, world.now())
}

/// A host with a PDU, whose BMC accepts no power-off.
fn with_pdu(is_wrong_outlet: bool) -> World {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.add_level();
    world.is_wrong_outlet = is_wrong_outlet;
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Refused);
    world
}

#[test]
fn an_outlet_that_is_off_proves_nothing_while_the_bmc_says_on_after_it() {
    let mut world = with_pdu(true);
    for _ in 0..(600 * 20) {
        world.tick();
        assert_eq!(proved(&world), None);
        assert_ne!(world.status().powered_on, Some(false));
        assert_eq!(world.power().off_confirmed_at, None);
        let bit = current_power(&world.seen, &world.config, world.now());
        assert_ne!(bit, CurrentPower::Off);
    }
    assert!(world.is_on());
    assert!(world.said(PowerReason::LevelContradictedByBMC));
    // The BMC is tried again, and switches the host off.
    world.bmcs[0].default_takes = Takes::Runs(300);
    world.until_confirmed();
    world.run(70);
    assert!(proved(&world).is_some());
}

#[test]
fn a_bmc_that_lost_its_power_with_the_machine_contradicts_nothing_and_is_asked_first() {
    let mut world = with_pdu(false);
    world.until_confirmed();
    let read = world
        .seen
        .memory
        .readings
        .iter()
        .find(|read| read.level == 0);
    let off = *world.seen.memory.off_since.get(1).unwrap();
    assert!(read.is_some_and(|read| read.asked >= off), "asked since");
    world.run(600);
    assert!(proved(&world).is_some(), "and it lasts");
    assert_eq!(world.status().powered_on, Some(false));
    world.remove(KEY);
    world.until_on();
}

#[test]
fn a_bmc_that_says_on_later_ends_the_proof() {
    let mut world = with_pdu(false);
    world.until_confirmed();
    world.run(10);
    assert!(proved(&world).is_some());
    // Somebody plugs the host into another outlet.
    world.is_wrong_outlet = true;
    world.until("the proof ends", |world| proved(world).is_none());
    world.run(120);
    assert_eq!(proved(&world), None);
    assert!(world.said(PowerReason::LevelContradictedByBMC));
    assert_eq!(world.status().powered_on, Some(true));
}

#[test]
fn a_bmc_that_does_not_always_answer_contradicts_all_the_same() {
    let mut world = with_pdu(true);
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Unsupported);
    world.until("it is contradicted", |world| {
        world.said(PowerReason::LevelContradictedByBMC)
    });
    for tick in 0..(600 * 20) {
        let silent = Says::Fails(FaultClass::TimedOut);
        let is_silent = tick / 20 % 60 < 45;
        world.bmcs[0].default_says = if is_silent { silent } else { Says::Truth };
        // The PDU does not always answer either.
        let is_silent = tick / 20 % 7 == 0;
        world.bmcs[1].default_says = if is_silent { silent } else { Says::Truth };
        world.tick();
        assert_eq!(proved(&world), None);
        assert_ne!(world.status().powered_on, Some(false));
    }
}

#[test]
fn what_a_bmc_says_in_its_last_moment_means_nothing() {
    let mut world = with_pdu(false);
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Unsupported);
    world.until("the PDU was read off", |world| {
        world.seen.memory.off_since.get(1).is_some()
    });
    let off = *world.seen.memory.off_since.get(1).unwrap();
    world.seen.memory.record_reading(LevelReading {
        level: 0,
        asked: off + std::time::Duration::from_millis(500),
        answered: off + std::time::Duration::from_millis(600),
        result: Ok(PowerReading::On),
        system_uuid: None,
    });
    let begun = world.time;
    world.until_confirmed();
    assert!(world.time - begun < 20_000, "nobody waits for what it said");
    assert!(!world.said(PowerReason::LevelContradictedByBMC));
}

#[test]
fn a_slow_answer_of_the_bmc_keeps_a_proof_by_a_pdu_up() {
    let mut world = with_pdu(true);
    world.until("the PDU is off", |world| !world.bmcs[1].gives);
    world.bmcs[0].default_says = Says::Slow(20_000);
    for _ in 0..(25 * 20) {
        world.tick();
        assert_eq!(proved(&world), None, "the BMC was not heard");
    }
}

#[test]
fn an_outlet_that_is_left_off_is_named() {
    let said = |is_wrong_outlet| {
        let mut world = with_pdu(is_wrong_outlet);
        if !is_wrong_outlet {
            world.bmcs[1].default_takes = Takes::Fails(FaultClass::Refused);
        }
        world.run(600);
        let left = "Dogwatch has switched level 1 off and leaves it off: switch it on yourself";
        let mut events = world.events.iter();
        events.any(|(_, reason, text)| {
            *reason == PowerReason::NextLevel.as_str() && text.ends_with(left)
        })
    };
    assert!(said(true), "level 1 is off, and contradicted");
    assert!(!said(false), "level 1 refuses, and is on");
}
