//! The four races of specification §2.3, and similar ones.

use super::*;
use crate::drain::{DaemonSetLookup, DaemonSetRef};

#[test]
fn a_node_is_not_drained_while_the_wait_list_is_empty_for_a_moment_between_two_pods() {
    let mut drain = limited(&[pod("a"), pod("b")], 1);
    let first = only_try(&mut drain, "a", at(0.0));
    drain.apply_eviction_answer(first.id, EvictionAnswer::Accepted, at(0.1));
    drain.apply_pod_deletion(&first.pod);
    assert!(
        !drain.current_progress().is_drained(),
        "b was not even tried"
    );
    let second = only_try(&mut drain, "b", at(0.2));
    drain.apply_eviction_answer(second.id, EvictionAnswer::Accepted, at(0.3));
    drain.apply_pod_deletion(&second.pod);
    assert!(drain.current_progress().is_drained());
}

#[test]
fn a_node_is_not_drained_before_the_initial_list_is_complete() {
    let mut drain = NodeDrain::new(DrainConfig::default());
    drain.next_step(at(0.0));
    drain.apply_budget_list(Ok(Vec::new()), at(0.0));
    assert!(!drain.current_progress().is_drained());
    drain.apply_pod(pod("a"));
    assert_eq!(
        drain.next_step(at(0.0)),
        EvictionStep::default(),
        "no call before the list"
    );
    drain.apply_pod_deletion(&pod("a").pod);
    assert!(
        !drain.current_progress().is_drained(),
        "nothing was listed yet"
    );
    drain.apply_pod_list(Vec::new());
    assert!(drain.current_progress().is_drained());
}

#[test]
fn a_deletion_seen_before_the_eviction_call_returns_ends_the_wait() {
    let mut drain = listed(&[pod("a")]);
    let call = only_try(&mut drain, "a", at(0.0));
    drain.apply_pod_deletion(&call.pod);
    assert!(drain.current_progress().is_drained());
    assert_eq!(drain.current_progress().gone, 1);
    drain.apply_eviction_answer(call.id, EvictionAnswer::Accepted, at(0.1));
    assert!(
        drain.current_progress().is_drained(),
        "the late answer puts nothing back"
    );
    assert_eq!(drain.current_progress().gone, 1);
    assert_eq!(drain.next_step(at(0.2)), EvictionStep::default());
}

#[test]
fn a_late_refusal_for_a_pod_that_is_gone_does_not_make_the_drain_incomplete() {
    let mut drain = listed(&[pod("a")]);
    let call = only_try(&mut drain, "a", at(0.0));
    drain.apply_pod_deletion(&call.pod);
    drain.apply_eviction_answer(
        call.id,
        EvictionAnswer::Refused {
            code: 422,
            message: "no".into(),
        },
        at(0.1),
    );
    assert!(!drain.current_progress().is_incomplete());
    assert!(drain.current_progress().is_drained());
}

#[test]
fn the_first_pod_being_gone_before_the_second_is_looked_at_does_not_drain_the_node() {
    let mut drain = listed(&[pod("a"), of_daemonset("b", "agent")]);
    let step = drain.next_step(at(0.0));
    assert_eq!(tried(&step), ["a"]);
    drain.apply_pod_deletion(&step.tries[0].pod);
    assert!(
        !drain.current_progress().is_drained(),
        "nobody knows yet whether b qualifies"
    );
    let set = DaemonSetRef {
        namespace: "shop".into(),
        name: "agent".into(),
    };
    assert_eq!(step.look_up, std::slice::from_ref(&set));
    drain.apply_daemonset_lookup(&set, DaemonSetLookup::Gone, at(0.1));
    assert!(!drain.current_progress().is_drained());
    let second = only_try(&mut drain, "b", at(0.2));
    drain.apply_pod_deletion(&second.pod);
    assert!(drain.current_progress().is_drained());
}

