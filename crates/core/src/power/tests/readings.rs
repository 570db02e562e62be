//! When a level is read, and what is reported of its readings.

use std::time::Duration;

use super::single_host::*;
use crate::power::readings::{ReadPace, next_poll_at, next_read_at, record_readings, stale_at};
use crate::power::*;

#[test]
fn after_a_hard_power_off_a_level_is_read_less_often_the_longer_it_takes() {
    use CallCost::{Process, Request};
    let (fast, second, slow) = (millis(200), secs(1), secs(5));
    for (cost, age, every) in [
        (Request, 9_999, fast),
        (Request, 10_000, second),
        (Request, 29_999, second),
        (Request, 30_000, slow),
        (Request, 30_001, slow),
        (Process, 9_999, second),
        (Process, 29_999, second),
        (Process, 30_000, slow),
        (Process, 30_001, slow),
    ] {
        let mut single_host = SingleHost::new(&[], true);
        single_host.seen.access = vec![LevelAccess::Ready { cost }];
        single_host.now = secs(100) + millis(age);
        let (read, since) = (single_host.now, secs(100));
        single_host.read_at(0, read, Ok(PowerReading::On));
        let next = next_read_at(&single_host.ctx(), 0, since, ReadPace::Fast { since });
        assert_eq!(next, read + every, "{cost:?} {age}");
    }
}

#[test]
fn a_bmc_that_refuses_the_password_is_read_every_thirty_seconds() {
    use FaultClass::{TimedOut, WrongCredentials};
    for (class, since, next) in [
        (WrongCredentials, 80, 120),
        (WrongCredentials, 95, 120),
        (WrongCredentials, 130, 130),
        (TimedOut, 80, 91),
        (TimedOut, 95, 95),
    ] {
        let mut single_host = SingleHost::new(&[], true);
        single_host.fail_to_read(0, 90, class);
        let at = next_read_at(&single_host.ctx(), 0, secs(since), ReadPace::Steady);
        assert_eq!(at, secs(next), "{class:?} {since}");
    }
}

#[test]
fn polls_are_spread_and_leave_a_slow_bmc_the_time_to_answer() {
    for (jitter, call, every) in [
        (0.0, 10, 48_000),
        (0.5, 10, 52_500),
        (1.0, 2, 57_000),
        (1.0, 10, 55_000),
        (1.0, 100, 30_000),
    ] {
        let mut single_host = SingleHost::new(&[], true);
        (single_host.jitter, single_host.config.call) = (jitter, secs(call));
        assert_eq!(next_poll_at(&single_host.ctx(), 0), Duration::ZERO);
        single_host.read(0, 90, PowerReading::On);
        let next = next_poll_at(&single_host.ctx(), 0);
        assert_eq!(next, secs(90) + millis(every), "{jitter} {call}");
    }
}

#[test]
fn a_level_is_polled_soon_after_its_first_failure_unless_the_password_was_refused() {
    use FaultClass::{TimedOut, WrongCredentials};
    let (soon, later) = (secs(90 + 10), secs(90 + 48));
    for (level, before, class, next) in [
        (0, None, TimedOut, soon),
        (0, Some(Ok(PowerReading::On)), TimedOut, soon),
        (1, Some(Err(TimedOut)), TimedOut, soon),
        (0, Some(Err(TimedOut)), TimedOut, later),
        (0, None, WrongCredentials, later),
        (0, Some(Ok(PowerReading::On)), WrongCredentials, later),
        (0, Some(Err(TimedOut)), WrongCredentials, later),
    ] {
        let mut single_host = SingleHost::with_pdu(&[], true);
        if let Some(said) = before {
            single_host.read_at(level, secs(40), said);
            single_host.read_at(level, secs(41), said);
        }
        single_host.fail_to_read(0, 90, class);
        let at = next_poll_at(&single_host.ctx(), 0);
        assert_eq!(at, next, "{level} {before:?} {class:?}");
    }
}

fn recorded(single_host: &SingleHost) -> HostStatus {
    let mut status = single_host.seen.host.status.clone();
    record_readings(&single_host.ctx(), &mut status);
    status
}

#[test]
fn without_a_reading_only_an_off_of_another_process_is_doubted() {
    for (standing, expected) in [
        (None, None),
        (Some(true), Some(true)),
        (Some(false), Some(true)),
    ] {
        let mut single_host = SingleHost::new(&[], true);
        single_host.status().powered_on = standing;
        assert_eq!(recorded(&single_host).powered_on, expected, "{standing:?}");
    }
}

#[test]
fn a_host_is_powering_off_until_its_off_is_read_twice() {
    for said in [PowerReading::On, PowerReading::Off] {
        let mut single_host = SingleHost::with_command(false, PowerCommand::Off);
        single_host.accept(95);
        single_host.read(0, 99, said);
        let state = recorded(&single_host).power.state;
        assert_eq!(state, Some(PowerState::PoweringOff), "{said:?}");
    }
    let mut single_host = SingleHost::new(&[], false);
    single_host.read(0, 90, PowerReading::Off);
    single_host.read(0, 96, PowerReading::Off);
    single_host.read_no_lease(97, None);
    let status = recorded(&single_host);
    assert_eq!(status.power.state, Some(PowerState::Off));
    assert_eq!(status.powered_on, Some(false));
}

#[test]
fn a_reading_is_too_old_just_after_two_polls() {
    let old = millis(210_001);
    for (now, expected) in [
        (millis(210_000), Some(old)),
        (old, None),
        (millis(210_002), None),
    ] {
        let mut single_host = SingleHost::new(&[], true);
        single_host.read(0, 90, PowerReading::On);
        single_host.now = now;
        assert_eq!(stale_at(&single_host.ctx()), expected, "{now:?}");
    }
}
