//! Levels, tried in order. Source: specification §3.3.

use super::world::*;
use crate::power::*;

fn with_pdu() -> World {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.add_level();
    world
}

#[test]
fn the_next_level_is_used_after_three_commands_that_came_to_nothing() {
    let mut world = with_pdu();
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Unreachable);
    world.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    world.until_confirmed();
    let levels: Vec<_> = world.sent.iter().map(|trace| trace.level).collect();
    assert_eq!(levels, [0, 0, 0, 1]);
    assert!(world.said(PowerReason::NextLevel));
    assert!(
        world.time - 1_000_000 < 30_000,
        "a fence is not kept waiting"
    );
    let proof = find_off_proof(&world.seen, &world.config, world.now()).unwrap();
    assert_eq!(proof.off_readings().map(|both| both.level), Some(1));
    assert_eq!(world.status().powered_on, Some(false));
}

#[test]
fn a_level_that_cannot_do_it_is_left_at_once() {
    let mut world = with_pdu();
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Unsupported);
    world.until_confirmed();
    let levels: Vec<_> = world.sent.iter().map(|trace| trace.level).collect();
    assert_eq!(levels, [0, 1]);
}

#[test]
fn after_the_last_level_comes_the_first_again() {
    let mut world = with_pdu();
    for bmc in &mut world.bmcs {
        bmc.default_takes = Takes::Fails(FaultClass::Refused);
    }
    world.run(600);
    let levels: Vec<_> = world.sent.iter().map(|trace| trace.level).collect();
    assert_eq!(levels[..7], [0, 0, 0, 1, 1, 1, 0]);
    world.bmcs[0].default_takes = Takes::Runs(100);
    world.until_confirmed();
}

#[test]
fn the_level_that_cut_the_power_gives_it_back_and_then_the_bmc_is_asked() {
    let mut world = with_pdu();
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Unreachable);
    world.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    world.until_confirmed();
    // With power back the BMC boots, and the machine stays off.
    world.bmcs[0].default_takes = Takes::Runs(500);
    world.bmcs[0].default_says = Says::Truth;
    world.bmcs[0].gives = false;
    world.remove(KEY);
    world.until_on();
    let levels: Vec<_> = world
        .sent
        .iter()
        .map(|trace| (trace.command, trace.level))
        .collect();
    assert_eq!(levels[4..], [(PowerCommand::On, 1), (PowerCommand::On, 0)]);
}

#[test]
fn a_second_level_that_cannot_be_spoken_to_does_not_stop_the_first() {
    let mut world = with_pdu();
    world.seen.access[1] = LevelAccess::Missing {
        reason: PowerReason::SecretNotFound,
        message: "create it".into(),
    };
    world.bmcs[0].takes = vec![Takes::Fails(FaultClass::Refused); 5];
    world.until_confirmed();
    assert!(world.sent.iter().all(|trace| trace.level == 0));
    let condition = world.condition("PowerControlReady");
    assert_eq!(condition.reason, PowerReason::SecretNotFound.as_str());
}

#[test]
fn an_outlet_without_an_answer_is_held_off_also_where_nobody_wants_a_proof() {
    let mut world = World::new(&[], false, true);
    world.add_level();
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Refused);
    let (after, runs) = (10_000, Some(300));
    world.bmcs[1].takes = vec![Takes::Silent { after, runs }];
    world.run(300);
    assert_eq!(world.because(), PowerReason::AsWanted);
    assert_eq!(world.status().powered_on, Some(false));
    assert!(world.power().off_confirmed_at.is_some());
}

#[test]
fn an_outlet_that_never_answers_is_kept_until_it_gives_power_again() {
    let mut world = World::new(&[], false, true);
    world.add_level();
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Refused);
    let (after, runs) = (10_000, Some(300));
    world.bmcs[1].default_takes = Takes::Silent { after, runs };
    world.run(900);
    assert!(!world.bmcs[1].gives && world.sent.len() > 4);
    let not_off = |(_, _, text): &&(u64, &str, String)| {
        text.contains("level 1") && text.contains("it is not off")
    };
    assert_eq!(world.events.iter().find(not_off), None);
    world.seen.host_mut().online = true;
    world.version += 1;
    world.run(300);
    assert!(world.bmcs[1].gives, "{:?}", world.events.last());
}
