//! What the controller writes, step by step.

use std::time::Duration;

use super::kit::{RolloutWorld, SOAK, build_shape};
use crate::policy::rollout::{PolicyRolloutState, RolloutPhase, RolloutShape, is_urgent_change};
use crate::reboot::{ParsedAnnotation, RebootPhase, RebootReason};

pub(super) fn canary_names(world: &RolloutWorld) -> Vec<&str> {
    let canaries = world.written_state().canaries.iter();
    canaries.map(|canary| canary.node.as_str()).collect()
}

#[test]
fn canaries_then_a_soak_then_the_ramp_then_max_unavailable() {
    let mut world = RolloutWorld::new(build_shape(1, &[1, 2], None), 6);
    for number in 1..=6 {
        world.want_reboot(number);
    }
    world.write_state();
    assert_eq!(canary_names(&world), ["n1"]);
    assert_eq!(world.begin_refusal(1), None);
    assert_eq!(world.begin_refusal(2), Some(RebootReason::AwaitingCanary));
    world.set_phase(1, RebootPhase::Rebooting);
    world.write_state();
    assert_eq!(world.written_state().phase, RolloutPhase::Canary);
    world.come_back(1);
    let soak = world.write_state();
    assert_eq!(world.written_state().phase, RolloutPhase::Soaking);
    assert_eq!(world.begin_refusal(2), Some(RebootReason::RolloutSoaking));
    assert_eq!(soak.wake, world.written_state().soak_ends);
    world.pass_time(SOAK.saturating_sub(Duration::from_secs(1)));
    world.write_state();
    assert_eq!(world.written_state().phase, RolloutPhase::Soaking);
    world.pass_time(Duration::from_secs(1));
    world.write_state();
    assert_eq!(
        (world.begin_refusal(2), world.written_state().limit),
        (None, Some(1))
    );
    world.reboot_node(2);
    assert_eq!(
        (world.written_state().step, world.written_state().limit),
        (1, Some(2))
    );
    for (number, limit) in [(3, Some(2)), (4, None)] {
        world.reboot_node(number);
        assert_eq!(world.written_state().limit, limit, "after n{number}");
    }
    assert!(world.written_state().under_way.is_empty());
}

#[test]
fn a_rollout_without_canaries_begins_with_its_ramp_at_once() {
    for canary in [None, Some(0)] {
        let asked = RolloutShape {
            canary: canary.and_then(|nodes| build_shape(nodes, &[], None).canary),
            ramp: vec![1],
            halt_after_failures: None,
        };
        let mut world = RolloutWorld::new(asked, 2);
        world.write_state();
        assert_eq!(
            (world.begin_refusal(1), world.written_state().limit),
            (None, Some(1))
        );
    }
}

#[test]
fn the_longest_waiting_are_named_and_none_that_cannot_begin() {
    let mut world = RolloutWorld::new(build_shape(2, &[], None), 5);
    for number in [5, 4, 3, 2, 1] {
        world.want_reboot(number);
        world.pass_time(Duration::from_secs(1));
    }
    world.node_mut(5).being_fenced = true;
    let mut backing_off = world.node_mut(4).record.get().unwrap().clone();
    backing_off.retry_after = Some(world.current_time());
    world.node_mut(4).record = ParsedAnnotation::Is(backing_off);
    world.write_state();
    assert_eq!(canary_names(&world), ["n3", "n2"]);
}

#[test]
fn a_name_goes_with_the_wish_and_is_given_on_one_write_later() {
    let mut world = RolloutWorld::new(build_shape(1, &[], None), 2);
    world.want_reboot(1);
    world.want_reboot(2);
    world.write_state();
    assert_eq!(canary_names(&world), ["n1"]);
    world.node_mut(1).record = ParsedAnnotation::Absent;
    world.write_state();
    assert!(world.written_state().canaries.is_empty());
    world.write_state();
    assert_eq!(canary_names(&world), ["n2"]);
}