#[test]
fn after_a_watch_that_ended_in_410_what_the_new_list_lacks_by_uid_is_gone() {
    let mut drain = listed(&[pod("a"), pod("b"), pod("c")]);
    let step = drain.next_step(at(0.0));
    assert_eq!(tried(&step), ["a", "b", "c"]);
    // Pod a is gone; b was replaced by another pod of its name; c still exists.
    let replaced = ObservedPod {
        pod: pod_ref("b", "u-b-2"),
        ..pod("b")
    };
    drain.apply_pod_list(vec![replaced, pod("c")]);
    assert_eq!(drain.current_progress().gone, 2);
    assert_eq!(waiting(&drain), ["b", "c"]);
    assert_eq!(only_try(&mut drain, "b", at(0.1)).pod.uid, "u-b-2");
}

#[test]
fn no_call_goes_out_for_an_incarnation_that_the_watch_has_seen_replaced() {
    let mut drain = limited(&[pod("a"), pod("b")], 1);
    let first = only_try(&mut drain, "a", at(0.0));
    // Pod b is replaced while it is queued.
    drain.apply_pod(ObservedPod {
        pod: pod_ref("b", "u-b-2"),
        ..pod("b")
    });
    drain.apply_eviction_answer(first.id, EvictionAnswer::Accepted, at(0.1));
    assert_eq!(only_try(&mut drain, "b", at(0.2)).pod.uid, "u-b-2");
    assert_eq!(drain.current_progress().gone, 1, "the older b has left");
}

#[test]
fn the_deletion_of_an_older_incarnation_does_not_end_the_wait_for_the_newer() {
    let mut drain = listed(&[pod("a")]);
    drain.apply_pod(ObservedPod {
        pod: pod_ref("a", "u-a-2"),
        ..pod("a")
    });
    drain.apply_pod_deletion(&pod("a").pod);
    assert_eq!(waiting(&drain), ["a"]);
}

#[test]
fn a_pod_that_appears_during_the_drain_is_drained_too() {
    let mut drain = listed(&[]);
    assert!(drain.current_progress().is_drained());
    drain.apply_pod(pod("late"));
    assert!(!drain.current_progress().is_drained());
    only_try(&mut drain, "late", at(1.0));
}

#[test]
fn an_answer_to_an_older_try_changes_nothing() {
    let mut drain = listed(&[pod("a")]);
    let old = only_try(&mut drain, "a", at(0.0));
    drain.delete_remaining_pods();
    let new = only_try(&mut drain, "a", at(0.1));
    drain.apply_eviction_answer(
        old.id,
        EvictionAnswer::Refused {
            code: 400,
            message: "no".into(),
        },
        at(0.2),
    );
    assert!(!drain.current_progress().is_incomplete());
    drain.apply_eviction_answer(new.id, EvictionAnswer::Accepted, at(0.3));
    assert_eq!(waiting(&drain), ["a"]);
}

#[test]
fn a_pod_that_the_server_no_longer_has_is_done_even_if_the_watch_lags() {
    let mut drain = listed(&[pod("a")]);
    let call = only_try(&mut drain, "a", at(0.0));
    drain.apply_eviction_answer(call.id, EvictionAnswer::AlreadyGone, at(0.1));
    assert!(drain.current_progress().is_drained());
    drain.apply_pod(pod("a"));
    assert!(
        drain.current_progress().is_drained(),
        "an event older than the answer"
    );
    drain.apply_pod_deletion(&call.pod);
    assert_eq!(drain.current_progress().gone, 1, "counted once");
}

#[test]
fn a_new_list_that_still_has_a_pod_outdoes_the_word_that_it_was_gone() {
    let mut drain = listed(&[pod("a")]);
    let call = only_try(&mut drain, "a", at(0.0));
    drain.apply_eviction_answer(call.id, EvictionAnswer::AlreadyGone, at(0.1));
    drain.apply_pod_list(vec![pod("a")]);
    assert!(!drain.current_progress().is_drained());
    only_try(&mut drain, "a", at(0.2));
}
