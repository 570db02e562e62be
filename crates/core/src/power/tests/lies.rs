//! BMCs that lie, hang and forget. Source: `facts/fencing.md` §5, `facts/bmc.md`.

use super::world::*;
use crate::power::*;

#[test]
fn off_reported_before_it_is_off_is_waited_out_by_the_second_reading() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.bmcs[0].takes = vec![Takes::Runs(4_000)];
    world.bmcs[0].says = vec![
        Says::Truth,
        Says::Lie(PowerReading::Off),
        Says::Lie(PowerReading::Off),
    ];
    world.until_confirmed();
    assert!(!world.is_on(), "off by the time of the second reading");
}

#[test]
fn a_flapping_bmc_proves_nothing_and_is_said() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.bmcs[0].default_takes = Takes::Ignores;
    for _ in 0..200 {
        world.bmcs[0].says.push(Says::Lie(PowerReading::Off));
        world.bmcs[0].says.push(Says::Truth);
    }
    world.run(300);
    assert_eq!(world.power().off_confirmed_at, None);
    assert_eq!(world.status().powered_on, Some(true));
}

#[test]
fn a_hung_reading_does_not_keep_a_fence_waiting() {
    let mut world = World::new(&[], true, true);
    world.run(5);
    world.bmcs[0].default_says = Says::Slow(600_000);
    world.run(60);
    world.bmcs[0].default_says = Says::Truth;
    world.annotate(KEY, HARD);
    let asked = world.time;
    world.until_confirmed();
    assert!(world.time - asked < 6_500, "the poll hangs on beside it");
}

#[test]
fn off_and_on_again_by_itself_before_it_is_confirmed_is_powered_off_again() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until("off", |world| !world.is_on());
    world.run(2);
    world.set_power(true);
    world.until_confirmed();
    assert!(!world.is_on());
}

#[test]
fn powering_on_is_waited_for_and_not_counted_as_on() {
    let mut world = World::new(&[(BASE, HARD)], true, true);
    world.bmcs[0].takes = vec![Takes::Runs(100), Takes::Runs(90_000)];
    world.until("on sent", |world| world.kinds().len() == 2);
    world.bmcs[0].default_says = Says::Lie(PowerReading::PoweringOn);
    world.run(80);
    assert_eq!(
        world.kinds().len(),
        2,
        "not sent again while it is powering on"
    );
    assert_eq!(world.power().state, Some(PowerState::PoweringOn));
    assert!(world.power().command.is_some());
    world.bmcs[0].default_says = Says::Truth;
    world.until_on();
}