#[test]
fn a_name_stays_while_its_node_waits_or_reboots_and_goes_with_its_node() {
    let mut world = RolloutWorld::new(build_shape(1, &[], None), 2);
    world.want_reboot(1);
    world.want_reboot(2);
    world.write_state();
    for phase in RebootPhase::ALL {
        world.set_phase(1, phase);
        world.write_state();
        assert_eq!(canary_names(&world), ["n1"], "{phase:?}");
    }
    world.node_mut(1).uid = "made anew".into();
    world.write_state();
    assert!(world.written_state().canaries.is_empty());
}

#[test]
fn a_node_that_began_before_takes_a_canarys_place_until_it_is_back() {
    let mut world = RolloutWorld::new(build_shape(1, &[], None), 2);
    world.want_reboot(1);
    world.set_phase(1, RebootPhase::Draining);
    world.want_reboot(2);
    world.write_state();
    assert!(world.written_state().canaries.is_empty());
    world.come_back(1);
    world.write_state();
    assert_eq!(canary_names(&world), ["n2"]);
}

#[test]
fn a_failure_ends_the_row_of_successes_and_counts_once() {
    let mut world = RolloutWorld::new(build_shape(0, &[3], Some(2)), 5);
    world.reboot_node(1);
    world.reboot_node(2);
    assert_eq!(world.written_state().successes, 2);
    world.want_reboot(3);
    world.fail_reboot(3);
    for _ in 0..3 {
        world.write_state();
        let state = world.written_state();
        assert_eq!((state.successes, state.failures), (0, 1));
    }
    assert_eq!(world.written_state().failed[0].reason, "RebootFailed");
    world.come_back(3);
    world.write_state();
    let state = world.written_state();
    assert_eq!(
        (state.successes, state.failures, state.failed.len()),
        (0, 1, 0)
    );
}

#[test]
fn a_drain_that_was_given_up_is_a_failure_and_one_that_a_halt_undid_is_not() {
    let mut world = RolloutWorld::new(build_shape(0, &[], Some(1)), 2);
    world.want_reboot(1);
    world.write_state();
    assert_eq!(world.written_state().failures, 0);
    let mut given_up = world.node_mut(1).record.get().unwrap().clone();
    given_up.failures = 1;
    world.node_mut(1).record = ParsedAnnotation::Is(given_up);
    world.want_reboot(2);
    world.set_phase(2, RebootPhase::Draining);
    world.write_state();
    assert!(world.written_state().halted.is_some());
    world.set_phase(2, RebootPhase::Waiting);
    world.write_state();
    assert_eq!(world.written_state().failures, 1);
}

#[test]
fn a_halt_stands_through_a_new_shape_and_a_removed_one_until_a_person_ends_it() {
    let mut world = RolloutWorld::new(build_shape(0, &[], Some(1)), 2);
    world.want_reboot(1);
    world.fail_reboot(1);
    // Failures from before the rollout do not count.
    world.write_state();
    assert_eq!(world.written_state().halted, None);
    world.want_reboot(2);
    world.fail_reboot(2);
    world.write_state();
    let halt = world.written_state().halted.clone().unwrap();
    assert_eq!(halt.reason, "1 failure: n2 RebootFailed");
    for asked in [
        Some(build_shape(1, &[1], Some(5))),
        None,
        Some(build_shape(0, &[], None)),
    ] {
        world.policy.rollout.shape = asked;
        world.pass_time(Duration::from_hours(5));
        world.write_state();
        assert_eq!(world.written_state().halted.as_ref(), Some(&halt));
        assert_eq!(world.begin_refusal(1), Some(RebootReason::RolloutHalted));
    }
    world.resume_policy();
    world.write_state();
    let state = world.written_state();
    assert_eq!((state.halted.as_ref(), state.failures), (None, 0));
    for _ in 0..2 {
        world.write_state();
        assert_eq!(
            world.written_state().failures,
            0,
            "what failed before still stands"
        );
    }
}

