//! With the process killed at every step, a reboot is one power-off and ends with the host on.
//! Specification S5.

use super::world::*;
use crate::power::*;

fn reboot_killed_at(step: u32, value: &str, online: bool) -> World {
    let mut world = World::new(&[], true, true);
    world.run(3);
    world.seen.host_mut().online = online;
    if value != "none" {
        world.annotate(BASE, value);
    }
    world.dies_at = Some(world.steps + step);
    world.run(240);
    world.seen.host_mut().online = true;
    world.run(240);
    world
}

#[test]
fn killed_at_any_step_a_reboot_is_one_power_off_and_ends_with_the_host_on() {
    for (value, online) in [(HARD, true), ("", true), ("none", false)] {
        let whole = reboot_killed_at(10_000, value, online);
        let steps = whole.steps;
        assert!(steps > 8, "{steps}");
        for step in 1..=steps {
            let world = reboot_killed_at(step, value, online);
            let story = format!("killed at {step}: {:?} {:?}", world.transitions, world.sent);
            assert!(world.is_on(), "{story}");
            assert_eq!(world.power_offs(), 1, "{story}");
            assert!(world.seen.host.annotations.is_empty(), "{story}");
            assert_eq!(world.power().command, None, "{story}");
            assert_eq!(world.status().powered_on, Some(true), "{story}");
        }
    }
}

#[test]
fn killed_at_any_step_a_held_host_stays_off_with_its_key() {
    let whole = held(10_000);
    for step in 1..=whole.steps {
        let world = held(step);
        assert!(!world.is_on(), "killed at {step}");
        assert_eq!(world.power_offs(), 1, "killed at {step}");
        assert_eq!(world.status().powered_on, Some(false), "killed at {step}");
        assert!(world.power().off_confirmed_at.is_some(), "killed at {step}");
        assert!(world.seen.host.annotations.contains_key(KEY));
    }
}

fn held(step: u32) -> World {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.dies_at = Some(step);
    world.run(240);
    world
}

/// Another leader finds a command whose end was not recorded.
fn takeover(command: PowerCommand, is_on: bool, runs_after: Option<u64>) -> World {
    let mut world = World::new(&[], true, true);
    world.run(3);
    world.annotate(
        BASE,
        if command == PowerCommand::SoftOff {
            ""
        } else {
            HARD
        },
    );
    world.bmcs[0].shuts_down = Some(0);
    let silent = Takes::Silent {
        after: 60_000,
        runs: runs_after,
    };
    let good = Takes::Runs(50);
    world.bmcs[0].takes = match command {
        PowerCommand::On => vec![good, silent],
        PowerCommand::SoftOff | PowerCommand::Off => vec![silent],
    };
    let sent = move |world: &World| {
        world
            .sent
            .last()
            .is_some_and(|trace| trace.command == command)
    };
    world.until("sent", sent);
    world.crash(2_000);
    world.until("another leads", |world| world.last.is_some());
    assert_eq!(world.is_on(), is_on);
    world
}

#[test]
fn an_earlier_leaders_command_is_not_repeated_while_it_may_be_run() {
    for (command, is_on) in [
        (PowerCommand::Off, true),
        (PowerCommand::SoftOff, true),
        (PowerCommand::On, false),
    ] {
        let mut world = takeover(command, is_on, Some(25_000));
        let before = world.sent.len();
        assert_eq!(world.because(), PowerReason::TakingOver, "{command}");
        world.run(20);
        assert_eq!(world.sent.len(), before, "{command}");
        world.run(240);
        let repeated = world
            .kinds()
            .iter()
            .filter(|kind| **kind == command)
            .count();
        assert!(
            repeated <= if command == PowerCommand::Off { 2 } else { 1 },
            "{:?}",
            world.kinds()
        );
        assert!(world.is_on());
        assert_eq!(world.power_offs(), 1);
    }
}

#[test]
fn an_earlier_leaders_command_that_did_not_take_is_repeated_once_a_reading_shows_it() {
    for (command, is_on) in [
        (PowerCommand::Off, true),
        (PowerCommand::SoftOff, true),
        (PowerCommand::On, false),
    ] {
        let mut world = takeover(command, is_on, None);
        let before = world.sent.len();
        let first = world.time;
        world.until("repeated", |world| world.sent.len() > before);
        assert!(world.time - first >= 29_000, "{command}");
        assert_eq!(world.sent.last().unwrap().command, command);
        world.until_on();
        assert_eq!(world.power_offs(), 1);
    }
}

#[test]
fn an_earlier_leaders_command_is_not_repeated_on_a_bmc_that_cannot_be_read() {
    let mut world = takeover(PowerCommand::Off, true, None);
    world.bmcs[0].default_says = Says::Fails(FaultClass::TimedOut);
    let before = world.sent.len();
    // The old leader had one reading already; the new leader has none.
    world.crash(1_000);
    world.run(300);
    assert_eq!(world.sent.len(), before);
    assert_eq!(world.because(), PowerReason::TakingOver);
    assert!(world.said(PowerReason::BMCTimedOut), "loudly");
}

#[test]
fn an_intention_that_was_never_sent_is_written_anew_at_once() {
    let mut world = World::new(&[(BASE, HARD)], true, true);
    world.run(1);
    // The write arrived and its answer was lost: this process knows that it sent nothing.
    let mut command = world.power().command.clone().unwrap();
    command.id = "p1/lost".into();
    command.end = PendingCommandEnd::Open;
    let mut world = World::new(&[(BASE, HARD)], true, true);
    world.seen.host_mut().status.power.command = Some(command);
    world.seen.memory.record_write_begun("p1/lost");
    world.run(1);
    assert_eq!(world.sent.len(), 1);
    assert_ne!(world.sent[0].id, "p1/lost");
}

#[test]
fn a_command_goes_out_within_two_seconds_of_its_intention_or_is_decided_anew() {
    let mut world = World::new(&[(BASE, HARD)], true, true);
    world.run(0);
    let now = world.now();
    let decided = decide(&world.seen, &world.config, "p1/1", 0.5, now);
    let Some(PowerAction::WriteStatus(write)) = decided.actions.into_iter().next() else {
        panic!("an intention");
    };
    world.seen.host_mut().status = write.status;
    world.seen.memory.record_write_done("p1/1", now.mono);
    for (later, goes) in [(2_000, true), (2_001, false)] {
        let mut then = now;
        then.mono += std::time::Duration::from_millis(later);
        let host = world.seen.host.clone();
        world.seen.memory.observe_host(&host, then);
        let decision = decide(&world.seen, &world.config, "p1/2", 0.5, then);
        let is_send = matches!(decision.actions[..], [PowerAction::Send(_)]);
        assert_eq!(is_send, goes, "{later}");
    }
}

#[test]
fn a_leader_that_takes_a_power_off_over_proves_nothing_for_nobody() {
    let mut world = World::new(&[], false, true);
    let late = Takes::Silent {
        after: 10_000,
        runs: Some(300),
    };
    world.bmcs[0].takes = vec![late];
    world.bmcs[0].shuts_down = Some(100);
    world.until("sent", |world| world.sent.len() == 1);
    world.run(1);
    world.crash(1_000);
    world.run(300);
    assert_eq!(world.sent.len(), 1, "{:?}", world.kinds());
    assert_eq!(world.because(), PowerReason::AsWanted);
}
