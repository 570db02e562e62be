//! How a command ended, and until when a BMC may still run it.

use std::time::Duration;

use super::single_host::*;
use crate::power::command_state::PowerCommandState::{UnderWay, Unknown};
use crate::power::*;

#[test]
fn a_sent_command_is_under_way_until_its_deadline_and_then_its_end_is_unknown() {
    let mut single_host = SingleHost::with_command(true, PowerCommand::Off);
    single_host.sent(100);
    let until = secs(115);
    let lost = Unknown {
        at: until,
        is_foreign: false,
    };
    for (now, expected) in [
        (millis(114_999), UnderWay { until }),
        (until, lost.clone()),
        (until + secs(60), lost),
    ] {
        single_host.now = now;
        let command = single_host.seen.host.status.power.command.as_ref().unwrap();
        assert_eq!(
            single_host.ctx().command_state(command),
            expected,
            "{now:?}"
        );
    }
}

#[test]
fn a_reading_of_on_settles_only_the_first_try_of_a_power_on() {
    for (attempt, settled) in [(1, Duration::ZERO), (2, secs(130)), (3, secs(130))] {
        let mut single_host = SingleHost::with_command(true, PowerCommand::On);
        single_host.status().power.command.as_mut().unwrap().attempt = attempt;
        single_host.accept(100);
        single_host.read(0, 101, PowerReading::On);
        assert_eq!(single_host.ctx().settled_at(), settled, "try {attempt}");
    }
}

#[test]
fn a_power_on_settles_with_the_first_reading_of_on_after_its_answer() {
    use PowerReading::{Off, On, PoweringOn};
    let late = secs(130);
    for (reading, settled) in [
        (None, late),
        (Some((99, On)), late),
        (Some((101, Off)), late),
        (Some((101, PoweringOn)), late),
        (Some((101, On)), Duration::ZERO),
    ] {
        let mut single_host = SingleHost::with_command(true, PowerCommand::On);
        single_host.accept(100);
        if let Some((at, said)) = reading {
            single_host.read(0, at, said);
        }
        assert_eq!(single_host.ctx().settled_at(), settled, "{reading:?}");
    }
}

#[test]
fn an_answered_power_off_settles_at_once_whatever_its_try() {
    let mut single_host = SingleHost::with_command(true, PowerCommand::Off);
    single_host.status().power.command.as_mut().unwrap().attempt = 2;
    single_host.accept(100);
    single_host.read(0, 101, PowerReading::On);
    assert_eq!(single_host.ctx().settled_at(), Duration::ZERO);
}

#[test]
fn a_command_says_whether_an_earlier_one_may_still_be_run_after_it() {
    for (now, after_unknown) in [(129, true), (130, false)] {
        let mut single_host = SingleHost::new(&[], false);
        single_host.seen.memory.unsettled_since = Some(secs(100));
        single_host.now = secs(now);
        let step = single_host.step(|ctx, step| {
            power_off::begin_power_off(ctx, step, PowerReason::NotOnline);
        });
        let command = step.status.power.command.expect("a power-off");
        assert_eq!(command.after_unknown, after_unknown, "{now}");
    }
}

fn recorded_end(single_host: &SingleHost) -> PendingCommandEnd {
    let decision = single_host.decide();
    let [PowerAction::WriteStatus(write)] = &decision.actions[..] else {
        panic!("{:?}", decision.actions);
    };
    write.status.power.command.as_ref().unwrap().end.clone()
}

#[test]
fn the_end_of_a_command_is_recorded_as_this_process_saw_it() {
    let (at, message) = (wall(secs(100)), "no".to_owned());
    let lost = PendingCommandEnd::Unknown {
        at,
        message: message.clone(),
    };
    for (how, expected) in [
        (
            Ok(CommandAnswer::Accepted),
            PendingCommandEnd::Answered { at },
        ),
        (refused(), PendingCommandEnd::Failed { at, message }),
        (unknown(), lost),
    ] {
        let mut single_host = SingleHost::with_command(false, PowerCommand::Off);
        single_host.read(0, 95, PowerReading::On);
        single_host.end(100, how.clone());
        assert_eq!(recorded_end(&single_host), expected, "{how:?}");
    }
}

#[test]
fn the_end_of_another_command_is_not_recorded() {
    let mut single_host = SingleHost::with_command(false, PowerCommand::Off);
    single_host.read(0, 95, PowerReading::On);
    single_host.accept(100);
    single_host.seen.memory.command.as_mut().unwrap().id = "p1/0".to_owned();
    assert_eq!(recorded_end(&single_host), PendingCommandEnd::Open);
}

#[test]
fn a_recorded_end_is_not_recorded_anew() {
    let standing = PendingCommandEnd::Answered { at: wall(secs(95)) };
    let mut single_host = SingleHost::with_command(false, PowerCommand::Off);
    single_host.status().power.command.as_mut().unwrap().end = standing.clone();
    single_host.read(0, 95, PowerReading::On);
    single_host.accept(100);
    assert_eq!(recorded_end(&single_host), standing);
}