#[test]
fn a_later_halt_is_not_ended_by_an_earlier_word() {
    let mut world = RolloutWorld::new(build_shape(0, &[], Some(1)), 2);
    world.write_state();
    world.want_reboot(1);
    world.fail_reboot(1);
    world.write_state();
    world.resume_policy();
    world.write_state();
    assert_eq!(world.written_state().halted, None);
    world.pass_time(Duration::from_secs(1));
    world.want_reboot(2);
    world.fail_reboot(2);
    world.write_state();
    world.write_state();
    assert!(world.written_state().halted.is_some());
}

#[test]
fn a_removed_rollout_leaves_nothing_behind_but_a_halt() {
    let mut world = RolloutWorld::new(build_shape(1, &[], None), 1);
    world.write_state();
    world.policy.rollout.shape = None;
    assert_eq!(world.write_state().state, None);
}

#[test]
fn another_shape_begins_with_its_canaries() {
    let mut world = RolloutWorld::new(build_shape(0, &[1], None), 3);
    world.reboot_node(1);
    world.policy.rollout.shape = Some(build_shape(1, &[1], None));
    assert_eq!(
        world.begin_refusal(2),
        Some(RebootReason::RolloutNotStarted)
    );
    world.want_reboot(2);
    world.want_reboot(3);
    world.write_state();
    assert_eq!(canary_names(&world), ["n2"]);
    assert_eq!(world.begin_refusal(3), Some(RebootReason::AwaitingCanary));
}

#[test]
fn after_an_hour_of_rest_the_next_wave_begins_with_canaries() {
    let mut world = RolloutWorld::new(build_shape(1, &[1], None), 3);
    world.reboot_node(1);
    world.pass_time(SOAK);
    world.write_state();
    world.reboot_node(2);
    let quiet = world.write_state();
    assert_eq!(world.written_state().phase, RolloutPhase::Ramping);
    assert_eq!(
        quiet.wake,
        Some(world.current_time() + jiff::SignedDuration::from_hours(1))
    );
    world.pass_time(Duration::from_mins(59));
    world.write_state();
    assert_eq!(world.begin_refusal(3), None, "still the same wave");
    world.pass_time(Duration::from_mins(1));
    let anew = world.write_state();
    assert_eq!(world.begin_refusal(3), Some(RebootReason::AwaitingCanary));
    assert_eq!(anew.wake, None);
    assert_eq!(
        world.next_advance(),
        anew,
        "a state at rest is not written again"
    );
}

#[test]
fn an_hour_in_which_somebody_waits_is_no_rest_and_a_soak_is_none_either() {
    let mut world = RolloutWorld::new(build_shape(1, &[1], None), 3);
    world.reboot_node(1);
    assert_eq!(world.written_state().quiet_since, None, "it soaks");
    world.pass_time(SOAK);
    world.write_state();
    world.pass_time(Duration::from_mins(50));
    world.want_reboot(2);
    world.write_state();
    world.pass_time(Duration::from_mins(50));
    world.write_state();
    assert_eq!(world.written_state().phase, RolloutPhase::Ramping);
}

#[test]
fn nodes_wait_for_every_change_but_those_of_what_is_counted() {
    let mut world = RolloutWorld::new(build_shape(0, &[2], None), 2);
    world.write_state();
    let before = world.written_state().clone();
    world.want_reboot(1);
    world.set_phase(1, RebootPhase::Draining);
    world.write_state();
    let tracked = world.written_state().clone();
    assert_ne!(before, tracked);
    assert!(!is_urgent_change(Some(&before), Some(&tracked)));
    let counted = PolicyRolloutState {
        successes: tracked.successes + 1,
        ..tracked.clone()
    };
    assert!(!is_urgent_change(Some(&tracked), Some(&counted)));
    let next_step = PolicyRolloutState {
        step: tracked.step + 1,
        ..tracked.clone()
    };
    assert!(is_urgent_change(Some(&tracked), Some(&next_step)));
    world.fail_reboot(1);
    world.write_state();
    assert!(is_urgent_change(
        Some(&tracked),
        Some(world.written_state())
    ));
    assert!(is_urgent_change(None, Some(&before)));
}
