//! The truth table's bit. Source: specification §4.1, "An unknown power state is neither 0 nor 1".

use std::time::Duration;

use super::world::*;
use crate::power::PowerNow::{Off, On, Unknown};
use crate::power::*;

/// The bit of a host with these readings, each asked and answered so many seconds ago, the oldest first.
fn bit(readings: &[(u64, Result<Reading, Class>)]) -> PowerNow {
    let mut world = World::new(&[], true, true);
    world.time += 1_000_000;
    for (ago, said) in readings {
        let at = world.mono().saturating_sub(Duration::from_secs(*ago));
        world.seen.memory.read(Read {
            level: 0,
            asked: at,
            answered: at,
            said: said.map_err(|class| Fault::harmless(class, "no")),
        });
    }
    now(&world.seen, &world.config, world.now())
}

#[test]
fn on_and_off_are_what_is_read_now_and_everything_else_is_unknown() {
    let (on, off) = (Ok(Reading::On), Ok(Reading::Off));
    let (going, coming) = (Ok(Reading::PoweringOff), Ok(Reading::PoweringOn));
    let failed = Err(Class::TimedOut);
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
    type Change = fn(&mut Seen);
    let rows: [(&str, Change, PowerNow); 6] = [
        ("as it is", |_| {}, On),
        (
            "no power-off",
            |seen| seen.host_mut().disable_power_off = true,
            On,
        ),
        (
            "nobody knows whose",
            |seen| seen.owner = Owner::NotYetKnown,
            Unknown,
        ),
        (
            "theirs",
            |seen| {
                seen.owner = Owner::Theirs {
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
                seen.owner = Owner::Theirs {
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
        let bit = now(&world.seen, &world.config, world.now());
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
    world.bmcs[0].says = vec![Says::Fails(Class::TimedOut)];
    world.run(120);
    assert!(since(&world) > Some(first), "broken");
    assert!(answers(&world.seen, &world.config, world.now()));
    world.bmcs[0].default_says = Says::Fails(Class::TimedOut);
    world.run(120);
    assert_eq!(since(&world), None);
    assert!(!answers(&world.seen, &world.config, world.now()));
}
