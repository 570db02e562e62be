//! Nodes that never get done: they hold up neither the next rollout nor the canaries.

use std::time::Duration;

use super::kit::{RolloutWorld, SOAK, build_shape};
use super::steps::canary_names;
use crate::explain::testkit::condition;
use crate::policy::rollout::RolloutPhase;
use crate::reboot::{RebootPhase, RebootReason};

/// n1 was the canary, and the ramp has begun.
fn ramping_world(nodes: usize) -> RolloutWorld {
    let mut world = RolloutWorld::new(build_shape(1, &[1], None), nodes);
    world.reboot_node(1);
    world.pass_time(SOAK);
    world.write_state();
    assert_eq!(world.written_state().phase, RolloutPhase::Ramping);
    world
}

/// n2 has failed in the rollout before, and an hour of rest has begun a new one.
fn world_after_a_failure(nodes: usize) -> RolloutWorld {
    let mut world = ramping_world(nodes);
    world.want_reboot(2);
    world.set_phase(2, RebootPhase::Draining);
    world.write_state();
    world.back_off(2);
    world.write_state();
    world.pass_time(Duration::from_hours(1));
    world.write_state();
    assert_eq!(world.written_state().phase, RolloutPhase::Canary);
    world
}

#[test]
fn a_drain_that_never_succeeds_does_not_keep_the_next_wave_from_its_canaries() {
    let mut world = ramping_world(3);
    world.want_reboot(2);
    world.back_off(2);
    world.write_state();
    assert_eq!(world.written_state().failures, 1);
    world.pass_time(Duration::from_mins(30));
    world.end_back_off(2);
    world.set_phase(2, RebootPhase::Draining);
    world.write_state();
    world.pass_time(Duration::from_mins(30));
    world.write_state();
    world.want_reboot(3);
    assert_eq!(world.begin_refusal(3), Some(RebootReason::AwaitingCanary));
    world.write_state();
    assert!(
        canary_names(&world).is_empty(),
        "n2 drains and takes the place"
    );
    world.back_off(2);
    world.write_state();
    assert_eq!(canary_names(&world), ["n3"]);
    assert_eq!(world.written_state().failures, 0, "n2 was counted before");
}

#[test]
fn a_node_that_died_while_it_waited_does_not_keep_the_next_wave_from_its_canaries() {
    let mut world = ramping_world(3);
    world.want_reboot(2);
    world.set_ready(2, false);
    world.write_state();
    world.pass_time(Duration::from_hours(1));
    world.write_state();
    world.want_reboot(3);
    assert_eq!(world.begin_refusal(3), Some(RebootReason::AwaitingCanary));
    world.write_state();
    assert_eq!(canary_names(&world), ["n3"]);
}

#[test]
fn a_clock_that_was_set_back_does_not_make_the_rest_longer() {
    let mut world = ramping_world(3);
    world.reboot_node(2);
    world.second -= 10 * 60 * 60;
    world.write_state();
    world.pass_time(Duration::from_hours(1));
    world.write_state();
    assert_eq!(world.written_state().phase, RolloutPhase::Canary);
}

#[test]
fn a_canary_that_failed_before_this_rollout_gives_its_place_to_a_node_that_did_not() {
    let mut world = world_after_a_failure(4);
    world.end_back_off(2);
    world.write_state();
    assert_eq!(canary_names(&world), ["n2"], "nobody else waits");
    world.want_reboot(3);
    world.write_state();
    assert_eq!(canary_names(&world), ["n2"], "it may begin at any moment");
    world.set_phase(2, RebootPhase::Draining);
    world.write_state();
    assert_eq!(canary_names(&world), ["n2"]);
    world.back_off(2);
    world.write_state();
    assert!(
        canary_names(&world).is_empty(),
        "the name is given on one write later"
    );
    world.write_state();
    assert_eq!(canary_names(&world), ["n3"]);
}

#[test]
fn a_canary_whose_failure_counts_keeps_its_name() {
    let mut world = RolloutWorld::new(build_shape(1, &[1], None), 2);
    world.want_reboot(1);
    world.want_reboot(2);
    world.write_state();
    world.back_off(1);
    for _ in 0..3 {
        world.write_state();
        assert_eq!(canary_names(&world), ["n1"]);
    }
}

#[test]
fn a_dead_node_is_not_named_and_one_that_dies_after_it_was_named_loses_the_name() {
    let mut world = RolloutWorld::new(build_shape(1, &[], None), 3);
    for number in 1..=3 {
        world.want_reboot(number);
        world.pass_time(Duration::from_secs(1));
    }
    world.set_ready(1, false);
    world.write_state();
    assert_eq!(canary_names(&world), ["n2"]);
    world.set_ready(2, false);
    let named = world.write_state();
    assert_eq!(
        named.wake,
        Some(world.current_time() + jiff::SignedDuration::from_mins(1))
    );
    world.pass_time(Duration::from_secs(299));
    world.write_state();
    assert_eq!(canary_names(&world), ["n2"], "it may only be restarting");
    world.pass_time(Duration::from_secs(1));
    world.write_state();
    assert!(canary_names(&world).is_empty());
    world.write_state();
    assert_eq!(canary_names(&world), ["n3"]);
}

