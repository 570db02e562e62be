//! Hosts for which nobody wants a proof, and power-offs that nobody wants any more.

use super::single_host::*;
use crate::power::step::PowerStep;
use crate::power::*;

fn found_off(readings: &[u64]) -> SingleHost {
    let mut single_host = SingleHost::new(&[], true);
    for at in readings {
        single_host.read(0, *at, PowerReading::Off);
    }
    single_host.now = secs(97);
    single_host
}

#[test]
fn a_host_found_off_is_looked_at_again_while_its_node_may_live() {
    let mut single_host = found_off(&[60, 95]);
    let step = single_host.step(idle::watch_idle_host);
    assert_eq!(
        step.cause.message,
        "found off; reading which Node runs on it"
    );
    assert_eq!(step.wakes_at(), Some(secs(102)));
    single_host.read_lease(96, 1);
    let step = single_host.step(idle::watch_idle_host);
    assert_eq!(
        step.cause.message,
        "found off; checking n1, which runs on it, for heartbeats"
    );
    assert_eq!(step.because(), PowerReason::FoundOff);
    assert_eq!(step.wakes_at(), Some(secs(102)));
    assert_eq!(step.next_command(), None);
}

#[test]
fn leases_that_cannot_be_read_are_said_of_a_host_found_off() {
    for (unread, more) in [
        (None, ""),
        (
            Some("forbidden"),
            "; the heartbeats of its Node cannot be read: forbidden",
        ),
    ] {
        let mut single_host = found_off(&[95]);
        single_host.read_no_lease(96, unread);
        let step = single_host.step(idle::watch_idle_host);
        let text = "found off; it is powered on if it is still off at 22:15:25Z";
        assert_eq!(step.cause.message, format!("{text}{more}"));
    }
}

fn withdraw(single_host: &SingleHost) -> PowerStep {
    single_host.handle_command(idle::withdraw_power_off)
}

#[test]
fn a_withdrawn_power_off_is_closed_on_a_running_host_once_it_can_have_no_effect() {
    use PowerCommand::{Off, SoftOff};
    let accepted = || Ok(CommandAnswer::Accepted);
    let soft_ends = 90 + 180;
    for (command, how, now, is_closed) in [
        (Off, accepted(), 129, false),
        (Off, accepted(), 130, true),
        (SoftOff, accepted(), 131, false),
        (SoftOff, accepted(), soft_ends - 1, false),
        (SoftOff, accepted(), soft_ends, true),
        (Off, refused(), 110, true),
    ] {
        let mut single_host = SingleHost::with_command(true, command);
        single_host.end(100, how);
        single_host.read(0, 105, PowerReading::On);
        single_host.now = secs(now);
        assert_eq!(
            withdraw(&single_host).is_closed(),
            is_closed,
            "{command} {now}"
        );
    }
}

#[test]
fn a_withdrawn_power_off_is_not_closed_while_an_earlier_command_may_be_run() {
    for (now, is_closed) in [(129, false), (130, true)] {
        let mut single_host = SingleHost::with_command(true, PowerCommand::Off);
        single_host.end(100, refused());
        single_host.seen.memory.unsettled_since = Some(secs(100));
        single_host.read(0, 105, PowerReading::On);
        single_host.now = secs(now);
        assert_eq!(withdraw(&single_host).is_closed(), is_closed, "{now}");
    }
}

#[test]
fn a_withdrawn_power_off_is_not_closed_on_a_host_that_is_not_read_on() {
    let mut single_host = SingleHost::with_command(true, PowerCommand::Off);
    single_host.accept(100);
    single_host.now = secs(140);
    single_host.read(0, 139, PowerReading::PoweringOff);
    assert!(!withdraw(&single_host).is_closed());
    single_host.fail_to_read(0, 140, FaultClass::TimedOut);
    assert!(!withdraw(&single_host).is_closed());
}

#[test]
fn a_withdrawn_power_off_that_failed_is_closed_on_a_host_that_is_off_once_all_settled() {
    for (now, is_closed, reason) in [
        (129, false, PowerReason::CommandOfUnknownEnd),
        (130, true, PowerReason::Withdrawn),
        (131, true, PowerReason::Withdrawn),
    ] {
        let mut single_host = SingleHost::with_command(true, PowerCommand::Off);
        single_host.end(100, refused());
        single_host.seen.memory.unsettled_since = Some(secs(100));
        single_host.read(0, 105, PowerReading::Off);
        single_host.now = secs(now);
        let step = withdraw(&single_host);
        assert_eq!((step.is_closed(), step.because()), (is_closed, reason));
    }
}

#[test]
fn a_level_that_the_bmc_contradicts_gives_its_power_back_and_any_other_is_confirmed_off() {
    for (bmc, next, reason) in [
        (
            PowerReading::On,
            Some((PowerCommand::On, 1)),
            PowerReason::FoundOff,
        ),
        (PowerReading::Off, None, PowerReason::OffConfirmed),
    ] {
        let mut single_host = SingleHost::with_pdu(&[], true);
        single_host.intend(PowerCommand::Off, 1);
        single_host.accept(100);
        single_host.read(1, 105, PowerReading::Off);
        single_host.read(0, 108, bmc);
        single_host.read(1, 111, PowerReading::Off);
        single_host.now = secs(113);
        let step = withdraw(&single_host);
        assert_eq!((step.next_command(), step.because()), (next, reason));
    }
}

#[test]
fn a_withdrawn_power_off_that_was_never_sent_is_closed_unless_an_earlier_try_may_have_gone() {
    for (before, is_closed) in [(0, true), (1, false), (2, false)] {
        let mut single_host = SingleHost::with_command(true, PowerCommand::Off);
        single_host.status().power.command.as_mut().unwrap().before = before;
        single_host.seen.memory.unanswered_write = Some(ID.to_owned());
        let step = withdraw(&single_host);
        assert_eq!(step.is_closed(), is_closed, "{before} before");
        assert_eq!(step.because(), PowerReason::Withdrawn);
        assert!(step.reads(0), "{before} before");
    }
}
