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

/// Held off by the PDU, because the BMC does not answer.
fn held_by_pdu(annotation: &str) -> World {
    let mut world = World::new(&[(annotation, HARD)], true, true);
    world.add_level();
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Unreachable);
    world.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    world.until_confirmed();
    world.bmcs[0].default_takes = Takes::Runs(500);
    world.bmcs[0].default_says = Says::Truth;
    world
}

#[test]
fn a_bmc_whose_secret_is_missing_keeps_no_outlet_off_that_need_not_be_off() {
    let bad_address = |world: &mut World| {
        let device = &mut world.seen.host_mut().levels[0].devices[0];
        device.address = Err(BadBmcAddress("is no address".into()));
        world.version += 1;
        world.lose_secret(0);
    };
    let damages: [&dyn Fn(&mut World); 2] = [&|world| world.lose_secret(0), &bad_address];
    for damage in damages {
        let mut world = held_by_pdu(KEY);
        damage(&mut world);
        let before = world.sent.len();
        world.run(300);
        assert_eq!(world.sent.len(), before, "the key holds it");
        assert_eq!(world.because(), PowerReason::HeldOff);
        let proof = find_off_proof(&world.seen, &world.config, world.now());
        assert_eq!(proof, None, "the BMC could not contradict");
        assert_eq!(world.status().powered_on, Some(true));
        let obstacle = find_switching_obstacle(&world.seen, &world.config, world.now());
        assert!(obstacle.is_some(), "nobody may rely on a proof");
        world.remove(KEY);
        world.run(60);
        assert!(world.bmcs[1].gives, "{:?}", world.events.last());
        let last = world.sent.last().unwrap();
        assert_eq!((last.command, last.level), (PowerCommand::On, 1));
        let ready = world.condition("PowerControlReady");
        assert_eq!(ready.status, crate::condition::ConditionStatus::False);
        // The BMC can be called again: it says on, and the power-on is over.
        let device = host(&[], true).levels[0].devices[0].clone();
        world.seen.host_mut().levels[0].devices[0] = device;
        world.seen.access[0] = LevelAccess::Ready {
            cost: CallCost::Request,
        };
        world.until_on();
    }
}

#[test]
fn an_outlet_is_read_at_polls_only_while_the_bmc_cannot_be_asked() {
    let mut world = held_by_pdu(KEY);
    world.lose_secret(0);
    world.run(30);
    let reads = world.reads_begun[1];
    world.run(600);
    let reads = world.reads_begun[1] - reads;
    assert!((5..=20).contains(&reads), "{reads}");
}

#[test]
fn a_power_off_that_is_withdrawn_while_the_bmc_cannot_be_asked_gives_the_outlet_its_power_back() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.add_level();
    world.seen.host_mut().status.last_powered_on = None;
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Unreachable);
    world.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    world.until("the outlet is off", |world| !world.bmcs[1].gives);
    world.lose_secret(0);
    world.run(60);
    assert_eq!(
        world.power().off_confirmed_at,
        None,
        "the BMC was not asked since"
    );
    assert_eq!(world.because(), PowerReason::ConfirmingOff);
    // As if the reboot had taken place already: nothing but the key asked for off.
    let host = world.seen.host_mut();
    host.status.last_powered_on = host.status.pending_reboot_since.take();
    world.remove(KEY);
    world.run(60);
    assert!(world.bmcs[1].gives, "{:?}", world.events.last());
}

#[test]
fn a_pdu_alone_cuts_no_power_before_the_bmc_can_be_asked() {
    let mut world = with_pdu();
    world.lose_secret(0);
    world.run(300);
    assert_eq!(world.kinds(), []);
    assert_eq!(world.because(), PowerReason::SecretNotFound);
    assert_eq!(world.status().powered_on, Some(true));
}
