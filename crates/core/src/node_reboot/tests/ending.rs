//! How a NodeReboot ends.

use dogwatch_api::node_reboot::{NodeRebootPhase, RebootMethod};

use super::super::{LateAsk, is_past_joining};
use super::kit::*;
use crate::reboot::{ParsedAnnotation, RebootOutcome};

fn asked(name: &str) -> World {
    let mut world = World::with_reboot(name, plan(RebootMethod::Reboot));
    world.settle();
    world
}

#[test]
fn the_phases_and_the_boot_ids_of_the_record_are_mirrored() {
    let mut world = asked("a");
    for phase in ["Waiting", "Draining", "Rebooting", "Returning", "Finished"] {
        world.coordinate();
        world.settle();
        assert_eq!(world.reboots["a"].status.phase.as_str(), phase);
    }
    let attempt = &world.reboots["a"].status.attempts[0];
    assert_eq!(attempt.boot_id_before.as_deref(), Some("boot-0"));
    assert_eq!(attempt.boot_id_after.as_deref(), Some("boot-1"));
    assert!(attempt.drained_at.is_some() && attempt.rebooted_at.is_some());
    assert_eq!(attempt.outcome.as_deref(), Some("Rebooted"));
}

#[test]
fn a_drain_that_is_given_up_waits_again() {
    let mut world = asked("a");
    world.coordinate();
    world.coordinate();
    world.settle();
    world.give_up_drain();
    world.settle();
    assert_eq!(world.succeeded("a"), "Unknown WaitingForLock");
    world.cancel("a");
    world.settle();
    assert_eq!(world.succeeded("a"), "False Cancelled");
}

#[test]
fn a_request_that_reaches_the_node_after_the_end_is_taken_back() {
    let mut world = asked("a");
    let late = world.node.as_ref().unwrap().request.clone();
    world.cancel("a");
    world.settle();
    assert_eq!(world.succeeded("a"), "False Cancelled");
    world.change_node(|node| node.request = late);
    world.settle();
    let node = world.node.as_ref().unwrap();
    assert_eq!(node.request, ParsedAnnotation::Absent);
}

/// The first request is under way for the Node's present version, or a leader that died may have sent it.
#[test]
fn before_the_end_a_request_that_may_still_arrive_is_made_to_fail() {
    for is_known in [true, false] {
        for is_deleted in [true, false] {
            let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
            world.lead("a", 2, false);
            assert_eq!(world.reboots["a"].status.attempts.len(), 1);
            let sent_for = world.node.as_ref().unwrap().resource_version.clone();
            world.late_ask = if is_known {
                LateAsk::ForVersion(sent_for.clone())
            } else {
                LateAsk::Unknown
            };
            if is_deleted {
                world.delete("a");
            } else {
                world.cancel("a");
            }
            world.settle();
            if is_deleted {
                assert!(world.reboots.is_empty());
            } else {
                assert_eq!(world.succeeded("a"), "False Cancelled");
            }
            let node = world.node.as_ref().unwrap();
            assert_ne!(node.resource_version, sent_for, "it could still land");
            assert_eq!(node.request, ParsedAnnotation::Absent);
        }
    }
}

#[test]
fn a_request_that_the_node_has_outrun_needs_no_write() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
    world.lead("a", 2, false);
    world.late_ask = LateAsk::ForVersion("older".into());
    let before = world.node.clone();
    world.cancel("a");
    world.settle();
    assert_eq!(world.succeeded("a"), "False Cancelled");
    assert_eq!(world.node, before);
}

#[test]
fn a_late_request_for_a_hold_is_taken_back_while_it_drains_too() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Hold));
    world.settle();
    let late = world.node.as_ref().unwrap().request.clone();
    world.cancel("a");
    world.settle();
    assert_eq!(world.succeeded("a"), "False Cancelled");
    world.change_node(|node| node.request = late);
    world.coordinate();
    world.coordinate();
    world.settle();
    let node = world.node.as_ref().unwrap();
    assert_eq!(node.request, ParsedAnnotation::Absent);
}

