//! A host whose off is confirmed.

use super::single_host::*;
use super::world::{HARD, KEY};
use crate::power::step::PowerStep;
use crate::power::*;

fn held(annotations: &[(&str, &str)], online: bool, level: usize) -> SingleHost {
    let mut single_host = SingleHost::with_pdu(annotations, online);
    single_host.intend(PowerCommand::Off, level).end =
        PendingCommandEnd::Answered { at: wall(secs(91)) };
    let ids = reboot_annotations(&single_host.seen.host);
    let power = &mut single_host.status().power;
    power.off_confirmed_at = Some(wall(secs(95)));
    power.confirmed_for = ids.iter().map(HostRebootAnnotation::id).collect();
    single_host
}

fn hold(single_host: &SingleHost) -> PowerStep {
    single_host.handle_command(hold::hold_off)
}

#[test]
fn a_host_that_is_found_on_is_powered_off_again_if_anything_wants_it_off() {
    for (keys, online, is_pending, is_powered_off) in [
        (&[][..], true, false, false),
        (&[][..], false, false, true),
        (&[][..], true, true, true),
        (&[(KEY, HARD)][..], true, false, true),
    ] {
        let mut single_host = held(keys, online, 0);
        single_host.status().pending_reboot_since = is_pending.then(|| wall(secs(50)));
        single_host.read(0, 99, PowerReading::On);
        let step = hold(&single_host);
        let case = format!("{keys:?} online: {online} pending: {is_pending}");
        assert_eq!(step.next_command().is_some(), is_powered_off, "{case}");
        assert_eq!(step.is_closed(), !is_powered_off, "{case}");
        assert_eq!(step.status.power.off_confirmed_at, None, "{case}");
    }
}

#[test]
fn behind_another_address_off_is_proved_again_unless_it_is_the_bmc_and_nobody_waits() {
    for (keys, level, is_forgotten) in [
        (&[][..], 0, true),
        (&[][..], 1, false),
        (&[(KEY, HARD)][..], 0, false),
        (&[(KEY, HARD)][..], 1, false),
    ] {
        let mut single_host = held(keys, false, level);
        let command = single_host.status().power.command.as_mut().unwrap();
        command.target = "another".to_owned();
        single_host.read(level, 99, PowerReading::Off);
        let step = hold(&single_host);
        assert_eq!(step.is_closed(), is_forgotten, "{keys:?} {level}");
        let next = (!is_forgotten).then_some((PowerCommand::Off, level));
        assert_eq!(step.next_command(), next, "{keys:?} {level}");
    }
}

#[test]
fn only_a_key_makes_the_second_reading_urgent() {
    for (keys, is_urgent) in [(&[][..], false), (&[(KEY, HARD)][..], true)] {
        let mut single_host = held(keys, false, 0);
        single_host.read(0, 95, PowerReading::Off);
        let step = hold(&single_host);
        assert_eq!(step.is_busy, is_urgent, "{keys:?}");
        let reads = [PowerObserve::Read {
            level: 0,
            is_urgent,
        }];
        assert!(step.observe.starts_with(&reads), "{:?}", step.observe);
    }
}

#[test]
fn a_reboot_is_pending_only_if_it_is_later_than_the_last_power_on() {
    for (powered_on, is_pending) in [
        (None, true),
        (Some(49), true),
        (Some(50), false),
        (Some(51), false),
    ] {
        let status = HostStatus {
            pending_reboot_since: Some(wall(secs(50))),
            last_powered_on: powered_on.map(|at| wall(secs(at))),
            ..HostStatus::default()
        };
        assert_eq!(status.is_reboot_pending(), is_pending, "{powered_on:?}");
    }
}

#[test]
fn a_held_level_that_the_bmc_contradicts_gives_its_power_back_unless_the_host_must_be_off() {
    for (online, next, reason) in [
        (true, (PowerCommand::On, 1), PowerReason::FoundOff),
        (false, (PowerCommand::Off, 1), PowerReason::PoweringOff),
    ] {
        let mut single_host = held(&[], online, 1);
        single_host.read(1, 95, PowerReading::Off);
        single_host.read(0, 98, PowerReading::On);
        let step = hold(&single_host);
        assert_eq!((step.next_command(), step.because()), (Some(next), reason));
        assert_eq!(step.status.power.off_confirmed_at, None, "{online}");
    }
}