#[test]
fn a_sick_node_that_waits_alone_for_its_reboot_is_named() {
    let mut world = RolloutWorld::new(build_shape(1, &[], None), 2);
    world.want_reboot(1);
    world.set_ready(1, false);
    world.write_state();
    assert_eq!(canary_names(&world), ["n1"]);
    world.pass_time(Duration::from_mins(6));
    world.want_reboot(2);
    world.write_state();
    world.write_state();
    assert_eq!(canary_names(&world), ["n2"]);
}

#[test]
fn a_canary_that_failed_in_this_rollout_keeps_its_name_when_it_dies() {
    let mut world = RolloutWorld::new(build_shape(1, &[1], None), 2);
    world.want_reboot(1);
    world.want_reboot(2);
    world.write_state();
    world.back_off(1);
    world.set_ready(1, false);
    world.pass_time(Duration::from_mins(10));
    for _ in 0..3 {
        world.write_state();
        assert_eq!(canary_names(&world), ["n1"]);
    }
}

#[test]
fn the_second_try_of_a_canary_is_no_rest() {
    let mut world = world_after_a_failure(3);
    world.end_back_off(2);
    world.write_state();
    world.set_phase(2, RebootPhase::Draining);
    world.write_state();
    world.pass_time(Duration::from_hours(2));
    world.write_state();
    world.write_state();
    assert_eq!(canary_names(&world), ["n2"]);
}

#[test]
fn a_canary_that_reboots_is_not_ready_and_keeps_its_name() {
    let mut world = RolloutWorld::new(build_shape(1, &[], None), 2);
    world.want_reboot(1);
    world.want_reboot(2);
    world.write_state();
    world.set_phase(1, RebootPhase::Rebooting);
    world.set_ready(1, false);
    world.pass_time(Duration::from_hours(2));
    world.write_state();
    assert_eq!(canary_names(&world), ["n1"]);
}

#[test]
fn a_dead_canary_keeps_its_name_while_nobody_else_can_begin() {
    let mut world = RolloutWorld::new(build_shape(1, &[], None), 2);
    world.want_reboot(1);
    world.write_state();
    world.set_ready(1, false);
    world.pass_time(Duration::from_mins(10));
    world.write_state();
    assert_eq!(canary_names(&world), ["n1"]);
}

/// n2 failed in the rollout before, n1 in this one. Both are canaries; n1 is back, and n5 waits.
fn world_with_a_failure_of_each_rollout() -> RolloutWorld {
    let mut world = RolloutWorld::new(build_shape(2, &[1], None), 5);
    world.reboot_node(3);
    world.reboot_node(4);
    world.pass_time(SOAK);
    world.write_state();
    world.want_reboot(2);
    world.back_off(2);
    world.write_state();
    world.pass_time(Duration::from_hours(1));
    world.write_state();
    assert_eq!(world.written_state().phase, RolloutPhase::Canary);
    world.end_back_off(2);
    world.want_reboot(1);
    world.write_state();
    assert_eq!(canary_names(&world), ["n1", "n2"]);
    world.back_off(1);
    world.write_state();
    assert_eq!(world.written_state().failures, 1);
    world.end_back_off(1);
    world.set_phase(1, RebootPhase::Draining);
    world.come_back(1);
    world.write_state();
    world.want_reboot(5);
    world
}

#[test]
fn a_failure_of_one_canary_keeps_no_other_that_failed_before_in_its_place() {
    let mut world = world_with_a_failure_of_each_rollout();
    world.back_off(2);
    world.write_state();
    world.write_state();
    assert_eq!(canary_names(&world), ["n1", "n5"]);

    let mut world = world_with_a_failure_of_each_rollout();
    world.set_ready(2, false);
    world.pass_time(Duration::from_mins(5));
    world.write_state();
    world.write_state();
    assert_eq!(canary_names(&world), ["n1", "n5"]);
}

