//! The ends of a power-on.

use super::single_host::*;
use super::world::BASE;
use crate::power::step::PowerStep;
use crate::power::*;

fn drive(single_host: &SingleHost) -> PowerStep {
    single_host.handle_command(power_on::drive_on)
}

/// A power-on that failed, after a command that may be run until 130 s.
fn failed_after_unknown() -> SingleHost {
    let mut single_host = SingleHost::with_command(true, PowerCommand::On);
    single_host.end(100, refused());
    single_host.seen.memory.unsettled_since = Some(secs(100));
    single_host
}

#[test]
fn a_power_on_of_a_host_whose_node_lives_is_closed_once_all_settled() {
    for (now, is_closed) in [(129, false), (130, true), (131, true)] {
        let mut single_host = failed_after_unknown();
        single_host.read(0, 101, PowerReading::Off);
        single_host.read_lease(101, 1);
        single_host.read_lease(111, 2);
        single_host.now = secs(now);
        let step = drive(&single_host);
        assert_eq!(step.because(), PowerReason::PowerContradicted);
        assert_eq!(step.is_closed(), is_closed, "{now}");
    }
}

#[test]
fn a_power_on_of_a_host_that_is_on_is_closed_once_all_settled() {
    for (now, is_closed) in [(129, false), (130, true), (131, true)] {
        let mut single_host = failed_after_unknown();
        single_host.read(0, 105, PowerReading::On);
        single_host.now = secs(now);
        let step = drive(&single_host);
        assert_eq!(step.because(), PowerReason::PoweredOn);
        assert_eq!(step.is_closed(), is_closed, "{now}");
    }
}

#[test]
fn the_bmc_is_asked_only_after_the_level_that_cut_the_power_reads_on() {
    let supplies = "level 1 supplies power again; waiting for the BMC's answer";
    for (how, is_read_on, text) in [
        (
            Ok(CommandAnswer::Accepted),
            false,
            "level 1 accepted a power-on; its power is read until it is on",
        ),
        (Ok(CommandAnswer::Accepted), true, supplies),
        (
            unknown(),
            false,
            "it is unknown whether level 1 received PowerOn; its power is read first",
        ),
        (unknown(), true, supplies),
    ] {
        let mut single_host = SingleHost::with_pdu(&[], true);
        single_host.intend(PowerCommand::On, 1);
        single_host.end(100, how);
        if is_read_on {
            single_host.read(1, 100, PowerReading::On);
        }
        let step = drive(&single_host);
        assert_eq!(step.cause.message, text);
        let reads = (step.reads(0), step.reads(1));
        assert_eq!(reads, (is_read_on, !is_read_on), "{text}");
    }
}

#[test]
fn a_power_on_that_failed_is_sent_again_after_its_pause_and_a_reading() {
    for (now, is_read, next) in [
        (100_500, true, None),
        (101_000, true, Some((PowerCommand::On, 0))),
        (101_500, true, Some((PowerCommand::On, 0))),
        (105_000, false, None),
    ] {
        let mut single_host = SingleHost::with_command(true, PowerCommand::On);
        single_host.end(100, refused());
        if is_read {
            single_host.read(0, 100, PowerReading::Off);
        }
        single_host.now = millis(now);
        assert_eq!(drive(&single_host).next_command(), next, "{now} {is_read}");
    }
}

#[test]
fn a_power_on_of_unknown_end_is_read_at_a_steady_pace_until_it_settles_and_then_anew() {
    for (read, now) in [(105_000, 106_000), (129_500, 130_000)] {
        let mut single_host = SingleHost::with_command(true, PowerCommand::On);
        single_host.end(100, unknown());
        single_host.read_at(0, millis(read), Ok(PowerReading::Off));
        single_host.now = millis(now);
        let step = drive(&single_host);
        assert_eq!(step.because(), PowerReason::CommandOfUnknownEnd);
        assert!(step.reads(0), "{now}");
        let is_settled = now >= 130_000;
        let wakes_at = (!is_settled).then(|| secs(130));
        assert_eq!(step.wakes_at(), wakes_at, "{now}");
    }
}

#[test]
fn a_reboot_becomes_pending_only_on_a_host_that_may_be_on() {
    use PowerReading::{Off, On, PoweringOff, PoweringOn};
    for (read, command, is_confirmed, is_pending) in [
        (None, None, false, true),
        (None, None, true, false),
        (Some(Ok(Off)), None, false, false),
        (Some(Ok(Off)), Some(PowerCommand::Off), false, false),
        (Some(Ok(Off)), Some(PowerCommand::SoftOff), false, false),
        (Some(Ok(Off)), Some(PowerCommand::On), false, true),
        (Some(Ok(On)), None, false, true),
        (Some(Ok(PoweringOn)), None, false, true),
        (Some(Ok(PoweringOff)), None, false, true),
        (Some(Err(FaultClass::TimedOut)), None, false, true),
    ] {
        let mut single_host = SingleHost::new(&[(BASE, "")], true);
        if let Some(command) = command {
            single_host.intend(command, 0);
        }
        if let Some(said) = read {
            single_host.read_at(0, secs(99), said);
        }
        single_host.status().power.off_confirmed_at = is_confirmed.then(|| wall(secs(80)));
        let step = single_host.step(pending_reboot::record_pending_reboot);
        let pending = step.status.pending_reboot_since.is_some();
        assert_eq!(pending, is_pending, "{read:?} {command:?} {is_confirmed}");
    }
}