#[test]
fn a_controller_that_was_away_during_the_reboot_finds_the_outcome() {
    let mut world = asked("a");
    for _ in 0..5 {
        world.coordinate();
    }
    world.settle();
    assert_eq!(world.succeeded("a"), "True Rebooted");
    assert_eq!(world.boots, 1);
}

#[test]
fn boot_ids_decide_when_a_later_reboot_has_overwritten_the_outcome() {
    let mut world = asked("a");
    for _ in 0..5 {
        world.coordinate();
    }
    world.plan_reboot(true);
    for _ in 0..4 {
        world.coordinate();
    }
    world.settle();
    assert_eq!(world.succeeded("a"), "True Rebooted");
    assert_eq!(world.served.values().copied().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_reboot_of_others_before_the_node_was_asked_does_not_count() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
    world.lead("a", 2, false);
    world.plan_reboot(true);
    for _ in 0..4 {
        world.coordinate();
    }
    world.settle();
    assert_eq!(world.succeeded("a"), "Unknown WaitingForLock");
    world.reboot_to_end();
    assert_eq!(world.succeeded("a"), "True Rebooted");
    assert_eq!(world.boots, 2);
}

#[test]
fn deleting_what_has_not_begun_takes_it_back() {
    for steps in [0, 1] {
        let mut world = asked("a");
        (0..steps).for_each(|_| world.coordinate());
        world.delete("a");
        world.settle();
        assert!(world.reboots.is_empty());
        let request = &world.node.as_ref().unwrap().request;
        assert_eq!(*request, ParsedAnnotation::Absent);
    }
}

#[test]
fn deleting_what_has_begun_lets_it_finish() {
    for steps in [2, 3, 4] {
        let mut world = asked("a");
        (0..steps).for_each(|_| world.coordinate());
        world.delete("a");
        world.settle();
        assert!(world.reboots.contains_key("a"), "{steps}");
        world.reboot_to_end();
        assert!(world.reboots.is_empty(), "{steps}");
        assert_eq!((world.boots, world.record()), (1, None));
    }
}

#[test]
fn a_hold_lasts_until_it_is_deleted_or_cancelled_and_then_releases_the_node() {
    for is_deleted in [true, false] {
        let mut world = World::with_reboot("a", plan(RebootMethod::Hold));
        world.settle();
        world.coordinate();
        world.coordinate();
        world.settle();
        world.coordinate();
        world.settle();
        assert_eq!(world.succeeded("a"), "Unknown NodeHeld");
        assert_eq!(world.reboots["a"].status.phase, NodeRebootPhase::Held);
        if is_deleted {
            world.delete("a");
        } else {
            world.cancel("a");
        }
        world.settle();
        assert!(world.reboots.contains_key("a"), "the node is still held");
        world.reboot_to_end();
        assert_eq!((world.boots, world.record()), (0, None));
        if !is_deleted {
            assert_eq!(world.succeeded("a"), "True Released");
        }
    }
}

#[test]
fn one_of_two_holds_ends_while_the_node_stays_held_for_the_other() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Hold));
    world.create("b", plan(RebootMethod::Hold));
    world.settle();
    for _ in 0..3 {
        world.coordinate();
    }
    world.settle();
    world.delete("a");
    world.settle();
    assert!(!world.reboots.contains_key("a"));
    assert_eq!(world.succeeded("b"), "Unknown NodeHeld");
    world.delete("b");
    world.reboot_to_end();
    assert!(world.reboots.is_empty());
    assert_eq!(world.record(), None);
}

#[test]
fn an_abort_and_a_removed_request_are_final() {
    let mut world = asked("a");
    world.coordinate();
    world.coordinate();
    world.finish(RebootOutcome::Aborted);
    world.settle();
    assert_eq!(world.succeeded("a"), "False Aborted");

    let mut world = asked("a");
    world.change_node(|node| node.request = ParsedAnnotation::Absent);
    world.settle();
    assert_eq!(world.succeeded("a"), "False RequestRemoved");
}

