//! A power-off of unknown end: this process' own, or an earlier leader's.

use super::single_host::*;
use super::world::{HARD, KEY};
use crate::power::step::PowerStep;
use crate::power::*;

/// A command whose end is unknown since 100 s; it settles at 130 s.
fn handle(single_host: &SingleHost, is_foreign: bool) -> PowerStep {
    single_host.handle_command(|ctx, step, command| {
        takeover::handle_unknown_off(ctx, step, command, secs(100), is_foreign);
    })
}

fn unknown_off(command: PowerCommand) -> SingleHost {
    let mut single_host = SingleHost::new(&[(KEY, HARD)], true);
    single_host.intend(command, 0);
    single_host.end(100, unknown());
    single_host
}

#[test]
fn on_a_host_that_is_on_a_hard_power_off_is_sent_again_at_once_and_a_soft_one_once_it_settled() {
    use PowerCommand::{Off, SoftOff};
    for (command, read, now, next) in [
        (Off, 105, 110, Some((Off, 0))),
        (SoftOff, 105, 110, None),
        (SoftOff, 130, 130, Some((SoftOff, 0))),
    ] {
        let mut single_host = unknown_off(command);
        single_host.read(0, read, PowerReading::On);
        single_host.now = secs(now);
        assert_eq!(
            handle(&single_host, false).next_command(),
            next,
            "{command} {now}"
        );
    }
}

#[test]
fn on_a_bmc_that_cannot_be_read_only_this_process_own_power_off_is_sent_again() {
    for (is_foreign, next) in [(false, Some((PowerCommand::Off, 0))), (true, None)] {
        let mut single_host = unknown_off(PowerCommand::Off);
        single_host.fail_to_read(0, 105, FaultClass::TimedOut);
        single_host.now = secs(110);
        let step = handle(&single_host, is_foreign);
        assert_eq!(step.next_command(), next, "foreign: {is_foreign}");
    }
}

#[test]
fn an_earlier_leaders_power_off_settles_before_another_level_is_used() {
    for (now, next) in [(129, None), (130, Some((PowerCommand::Off, 1)))] {
        let mut single_host = SingleHost::with_pdu(&[(KEY, HARD)], true);
        single_host.intend(PowerCommand::Off, 0);
        single_host.fail_to_read(0, 128, FaultClass::TimedOut);
        single_host.now = secs(now);
        let step = handle(&single_host, true);
        assert_eq!(step.next_command(), next, "{now}");
        if next.is_none() {
            assert_eq!(step.wakes_at(), Some(secs(130)));
        }
    }
}

#[test]
fn a_host_that_is_off_gets_a_proving_power_off_at_once_unless_it_repeats_our_own() {
    use PowerCommand::{Off, SoftOff};
    for (command, is_foreign, next) in [
        (Off, false, None),
        (Off, true, Some((Off, 0))),
        (SoftOff, false, Some((Off, 0))),
        (SoftOff, true, Some((Off, 0))),
    ] {
        let mut single_host = unknown_off(command);
        single_host.read(0, 100, PowerReading::Off);
        let step = handle(&single_host, is_foreign);
        assert_eq!(step.next_command(), next, "{command} {is_foreign}");
        if next.is_none() {
            assert_eq!(step.because(), PowerReason::BackingOff);
        }
    }
}

#[test]
fn where_no_proof_is_wanted_only_a_further_level_gets_a_power_off_again_once_it_settled() {
    for (level, now, next) in [
        (1, 129, None),
        (1, 140, Some((PowerCommand::Off, 1))),
        (0, 140, None),
    ] {
        let mut single_host = SingleHost::with_pdu(&[], false);
        single_host.intend(PowerCommand::Off, level);
        single_host.end(100, unknown());
        single_host.read(level, now - 9, PowerReading::Off);
        single_host.now = secs(now);
        let step = handle(&single_host, false);
        assert_eq!(step.next_command(), next, "{level} {now}");
    }
}

#[test]
fn a_host_that_may_be_shutting_down_is_read_at_a_steady_pace_before_the_command_settles() {
    let mut single_host = unknown_off(PowerCommand::SoftOff);
    single_host.read(0, 105, PowerReading::On);
    single_host.now = secs(106);
    assert!(handle(&single_host, false).reads(0));
}

#[test]
fn a_power_off_that_failed_is_sent_again_when_its_pause_ends() {
    for (now, next) in [(100_999, None), (101_000, Some((PowerCommand::Off, 0)))] {
        let mut single_host = SingleHost::with_command(false, PowerCommand::Off);
        single_host.end(100, refused());
        single_host.now = millis(now);
        let step = single_host.handle_command(|ctx, step, command| {
            retry::retry_or_change_level(ctx, step, command, secs(100), None);
        });
        assert_eq!(step.next_command(), next, "{now}");
    }
}
