//! Which power-off is sent, and what is said about it.

use super::single_host::*;
use super::world::{HARD, KEY};
use crate::power::power_off::{begin_power_off, describe_cause, drive_off, level_name};
use crate::power::*;

#[test]
fn the_first_power_off_is_soft_unless_hard_is_wanted_or_the_level_is_beside_the_bmc() {
    let cause = "requested by reboot.metal3.io/key";
    for (value, level, command, reason, text) in [
        (
            "",
            0,
            PowerCommand::SoftOff,
            PowerReason::SoftPowerOff,
            "the operating system is asked to shut down",
        ),
        (
            HARD,
            0,
            PowerCommand::Off,
            PowerReason::PoweringOff,
            "the power is cut: mode hard",
        ),
        (
            "",
            1,
            PowerCommand::Off,
            PowerReason::PoweringOff,
            "level 1 does not support a soft power-off; the power is cut",
        ),
    ] {
        let mut single_host = SingleHost::with_pdu(&[(KEY, value)], true);
        single_host.intend(PowerCommand::On, level);
        let step = single_host.step(|ctx, step| begin_power_off(ctx, step, PowerReason::HeldOff));
        assert_eq!(step.next_command(), Some((command, level)));
        assert_eq!(step.because(), reason);
        assert_eq!(step.cause.message, format!("{cause}: {text}"));
    }
}

#[test]
fn the_cause_of_a_power_off_is_said() {
    let found_on = "found on although it is kept off";
    let requested = "requested by reboot.metal3.io/key";
    for (keys, why, text) in [
        (&[][..], PowerReason::FoundOn, found_on),
        (&[(KEY, "")][..], PowerReason::FoundOn, found_on),
        (&[(KEY, "")][..], PowerReason::HeldOff, requested),
        (&[(KEY, "")][..], PowerReason::NotOnline, requested),
        (&[][..], PowerReason::NotOnline, "spec.online is false"),
        (&[][..], PowerReason::RebootRequested, "a reboot is pending"),
    ] {
        let single_host = SingleHost::new(keys, true);
        assert_eq!(
            describe_cause(&single_host.ctx(), why),
            text,
            "{keys:?} {why}"
        );
    }
}

#[test]
fn a_level_is_called_by_its_number_unless_it_is_the_bmc() {
    assert_eq!(level_name(0), "the BMC");
    assert_eq!(level_name(1), "level 1");
}

#[test]
fn a_failed_power_off_is_closed_for_nobody_only_if_it_went_to_the_bmc_and_that_reads_off() {
    use PowerReading::{Off, On};
    for (level, said, is_closed) in [(0, Off, true), (0, On, false), (1, Off, false)] {
        let mut single_host = SingleHost::with_pdu(&[], false);
        single_host.intend(PowerCommand::Off, level);
        single_host.end(100, refused());
        single_host.read(0, 105, said);
        single_host.now = secs(110);
        let step = single_host.step(|ctx, step| drive_off(ctx, step, PowerReason::NotOnline));
        assert_eq!(step.is_closed(), is_closed, "{level} {said:?}");
        let next = (!is_closed).then_some((PowerCommand::Off, level));
        assert_eq!(step.next_command(), next, "{level} {said:?}");
    }
}

#[test]
fn it_is_said_why_a_soft_power_off_becomes_a_hard_one() {
    let unsupported = Err(BmcFault::without_effect(FaultClass::Unsupported, "no"));
    let accepted = || Ok(CommandAnswer::Accepted);
    for (value, how, attempt, now, reason, text) in [
        (
            "",
            unsupported,
            1,
            110,
            PowerReason::SoftPowerOffUnsupported,
            "no soft power-off (no); the power is cut",
        ),
        (
            HARD,
            accepted(),
            1,
            110,
            PowerReason::HardPowerOffRequested,
            "mode hard is requested now; the power is cut",
        ),
        (
            "",
            refused(),
            2,
            110,
            PowerReason::SoftPowerOffFailed,
            "a soft power-off failed twice (no); the power is cut",
        ),
        (
            "",
            accepted(),
            1,
            INTENDED + 180,
            PowerReason::SoftPowerOffTimedOut,
            "a soft power-off did not shut the host down within 3m; the power is cut",
        ),
    ] {
        let mut single_host = SingleHost::new(&[(KEY, value)], true);
        single_host.intend(PowerCommand::SoftOff, 0).attempt = attempt;
        single_host.end(100, how);
        single_host.read(0, 105, PowerReading::On);
        single_host.now = secs(now);
        let step = single_host.step(|ctx, step| drive_off(ctx, step, PowerReason::HeldOff));
        assert_eq!(step.next_command(), Some((PowerCommand::Off, 0)), "{text}");
        assert_eq!(step.because(), reason);
        assert!(
            step.cause.message.starts_with(text),
            "{}",
            step.cause.message
        );
    }
}
