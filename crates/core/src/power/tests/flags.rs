//! With any flags, a host that is held off is proved off and comes on again. Source: specification
//! §3.2, "Flags that contradict each other".

use std::time::Duration;

use proptest::prelude::*;

use super::world::*;
use crate::power::*;

fn is_proved(world: &World) -> bool {
    find_off_proof(&world.seen, &world.config, world.now()).is_some()
}

/// The time in seconds until `holds` is true; panics after an hour.
fn within(world: &mut World, what: &str, holds: impl Fn(&World) -> bool) -> u64 {
    let begun = world.time;
    while !holds(world) {
        let because = world.last.as_ref().map(|last| &last.cause);
        assert!(
            world.time < begun + 3_600_000,
            "never {what}: {because:?} {:?}",
            world.config
        );
        world.run(1);
    }
    (world.time - begun) / 1_000
}

#[test]
fn after_a_change_of_leader_a_held_host_is_proved_a_confirm_interval_later_and_at_no_poll() {
    for online in [true, false] {
        let mut world = World::new(&[(KEY, HARD)], online, true);
        world.until_confirmed();
        world.crash(12_000);
        world.run(12);
        let took = within(&mut world, "proved", is_proved);
        assert!((5..=7).contains(&took), "{took} s");
        assert_eq!(world.kinds().len(), 1, "nothing is sent again");
    }
}

#[test]
fn a_host_that_reads_off_as_it_is_wanted_is_read_again_a_confirm_interval_later() {
    let mut world = World::new(&[], false, false);
    let took = within(&mut world, "off", |world| {
        world.status().powered_on == Some(false)
    });
    assert!((5..=7).contains(&took), "{took} s");
}

#[test]
fn polls_that_are_closer_to_each_other_than_two_confirm_intervals_are_refused() {
    let s = Duration::from_secs;
    for (poll, confirm, is_taken) in [
        (60, 5, true),
        (10, 5, true),
        (9, 5, false),
        (1, 1, false),
        (2, 1, true),
    ] {
        let config = PowerConfig {
            poll: s(poll),
            confirm: s(confirm),
            ..PowerConfig::default()
        };
        assert_eq!(
            config.check_intervals().is_ok(),
            is_taken,
            "{poll} {confirm}"
        );
    }
}

fn flags() -> impl Strategy<Value = (PowerConfig, u64)> {
    let s = Duration::from_secs;
    let seconds = (1..=30_u64, 0..=60_u64, 1..=60_u64, 1..=60_u64, 1..=300_u64);
    let share = 0..=100_u64;
    (seconds, share).prop_map(move |((confirm, more, settle, call, check), share)| {
        let config = PowerConfig {
            poll: s(2 * confirm + more),
            check: s(check),
            confirm: s(confirm),
            settle: s(settle),
            soft: s(180),
            call: s(call),
        };
        // How long the BMC takes to answer.
        (config, call * 10 * share)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::model_depth::model_cases(32), ..ProptestConfig::default() })]

    #[test]
    fn with_all_flags_that_are_taken_a_held_host_is_proved_after_a_change_of_leader_and_comes_on(
        (config, answers_in) in flags(),
    ) {
        prop_assert_eq!(config.check_intervals(), Ok(()));
        let mut world = World::new(&[(KEY, HARD)], true, true);
        world.config = config;
        world.bmcs[0].default_says = Says::Slow(answers_in);
        within(&mut world, "confirmed", |world| world.power().off_confirmed_at.is_some());
        world.crash(1_000);
        world.run(1);
        let took = within(&mut world, "proved", is_proved);
        let most = config.confirm.as_secs() + 2 * answers_in.div_ceil(1_000) + 3;
        prop_assert!(took <= most, "{} s of at most {}", took, most);
        world.remove(KEY);
        within(&mut world, "on", |world| world.is_on() && world.power().command.is_none());
        prop_assert_eq!(world.power_offs(), 1);
    }
}
