//! The order of the three times. Source: specification §3.2, "Every time that Dogwatch writes".

use jiff::Timestamp;
use proptest::prelude::*;

use super::super::status_times::{next_status_time, truncate_to_micros};
use super::world::*;
use crate::Now;
use crate::power::*;

fn status(pending: Option<i64>, last: Option<i64>, off: Option<i64>) -> HostStatus {
    let at = |micros: Option<i64>| micros.map(|at| Timestamp::from_microsecond(at).unwrap());
    HostStatus {
        pending_reboot_since: at(pending),
        last_powered_on: at(last),
        power: PowerStatus {
            off_confirmed_at: at(off),
            ..PowerStatus::default()
        },
        ..HostStatus::default()
    }
}

#[test]
fn times_in_the_future_are_passed_and_a_reboot_still_ends() {
    let mut world = World::new(&[(BASE, HARD)], true, true);
    let future: Timestamp = "2099-01-01T00:00:00Z".parse().unwrap();
    world.seen.host_mut().status.last_powered_on = Some(future);
    world.until_on();
    assert!(world.status().pending_reboot_since > Some(future));
    assert!(world.status().last_powered_on > world.status().pending_reboot_since);
}

#[test]
fn without_room_for_a_later_time_nothing_is_done_and_it_is_said() {
    let mut world = World::new(&[(BASE, HARD)], true, true);
    world.seen.host_mut().status.last_powered_on = Some(Timestamp::MAX);
    world.run(60);
    assert_eq!(world.kinds(), []);
    assert_eq!(world.because(), PowerReason::InvalidStatusTimes);
    let condition = world.condition("PowerControlReady");
    assert_eq!(condition.reason, PowerReason::InvalidStatusTimes.as_str());
    assert!(condition.message.contains("remove it"));
}

#[test]
fn a_clock_that_was_set_back_does_not_change_the_order() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until_confirmed();
    world.wall_ahead -= 86_400_000;
    world.remove(KEY);
    world.until_on();
    assert!(world.status().last_powered_on > world.status().pending_reboot_since);
    world.annotate(BASE, HARD);
    world.until_on();
    assert!(world.status().last_powered_on > world.status().pending_reboot_since);
    assert_eq!(world.power_offs(), 2);
}

proptest! {
    #[test]
    fn a_written_time_is_later_than_all_others_by_a_microsecond(
        pending in proptest::option::of(0..2_000_000_i64),
        last in proptest::option::of(0..2_000_000_i64),
        off in proptest::option::of(0..2_000_000_i64),
        wall in 0..2_000_000_000_i128,
    ) {
        let status = status(pending, last, off);
        let wall = Timestamp::from_nanosecond(wall).unwrap();
        let now = Now { wall, mono: std::time::Duration::ZERO };
        let at = next_status_time(&status, now).unwrap();
        prop_assert_eq!(at, truncate_to_micros(at), "in microseconds");
        prop_assert!(at >= truncate_to_micros(wall));
        for other in [pending, last, off].into_iter().flatten() {
            prop_assert!(at.as_microsecond() > other);
        }
    }
}
