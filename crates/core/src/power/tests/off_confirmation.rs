//! The readings that confirm off, and what stands in their way.

use super::single_host::*;
use crate::power::step::PowerStep;
use crate::power::*;

fn confirm(single_host: &SingleHost) -> PowerStep {
    single_host.handle_command(|ctx, step, command| {
        off_confirmation::confirm_off(ctx, step, command, secs(100));
    })
}

#[test]
fn off_is_not_read_a_second_time_before_every_earlier_command_settled() {
    for (now, reason, is_read) in [
        (110, PowerReason::CommandOfUnknownEnd, false),
        (119, PowerReason::CommandOfUnknownEnd, false),
        (120, PowerReason::ConfirmingOff, true),
        (121, PowerReason::ConfirmingOff, true),
    ] {
        let mut single_host = SingleHost::with_command(false, PowerCommand::Off);
        single_host.accept(100);
        single_host.seen.memory.unsettled_since = Some(secs(90));
        single_host.read(0, 101, PowerReading::Off);
        single_host.now = secs(now);
        let step = confirm(&single_host);
        assert_eq!((step.because(), step.reads(0)), (reason, is_read), "{now}");
        if !is_read {
            assert_eq!(step.wakes_at(), Some(secs(120)));
        }
    }
}

#[test]
fn a_level_beside_the_bmc_is_confirmed_off_only_after_the_bmc_was_asked() {
    let mut single_host = SingleHost::with_pdu(&[], false);
    single_host.intend(PowerCommand::Off, 1);
    single_host.accept(100);
    single_host.read(1, 101, PowerReading::Off);
    single_host.read(1, 107, PowerReading::Off);
    single_host.now = secs(108);
    let step = confirm(&single_host);
    assert_eq!(step.because(), PowerReason::ConfirmingOff);
    assert_eq!(
        step.cause.message,
        "level 1 reported off twice; reading the BMC for a contradiction"
    );
    assert!(step.is_busy && step.reads(0), "{:?}", step.observe);
    assert_eq!(step.status.power.off_confirmed_at, None);
}

#[test]
fn a_power_off_is_sent_again_at_once_only_to_a_host_that_was_said_to_be_off_and_reads_on() {
    use CommandAnswer::{Accepted, AlreadyThere};
    use PowerReading::{On, PoweringOff};
    for (answer, said, next) in [
        (AlreadyThere, On, Some((PowerCommand::Off, 0))),
        (AlreadyThere, PoweringOff, None),
        (Accepted, On, None),
    ] {
        let mut single_host = SingleHost::with_command(false, PowerCommand::Off);
        single_host.end(100, Ok(answer));
        single_host.read(0, 105, said);
        single_host.now = secs(110);
        assert_eq!(
            confirm(&single_host).next_command(),
            next,
            "{answer:?} {said:?}"
        );
    }
}

#[test]
fn an_effect_is_waited_for_as_long_as_two_calls_take_or_a_command_settles() {
    for (call, settle, timeout) in [(10, 30, 30), (20, 30, 41), (10, 5, 21)] {
        let config = PowerConfig {
            call: secs(call),
            settle: secs(settle),
            ..PowerConfig::default()
        };
        assert_eq!(config.command_effect_timeout(), secs(timeout));
    }
}
