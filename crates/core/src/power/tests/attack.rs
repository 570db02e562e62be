//! How the decision handles an adversary, or a typing error in a status. Specification S2, S6.

use std::time::Duration;

use super::world::*;
use crate::power::*;

const OTHER: &str = "reboot.metal3.io/other";

fn proved(world: &World) -> Option<PowerOffProof> {
    find_off_proof(&world.seen, &world.config, world.now())
}

fn is_proved_for(world: &World, name: &str) -> bool {
    let all = reboot_annotations(&world.seen.host);
    let request = all.iter().find(|request| request.name == name);
    let request = request.expect("it stands there");
    proved(world).is_some_and(|proof| proof.covers_annotation(request))
}

fn held() -> World {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until_confirmed();
    assert!(proved(&world).is_some());
    world
}

/// Does what the controller's shell does when the host's spec changes.
fn respecify(world: &mut World, change: impl FnOnce(&mut PowerSnapshot)) {
    change(&mut world.seen);
    world.seen.memory.forget_bmc();
    world.version += 1;
}

fn without_pdu(world: &mut World) {
    respecify(world, |seen| {
        seen.host_mut().levels.truncate(1);
        seen.access.truncate(1);
    });
}

/// A host whose PDU cut the power because the BMC was silent.
fn held_by_pdu() -> World {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.add_level();
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Unreachable);
    world.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    world.until_confirmed();
    assert_eq!(world.power().command.as_ref().unwrap().level, 1);
    world
}

fn mend(world: &mut World) {
    world.bmcs[0].default_takes = Takes::Runs(100);
    world.bmcs[0].default_says = Says::Truth;
    // Somebody plugs it in again.
    world.bmcs[1].gives = true;
}

#[test]
fn a_time_of_confirmation_without_an_answered_power_off_behind_it_is_no_proof() {
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    let restored = ProofSource::OurCommand {
        id: "restored/1".into(),
    };
    for end in [
        PendingCommandEnd::Open,
        PendingCommandEnd::Failed {
            at,
            message: "no route".into(),
        },
        PendingCommandEnd::Unknown {
            at,
            message: "no answer".into(),
        },
    ] {
        let mut world = held();
        // Somebody restores an older status, or writes one.
        world.crash(0);
        let power = &mut world.seen.host_mut().status.power;
        let command = power.command.as_mut().unwrap();
        (command.end, command.id) = (end.clone(), "restored/1".into());
        world.version += 1;
        world.is_poked = true;
        for _ in 0..2_000 {
            world.tick();
            let proof = proved(&world);
            let is_ours = proof.is_none_or(|proof| *proof.source() != restored);
            assert!(is_ours, "proved by no command: {end:?}");
        }
        assert!(proved(&world).is_some(), "{end:?}");
    }
}

#[test]
fn a_key_that_went_and_came_again_wants_a_proof_of_its_own() {
    let mut world = World::new(&[(KEY, HARD), (OTHER, HARD)], true, true);
    world.until_confirmed();
    world.run(20);
    world.remove(KEY);
    world.run(20);
    world.annotate(KEY, HARD);
    world.tick();
    assert!(
        !is_proved_for(&world, KEY),
        "proved before it was asked for"
    );
    assert!(!world.is_on());
    world.until_confirmed();
    assert!(is_proved_for(&world, KEY) && is_proved_for(&world, OTHER));
    assert_eq!(world.power_offs(), 1);
}

#[test]
fn a_host_held_by_a_level_that_is_no_more_is_proved_by_what_is_left_and_comes_on() {
    let mut world = held_by_pdu();
    mend(&mut world);
    without_pdu(&mut world);
    assert_eq!(proved(&world), None);
    world.until_confirmed();
    assert_eq!(
        proved(&world)
            .and_then(|proof| proof.off_readings())
            .map(|both| both.level),
        Some(0)
    );
    world.remove(KEY);
    world.until_on();
}

