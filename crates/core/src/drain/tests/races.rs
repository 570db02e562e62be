//! The four races of specification §2.3, and their kin.

use super::*;
use crate::drain::{DaemonSetRef, Lookup};

#[test]
fn a_node_is_not_drained_while_the_wait_list_is_empty_for_a_moment_between_two_pods() {
    let mut drain = limited(&[pod("a"), pod("b")], 1);
    let first = only_try(&mut drain, "a", at(0.0));
    drain.answered(first.id, Answer::Accepted, at(0.1));
    drain.deleted(&first.pod);
    assert!(!drain.progress().drained(), "b was not even tried");
    let second = only_try(&mut drain, "b", at(0.2));
    drain.answered(second.id, Answer::Accepted, at(0.3));
    drain.deleted(&second.pod);
    assert!(drain.progress().drained());
}

#[test]
fn a_node_is_not_drained_before_the_initial_list_is_complete() {
    let mut drain = Drain::new(DrainConfig::default());
    drain.next(at(0.0));
    drain.budgets_listed(Ok(Vec::new()), at(0.0));
    assert!(!drain.progress().drained());
    drain.applied(pod("a"));
    assert_eq!(
        drain.next(at(0.0)),
        Step::default(),
        "no call before the list"
    );
    drain.deleted(&pod("a").pod);
    assert!(!drain.progress().drained(), "nothing was listed yet");
    drain.relisted(Vec::new());
    assert!(drain.progress().drained());
}

#[test]
fn a_deletion_seen_before_the_eviction_call_returns_ends_the_wait() {
    let mut drain = listed(&[pod("a")]);
    let call = only_try(&mut drain, "a", at(0.0));
    drain.deleted(&call.pod);
    assert!(drain.progress().drained());
    assert_eq!(drain.progress().gone, 1);
    drain.answered(call.id, Answer::Accepted, at(0.1));
    assert!(
        drain.progress().drained(),
        "the late answer puts nothing back"
    );
    assert_eq!(drain.progress().gone, 1);
    assert_eq!(drain.next(at(0.2)), Step::default());
}

#[test]
fn a_late_refusal_for_a_pod_that_is_gone_does_not_make_the_drain_incomplete() {
    let mut drain = listed(&[pod("a")]);
    let call = only_try(&mut drain, "a", at(0.0));
    drain.deleted(&call.pod);
    drain.answered(
        call.id,
        Answer::Refused {
            code: 422,
            message: "no".into(),
        },
        at(0.1),
    );
    assert!(!drain.progress().incomplete());
    assert!(drain.progress().drained());
}

#[test]
fn the_first_pod_being_gone_before_the_second_is_looked_at_does_not_drain_the_node() {
    let mut drain = listed(&[pod("a"), of_daemonset("b", "agent")]);
    let step = drain.next(at(0.0));
    assert_eq!(tried(&step), ["a"]);
    drain.deleted(&step.tries[0].pod);
    assert!(
        !drain.progress().drained(),
        "nobody knows yet whether b qualifies"
    );
    let set = DaemonSetRef {
        namespace: "shop".into(),
        name: "agent".into(),
    };
    assert_eq!(step.look_up, std::slice::from_ref(&set));
    drain.daemonset(&set, Lookup::Gone, at(0.1));
    assert!(!drain.progress().drained());
    let second = only_try(&mut drain, "b", at(0.2));
    drain.deleted(&second.pod);
    assert!(drain.progress().drained());
}

#[test]
fn after_a_watch_that_ended_in_410_what_the_new_list_lacks_by_uid_is_gone() {
    let mut drain = listed(&[pod("a"), pod("b"), pod("c")]);
    let step = drain.next(at(0.0));
    assert_eq!(tried(&step), ["a", "b", "c"]);
    // a is gone; b was replaced by another pod of its name; c is still there.
    let replaced = PodSeen {
        pod: pod_ref("b", "u-b-2"),
        ..pod("b")
    };
    drain.relisted(vec![replaced, pod("c")]);
    assert_eq!(drain.progress().gone, 2);
    assert_eq!(waiting(&drain), ["b", "c"]);
    assert_eq!(only_try(&mut drain, "b", at(0.1)).pod.uid, "u-b-2");
}

#[test]
fn no_call_goes_out_for_an_incarnation_that_the_watch_has_seen_replaced() {
    let mut drain = limited(&[pod("a"), pod("b")], 1);
    let first = only_try(&mut drain, "a", at(0.0));
    // Still in the queue, b is replaced.
    drain.applied(PodSeen {
        pod: pod_ref("b", "u-b-2"),
        ..pod("b")
    });
    drain.answered(first.id, Answer::Accepted, at(0.1));
    assert_eq!(only_try(&mut drain, "b", at(0.2)).pod.uid, "u-b-2");
    assert_eq!(drain.progress().gone, 1, "the older b has left");
}

#[test]
fn the_deletion_of_an_older_incarnation_does_not_end_the_wait_for_the_newer() {
    let mut drain = listed(&[pod("a")]);
    drain.applied(PodSeen {
        pod: pod_ref("a", "u-a-2"),
        ..pod("a")
    });
    drain.deleted(&pod("a").pod);
    assert_eq!(waiting(&drain), ["a"]);
}

#[test]
fn a_pod_that_appears_during_the_drain_is_drained_too() {
    let mut drain = listed(&[]);
    assert!(drain.progress().drained());
    drain.applied(pod("late"));
    assert!(!drain.progress().drained());
    only_try(&mut drain, "late", at(1.0));
}

#[test]
fn an_answer_to_an_older_try_changes_nothing() {
    let mut drain = listed(&[pod("a")]);
    let old = only_try(&mut drain, "a", at(0.0));
    drain.delete_rest();
    let new = only_try(&mut drain, "a", at(0.1));
    drain.answered(
        old.id,
        Answer::Refused {
            code: 400,
            message: "no".into(),
        },
        at(0.2),
    );
    assert!(!drain.progress().incomplete());
    drain.answered(new.id, Answer::Accepted, at(0.3));
    assert_eq!(waiting(&drain), ["a"]);
}

#[test]
fn a_pod_that_the_server_no_longer_has_is_done_even_if_the_watch_lags() {
    let mut drain = listed(&[pod("a")]);
    let call = only_try(&mut drain, "a", at(0.0));
    drain.answered(call.id, Answer::AlreadyGone, at(0.1));
    assert!(drain.progress().drained());
    drain.applied(pod("a"));
    assert!(drain.progress().drained(), "an event older than the answer");
    drain.deleted(&call.pod);
    assert_eq!(drain.progress().gone, 1, "counted once");
}

#[test]
fn a_new_list_that_still_has_a_pod_outdoes_the_word_that_it_was_gone() {
    let mut drain = listed(&[pod("a")]);
    let call = only_try(&mut drain, "a", at(0.0));
    drain.answered(call.id, Answer::AlreadyGone, at(0.1));
    drain.relisted(vec![pod("a")]);
    assert!(!drain.progress().drained());
    only_try(&mut drain, "a", at(0.2));
}
