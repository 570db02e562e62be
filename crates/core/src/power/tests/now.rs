//! The power state in the remediation's truth table. Source: specification §4.1, "An unknown power
//! state is neither 0 nor 1".

use std::time::Duration;

use super::world::*;
use crate::power::CurrentPower::{Off, On, Unknown};
use crate::power::*;

/// The state of a host with these readings, oldest first; each was requested and answered this many
/// seconds ago.
fn bit(readings: &[(u64, Result<PowerReading, FaultClass>)]) -> CurrentPower {
    let mut world = World::new(&[], true, true);
    world.time += 1_000_000;
    for (ago, said) in readings {
        let at = world.mono().saturating_sub(Duration::from_secs(*ago));
        world.seen.memory.record_reading(LevelReading {
            level: 0,
            asked: at,
            answered: at,
            result: said.map_err(|class| BmcFault::without_effect(class, "no")),
            system_uuid: None,
        });
    }
    current_power(&world.seen, &world.config, world.now())
}

#[test]
fn on_and_off_are_what_is_read_now_and_everything_else_is_unknown() {
    let (on, off) = (Ok(PowerReading::On), Ok(PowerReading::Off));
    let (going, coming) = (Ok(PowerReading::PoweringOff), Ok(PowerReading::PoweringOn));
    let failed = Err(FaultClass::TimedOut);
    for (readings, expected) in [
        (&[][..], Unknown),
        (&[(1, on)], On),
        (&[(120, on)], On),
        (&[(121, on)], Unknown),
        (&[(60, off), (1, on)], On),
        (&[(1, off)], Unknown),
        (&[(6, off), (1, off)], Off),
        (&[(5, off), (1, off)], Unknown),
        (&[(120, off), (1, off)], Off),
        (&[(121, off), (1, off)], Unknown),
        (&[(60, on), (1, off)], Unknown),
        (&[(60, off), (30, on), (1, off)], Unknown),
        (&[(60, failed), (1, off)], Unknown),
        (&[(60, off), (1, failed)], Unknown),
        (&[(60, on), (1, failed)], Unknown),
        (&[(60, off), (1, going)], Unknown),
        (&[(1, coming)], Unknown),
    ] {
        assert_eq!(bit(readings), expected, "{readings:?}");
    }
}

#[test]
fn a_host_that_may_not_be_read_or_is_nobody_knows_whose_is_unknown() {
    type Change = fn(&mut PowerSnapshot);
    let rows: [(&str, Change, CurrentPower); 6] = [
        ("as it is", |_| {}, On),
        (
            "no power-off",
            |seen| seen.host_mut().disable_power_off = true,
            On,
        ),
        (
            "nobody knows whose",
            |seen| seen.owner = HostOwner::NotYetKnown,
            Unknown,
        ),
        (
            "theirs",
            |seen| {
                seen.owner = HostOwner::Metal3 {
                    leader: "bmo-1".into(),
                }
            },
            On,
        ),
        (
            "shared",
            |seen| seen.shared_with = vec![HostName::new("hosts", "h2")],
            Unknown,
        ),
        (
            "theirs and shared",
            |seen| {
                seen.owner = HostOwner::Metal3 {
                    leader: "bmo-1".into(),
                };
                seen.shared_with = vec![HostName::new("hosts", "h2")];
            },
            Unknown,
        ),
    ];
    for (name, change, expected) in rows {
        let mut world = World::new(&[], true, true);
        world.run(10);
        change(&mut world.seen);
        let bit = current_power(&world.seen, &world.config, world.now());
        assert_eq!(bit, expected, "{name}");
    }
}

#[test]
fn off_is_since_the_first_of_its_unbroken_readings() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    let since = |world: &World| off_since(&world.seen, &world.config, world.now());
    world.tick();
    assert_eq!(since(&world), None);
    world.until_confirmed();
    let first = since(&world).unwrap();
    world.run(600);
    assert_eq!(
        since(&world),
        Some(first),
        "two readings are kept, and since when"
    );
    world.bmcs[0].says = vec![Says::Fails(FaultClass::TimedOut)];
    world.run(120);
    assert!(since(&world) > Some(first), "broken");
    assert!(is_bmc_answering(&world.seen, &world.config, world.now()));
    world.bmcs[0].default_says = Says::Fails(FaultClass::TimedOut);
    world.run(120);
    assert_eq!(since(&world), None);
    assert!(!is_bmc_answering(&world.seen, &world.config, world.now()));
}