#[test]
fn a_count_of_an_older_version_may_be_of_any_canary_that_failed() {
    let mut world = RolloutWorld::new(build_shape(1, &[1], None), 3);
    world.want_reboot(1);
    world.want_reboot(2);
    world.write_state();
    world.back_off(1);
    world.write_state();
    let forget_notes = |world: &mut RolloutWorld| {
        let state = world.policy.rollout.state.as_mut().unwrap();
        state.failed.iter_mut().for_each(|it| it.counted = None);
    };
    forget_notes(&mut world);
    world.write_state();
    assert_eq!(canary_names(&world), ["n1"]);

    let mut world = world_after_a_failure(3);
    forget_notes(&mut world);
    // A definition of an older version drops the notes: that alone is written by nobody.
    let (before, after) = (world.written_state(), world.next_advance().state);
    assert_eq!(Some(before), after.as_ref());
    world.end_back_off(2);
    world.write_state();
    world.want_reboot(3);
    world.back_off(2);
    world.write_state();
    world.write_state();
    assert_eq!(canary_names(&world), ["n3"], "nothing counts here");
    world.back_off(3);
    world.write_state();
    let notes = world.written_state().failed.iter().map(|it| it.counted);
    assert_eq!(notes.collect::<Vec<_>>(), [Some(false), Some(true)]);
}

#[test]
fn a_resumption_counts_no_failure_from_before() {
    let mut world = RolloutWorld::new(build_shape(1, &[1], Some(1)), 2);
    world.want_reboot(1);
    world.write_state();
    world.back_off(1);
    world.write_state();
    assert_eq!(world.written_state().failed[0].counted, Some(true));
    world.resume_policy();
    world.write_state();
    assert_eq!(world.written_state().failures, 0);
    assert_eq!(world.written_state().failed[0].counted, Some(false));
}

#[test]
fn a_reboot_that_failed_long_ago_takes_no_place_of_a_canary() {
    let mut world = ramping_world(3);
    world.want_reboot(2);
    world.fail_reboot(2);
    world.write_state();
    world.pass_time(Duration::from_hours(1));
    world.write_state();
    assert_eq!(world.written_state().phase, RolloutPhase::Canary);
    world.want_reboot(3);
    world.write_state();
    world.write_state();
    assert_eq!(canary_names(&world), ["n3"]);
}

#[test]
fn a_node_without_a_name_that_fails_in_this_rollout_keeps_its_place() {
    let mut world = RolloutWorld::new(build_shape(1, &[1], None), 2);
    world.write_state();
    world.want_reboot(1);
    world.set_phase(1, RebootPhase::Draining);
    world.want_reboot(2);
    world.write_state();
    world.fail_reboot(1);
    for _ in 0..3 {
        world.write_state();
        assert!(canary_names(&world).is_empty());
    }
    assert_eq!(world.written_state().failures, 1);
}

#[test]
fn a_clock_that_was_set_back_does_not_make_the_soak_longer() {
    let mut world = RolloutWorld::new(build_shape(1, &[1], None), 2);
    world.reboot_node(1);
    assert_eq!(world.written_state().phase, RolloutPhase::Soaking);
    world.second -= 10 * 60 * 60;
    world.write_state();
    world.pass_time(SOAK);
    world.write_state();
    assert_eq!(world.written_state().phase, RolloutPhase::Ramping);
}

/// Another tool has set `MaintenanceInProgress`, so the coordinator reports by another condition.
#[test]
fn a_failure_counts_also_beside_a_condition_of_another_tool() {
    let mut world = RolloutWorld::new(build_shape(1, &[1], Some(1)), 2);
    world.want_reboot(1);
    world.write_state();
    world.fail_reboot(1);
    let node = world.node_mut(1);
    node.conditions[0].kind = "MaintenancePlanned".into();
    node.conditions.insert(
        0,
        condition(
            "MaintenanceInProgress",
            ("FirmwareUpdate", "by another tool"),
        ),
    );
    world.write_state();
    assert_eq!(world.written_state().failures, 1);
    assert!(world.written_state().halted.is_some());
}

#[test]
fn a_halt_names_the_failures_that_it_counts() {
    let mut world = RolloutWorld::new(build_shape(1, &[2], Some(2)), 5);
    world.reboot_node(1);
    world.want_reboot(5);
    world.back_off(5);
    world.pass_time(SOAK);
    world.write_state();
    // n5 failed before this rollout.
    world.pass_time(Duration::from_hours(1));
    world.write_state();
    assert_eq!(world.written_state().phase, RolloutPhase::Canary);
    assert_eq!(world.written_state().failed[0].counted, Some(false));
    world.reboot_node(2);
    world.pass_time(SOAK);
    world.write_state();
    // n3 fails, and is back after its second try.
    world.want_reboot(3);
    world.back_off(3);
    world.write_state();
    world.come_back(3);
    world.write_state();
    world.want_reboot(4);
    world.back_off(4);
    world.write_state();
    let halt = world.written_state().halted.clone().unwrap();
    assert_eq!(
        halt.reason,
        "2 failures: n4 GivenUp, 1 of a reboot that has ended since"
    );
}