/// What `dogwatch abort` writes: the next leader cannot know that the Node was asked.
#[test]
fn a_leader_that_died_after_it_asked_does_not_ask_again_for_what_was_aborted() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Reboot));
    world.lead("a", 3, false);
    assert_eq!(world.reboots["a"].status.phase, NodeRebootPhase::Pending);
    let request = |world: &World| world.node.as_ref().unwrap().request.clone();
    assert_ne!(request(&world), ParsedAnnotation::Absent);
    world.change_node(|node| node.request = ParsedAnnotation::Absent);
    world.cancel("a");
    world.settle();
    assert_eq!(world.succeeded("a"), "False Cancelled");
    assert_eq!(request(&world), ParsedAnnotation::Absent);
}

#[test]
fn nobody_joins_a_reboot_once_its_command_may_have_started() {
    let mut world = asked("a");
    let is_past = |world: &World| {
        let node = world.node.as_ref().unwrap();
        is_past_joining(&world.reboots["a"], node)
    };
    // The status is that of the wait, all the while.
    for is_past_now in [false, false, true, true, true] {
        world.coordinate();
        assert_eq!(is_past(&world), is_past_now, "{:?}", world.record());
    }
}

#[test]
fn nobody_joins_a_hold_once_it_is_withdrawn() {
    let mut world = World::with_reboot("a", plan(RebootMethod::Hold));
    let is_past = |world: &World| {
        let node = world.node.as_ref().unwrap();
        is_past_joining(&world.reboots["a"], node)
    };
    world.settle();
    for _ in 0..3 {
        world.coordinate();
        assert!(!is_past(&world), "{:?}", world.record());
    }
    world.change_node(|node| node.request = ParsedAnnotation::Absent);
    assert!(is_past(&world), "it is on its way back");
    world.coordinate();
    assert!(is_past(&world), "it has ended");
}

#[test]
fn a_watch_that_is_behind_does_not_end_anything() {
    let mut world = asked("a");
    world.before = (Some(empty_node()), world.reboots.clone());
    world.lead("a", 9, true);
    assert_eq!(world.succeeded("a"), "Unknown WaitingForLock");
}

#[test]
fn a_node_that_is_deleted_or_replaced_meanwhile_ends_it() {
    let mut world = asked("a");
    world.node = None;
    world.settle();
    assert_eq!(world.succeeded("a"), "False NodeGone");

    let mut world = asked("a");
    let mut other = empty_node();
    other.uid = "uid-2".into();
    world.node = Some(other);
    world.settle();
    assert_eq!(world.succeeded("a"), "False NodeGone");
}

#[test]
fn success_is_reached_when_the_node_has_the_conditions() {
    let mut world = World::with_reboot("a", plan_with_success(&[]));
    world.set_condition("GpuFault", "True");
    world.settle();
    world.reboot_to_end();
    assert_eq!(world.succeeded("a"), "Unknown AwaitingSuccess");
    world.second = 599;
    world.set_condition("GpuFault", "False");
    world.settle();
    assert_eq!(world.succeeded("a"), "True SuccessReached");
}

#[test]
fn without_success_the_next_method_follows_and_the_last_one_fails() {
    let mut world = World::with_reboot("a", plan_with_success(&[RebootMethod::Reboot]));
    world.set_condition("GpuFault", "True");
    world.settle();
    world.reboot_to_end();
    world.second = 600;
    world.settle();
    assert_eq!(world.reboots["a"].status.phase, NodeRebootPhase::Waiting);
    world.reboot_to_end();
    assert_eq!(world.succeeded("a"), "Unknown AwaitingSuccess");
    world.second = 1200;
    world.settle();
    assert_eq!(world.succeeded("a"), "False SuccessNotReached");
    let attempts = &world.reboots["a"].status.attempts;
    assert_eq!((attempts.len(), world.boots), (2, 2));
    assert_ne!(attempts[0].boot_id_before, attempts[1].boot_id_before);
}

#[test]
fn a_cancel_stops_the_escalation_and_keeps_the_result_of_what_has_begun() {
    let mut world = World::with_reboot("a", plan_with_success(&[RebootMethod::Reboot]));
    world.settle();
    world.reboot_to_end();
    world.cancel("a");
    world.settle();
    assert_eq!(world.succeeded("a"), "Unknown AwaitingSuccess");
    world.second = 600;
    world.settle();
    assert_eq!(world.succeeded("a"), "False SuccessNotReached");
    assert_eq!(world.boots, 1);
}