#[test]
fn a_command_to_a_level_that_is_no_more_goes_to_one_that_is() {
    for command in [PowerCommand::Off, PowerCommand::SoftOff, PowerCommand::On] {
        for end in [
            PendingCommandEnd::Open,
            PendingCommandEnd::Answered {
                at: "2026-01-01T00:00:00Z".parse().unwrap(),
            },
        ] {
            let mut world = held_by_pdu();
            mend(&mut world);
            world.crash(0);
            let power = &mut world.seen.host_mut().status.power;
            power.off_confirmed_at = None;
            let standing = power.command.as_mut().unwrap();
            standing.command = command;
            standing.end = end.clone();
            if command == PowerCommand::On {
                world.remove(KEY);
            }
            without_pdu(&mut world);
            let what = format!("{command} {end:?}");
            world.run(400);
            if command == PowerCommand::On {
                assert!(world.is_on(), "{what}: {}", world.because());
                assert_eq!(world.power().command, None, "{what}");
            } else {
                assert!(proved(&world).is_some(), "{what}: {}", world.because());
            }
        }
    }
}

#[test]
fn numbers_and_times_written_by_hand_are_survived() {
    for number in [0, u32::MAX] {
        for time in ["-009999-01-02T01:59:59Z", "9999-12-30T22:00:00Z"] {
            let mut world = World::new(&[(KEY, HARD)], true, true);
            world.bmcs[0].takes = vec![Takes::Fails(FaultClass::Refused); 3];
            world.run(2);
            world.crash(0);
            let power = &mut world.seen.host_mut().status.power;
            let command = power.command.as_mut().expect("it is being powered off");
            (command.attempt, command.before) = (number, number);
            command.level = usize::MAX;
            command.since = time.parse().unwrap();
            command.at = command.since;
            power.observed_at = Some(command.since);
            world.version += 1;
            world.run(400);
            assert!(
                proved(&world).is_some(),
                "{number} {time}: {}",
                world.because()
            );
        }
    }
}

#[test]
fn thousands_of_keys_are_obeyed_and_not_all_repeated_in_every_sentence() {
    let names: Vec<String> = (0..3_000)
        .map(|n| format!("{REBOOT_ANNOTATION}/key-{n:04}"))
        .collect();
    let all: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "{mode:hard}")).collect();
    let mut world = World::new(&all, true, true);
    world.annotate(KEY, HARD);
    world.until_confirmed();
    world.run(20);
    assert!(is_proved_for(&world, KEY) && is_proved_for(&world, &names[2_999]));
    let report = &world.last.as_ref().unwrap().report;
    assert!(report.events.len() < 20, "{}", report.events.len());
    let said = report
        .conditions
        .iter()
        .map(|condition| condition.message.len());
    assert!(said.max() < Some(4_000), "{:?}", report.conditions);
    let events = world.events.iter().map(|(_, _, text)| text.len());
    assert!(events.max() < Some(4_000));
    world.remove(KEY);
    for name in &names {
        world.remove(name);
    }
    world.until_on();
}

#[test]
fn the_interval_between_two_readings_begins_with_the_first_answer() {
    let mut world = held();
    world.run(60);
    let ago = |seconds| world.mono().saturating_sub(Duration::from_secs(seconds));
    let read = |asked, answered| LevelReading {
        level: 0,
        asked: ago(asked),
        answered: ago(answered),
        result: Ok(PowerReading::Off),
        system_uuid: None,
    };
    for (first_answered, is_proved) in [(20, true), (19, false)] {
        let mut seen = world.seen.clone();
        seen.memory.forget_bmc();
        seen.memory
            .record_check(0, Ok(BmcInfo::default()), ago(30), ago(30));
        seen.memory.record_reading(read(20, first_answered));
        seen.memory.record_reading(read(15, 15));
        let proof = find_off_proof(&seen, &world.config, world.now());
        assert_eq!(
            proof.is_some(),
            is_proved,
            "answered {first_answered} s ago"
        );
    }
}

#[test]
fn a_new_leaders_proof_is_read_after_every_command_of_unknown_end_can_be_run_no_more() {
    let mut world = held();
    world.crash(0);
    let power = &mut world.seen.host_mut().status.power;
    power.command.as_mut().unwrap().after_unknown = true;
    world.version += 1;
    // The first reading is too early, and the next one is alone.
    world.run(33);
    assert_eq!(world.seen.memory.readings.len(), 2);
    assert_eq!(proved(&world), None);
    world.run(5);
    assert!(proved(&world).is_some());
}
