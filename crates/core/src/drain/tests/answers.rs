//! The effect of each answer of the API server.

use super::*;
use crate::drain::{
    AdmissionRefusal, AdmissionRefuser, DaemonSetLookup, DaemonSetRef, RemovalMethod,
};

/// Lists one pod, tries it, and gives it this answer at second 0.
fn answer_to_one(answer: EvictionAnswer) -> NodeDrain {
    let mut drain = listed(&[pod("web")]);
    let call = only_try(&mut drain, "web", at(0.0));
    drain.apply_eviction_answer(call.id, answer, at(0.0));
    drain
}

fn next_try_at(drain: &mut NodeDrain, from: f64) -> Option<f64> {
    let step = drain.next_step(at(from));
    assert_eq!(tried(&step), [""; 0]);
    step.wake.map(|wake| wake.at.as_secs_f64())
}

#[test]
fn an_accepted_pod_is_waited_for_and_never_tried_again() {
    let mut drain = answer_to_one(EvictionAnswer::Accepted);
    assert_eq!(drain.next_step(at(3600.0)), EvictionStep::default());
    assert_eq!(waiting(&drain), ["web"]);
    assert_eq!(drain.current_progress().blocked, []);
}

#[test]
fn a_pod_that_a_budget_holds_up_is_tried_again_after_five_seconds_at_the_latest() {
    let mut drain = answer_to_one(budget_refusal());
    let step = drain.next_step(at(0.1));
    assert_eq!(step.tries, []);
    assert_eq!(step.watch_budgets, ["shop".to_owned()].into());
    assert_eq!(step.wake.unwrap().at, at(5.0).mono);
    let again = only_try(&mut drain, "web", at(5.0));
    drain.apply_eviction_answer(again.id, budget_refusal(), at(5.1));
    assert_eq!(
        drain.current_progress().blocked[0].since,
        at(0.0).mono,
        "since the first refusal"
    );
    only_try(&mut drain, "web", at(10.1));
}

#[test]
fn the_budgets_that_hold_a_pod_up_are_named_with_their_numbers() {
    let mut drain = answer_to_one(budget_refusal());
    let blocked = &drain.current_progress().blocked[0];
    assert!(blocked.message.contains("budget web"), "{blocked:?}");
    assert_eq!(blocked.budgets, [], "not known yet");
    drain.apply_namespace_budgets("shop", vec![budget("web", 0), budget("other", 0)]);
    assert_eq!(
        drain.current_progress().blocked[0].budgets,
        [budget("web", 0).numbers]
    );
    // A budget without a selector covers no pod, one with an empty selector every pod.
    let nobody = ObservedDisruptionBudget {
        selector: None,
        ..budget("nobody", 0)
    };
    let all = ObservedDisruptionBudget {
        selector: Some(LabelSelector::default()),
        ..budget("all", 0)
    };
    drain.apply_namespace_budgets("shop", vec![nobody, all.clone()]);
    assert_eq!(drain.current_progress().blocked[0].budgets, [all.numbers]);
}

#[test]
fn a_change_of_its_budget_lets_a_blocked_pod_try_again_at_once() {
    let mut drain = answer_to_one(budget_refusal());
    drain.apply_namespace_budgets("shop", vec![budget("web", 0)]);
    assert_eq!(next_try_at(&mut drain, 1.0), Some(5.0));
    drain.apply_namespace_budgets("shop", vec![budget("web", 0), budget("other", 3)]);
    assert_eq!(
        next_try_at(&mut drain, 1.1),
        Some(5.0),
        "another pod's budget"
    );
    drain.apply_namespace_budgets("shop", vec![budget("web", 1), budget("other", 3)]);
    only_try(&mut drain, "web", at(1.2));
}

#[test]
fn a_budget_that_a_person_changed_or_removed_lets_all_its_pods_try_again() {
    let edited = ObservedDisruptionBudget {
        generation: 2,
        ..budget("web", 0)
    };
    for after in [vec![edited], vec![]] {
        let mut drain = answer_to_one(budget_refusal());
        drain.apply_namespace_budgets("shop", vec![budget("web", 0)]);
        drain.next_step(at(1.0));
        drain.apply_namespace_budgets("shop", after);
        only_try(&mut drain, "web", at(1.1));
    }
}

#[test]
fn a_budget_that_allows_one_eviction_gets_one_try_and_not_one_per_blocked_pod() {
    let all = |allowed| ObservedDisruptionBudget {
        selector: Some(LabelSelector::default()),
        ..budget("all", allowed)
    };
    let mut drain = listed(&[pod("a"), pod("b"), pod("c")]);
    for call in drain.next_step(at(0.0)).tries {
        drain.apply_eviction_answer(call.id, budget_refusal(), at(0.1));
    }
    drain.next_step(at(0.2));
    drain.apply_namespace_budgets("shop", vec![all(0)]);
    assert_eq!(drain.next_step(at(0.3)).tries, []);
    drain.apply_namespace_budgets("shop", vec![all(1)]);
    assert_eq!(drain.next_step(at(0.4)).tries.len(), 1);
    drain.apply_namespace_budgets("shop", vec![all(2)]);
    assert_eq!(
        drain.next_step(at(0.5)).tries.len(),
        1,
        "one of the two is being tried"
    );
}

#[test]
fn a_budget_that_went_before_its_watch_began_lets_its_pods_try_again_at_once() {
    let listed = vec![budget("web", 0)];
    let mut drain = started(DrainConfig::default(), listed, &[pod("web")]);
    let call = only_try(&mut drain, "web", at(0.0));
    drain.apply_eviction_answer(call.id, budget_refusal(), at(0.1));
    assert_eq!(drain.next_step(at(0.2)).tries, []);
    drain.apply_namespace_budgets("shop", Vec::new());
    let again = only_try(&mut drain, "web", at(0.3));
    drain.apply_eviction_answer(again.id, budget_refusal(), at(0.4));
    drain.apply_namespace_budgets("shop", Vec::new());
    assert_eq!(
        drain.next_step(at(0.5)).tries,
        [],
        "only as the watch begins"
    );
}

#[test]
fn a_refusal_from_before_a_change_is_not_waited_out() {
    let edited = ObservedDisruptionBudget {
        generation: 2,
        ..budget("web", 0)
    };
    for after in [vec![edited], vec![], vec![budget("web", 1)]] {
        let mut drain = answer_to_one(budget_refusal());
        drain.apply_namespace_budgets("shop", vec![budget("web", 0)]);
        let call = only_try(&mut drain, "web", at(5.0));
        drain.apply_namespace_budgets("shop", after);
        drain.apply_eviction_answer(call.id, budget_refusal(), at(5.1));
        let again = only_try(&mut drain, "web", at(5.1));
        drain.apply_eviction_answer(again.id, budget_refusal(), at(5.2));
        assert_eq!(next_try_at(&mut drain, 5.3), Some(10.2), "once a change");
    }
}

#[test]
fn a_blocked_pod_does_not_hold_up_the_others() {
    let mut drain = limited(&[pod("a"), pod("b")], 1);
    let first = only_try(&mut drain, "a", at(0.0));
    drain.apply_eviction_answer(first.id, budget_refusal(), at(0.1));
    only_try(&mut drain, "b", at(0.1));
}

#[test]
fn budgets_are_watched_only_while_one_holds_a_pod_up() {
    let mut drain = answer_to_one(budget_refusal());
    assert_eq!(drain.next_step(at(0.1)).watch_budgets.len(), 1);
    drain.apply_namespace_budgets("shop", vec![budget("web", 0)]);
    // The namespace stays watched between two tries, or every try would restart the watch.
    let step = drain.next_step(at(5.0));
    assert_eq!((step.tries.len(), step.watch_budgets.len()), (1, 1));
    drain.apply_eviction_answer(step.tries[0].id, EvictionAnswer::Accepted, at(5.1));
    assert_eq!(drain.next_step(at(5.2)), EvictionStep::default());
    assert_eq!(drain.current_progress().blocked, []);
}

#[test]
fn another_429_is_tried_again_when_it_says_so() {
    let told = EvictionAnswer::TooMany {
        retry_after: Some(Duration::from_secs(17)),
        message: "busy".into(),
    };
    let mut drain = answer_to_one(told);
    assert_eq!(next_try_at(&mut drain, 0.1), Some(17.0));
    assert_eq!(drain.current_progress().blocked[0].message, "busy");
    only_try(&mut drain, "web", at(17.0));
    let untold = EvictionAnswer::TooMany {
        retry_after: None,
        message: "busy".into(),
    };
    assert_eq!(next_try_at(&mut answer_to_one(untold), 0.1), Some(0.5));
}

#[test]
fn a_retry_after_of_zero_does_not_make_a_busy_loop() {
    let told = EvictionAnswer::TooMany {
        retry_after: Some(Duration::ZERO),
        message: "busy".into(),
    };
    assert_eq!(next_try_at(&mut answer_to_one(told), 0.0), Some(0.5));
}

#[test]
fn several_budgets_keep_the_pod_on_the_list_reported_and_tried_every_five_seconds() {
    let several = || EvictionAnswer::SeveralBudgets {
        message: "more than one PodDisruptionBudget".into(),
    };
    let mut drain = answer_to_one(several());
    drain.apply_namespace_budgets(
        "shop",
        vec![
            budget("web", 1),
            ObservedDisruptionBudget {
                selector: Some(LabelSelector::default()),
                ..budget("all", 1)
            },
        ],
    );
    let call = only_try(&mut drain, "web", at(0.1));
    drain.apply_eviction_answer(call.id, several(), at(0.2));
    assert_eq!(next_try_at(&mut drain, 0.3), Some(5.2));
    assert_eq!(waiting(&drain), ["web"]);
    assert_eq!(drain.current_progress().blocked[0].budgets.len(), 2);
    assert!(!drain.current_progress().is_incomplete());
}

#[test]
fn a_pod_in_a_terminating_namespace_is_waited_for_reported_and_not_evicted_again() {
    let mut drain = answer_to_one(EvictionAnswer::NamespaceTerminating);
    assert_eq!(drain.next_step(at(3600.0)), EvictionStep::default());
    assert_eq!(waiting(&drain), ["web"]);
    assert!(
        drain.current_progress().blocked[0]
            .message
            .contains("namespace")
    );
    drain.apply_pod(ObservedPod {
        deleting: true,
        ..pod("web")
    });
    assert_eq!(
        drain.current_progress().blocked,
        [],
        "its deletion has begun"
    );
    assert_eq!(waiting(&drain), ["web"]);
    drain.apply_pod_deletion(&pod("web").pod);
    assert!(drain.current_progress().is_drained());
}

#[test]
fn what_may_pass_is_tried_again_with_pauses_from_half_a_second_doubling_to_thirty() {
    let mut drain = listed(&[pod("web")]);
    let mut now = 0.0;
    for pause in [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0] {
        let call = only_try(&mut drain, "web", at(now));
        drain.apply_eviction_answer(
            call.id,
            EvictionAnswer::Transient {
                message: "connection reset".into(),
            },
            at(now),
        );
        assert_eq!(next_try_at(&mut drain, now), Some(now + pause));
        now += pause;
    }
    assert_eq!(
        drain.current_progress().blocked[0].message,
        "connection reset"
    );
    // A different answer in between resets the count of failures.
    let call = only_try(&mut drain, "web", at(now));
    drain.apply_eviction_answer(call.id, budget_refusal(), at(now));
    let call = only_try(&mut drain, "web", at(now + 5.0));
    drain.apply_eviction_answer(
        call.id,
        EvictionAnswer::Transient {
            message: "reset".into(),
        },
        at(now + 5.0),
    );
    assert_eq!(next_try_at(&mut drain, now + 5.0), Some(now + 5.5));
}

#[test]
fn a_pod_refused_for_good_leaves_the_list_and_makes_the_drain_incomplete_with_the_answer_quoted() {
    let mut drain = answer_to_one(EvictionAnswer::Refused {
        code: 403,
        message: "no right to evict".into(),
    });
    assert_eq!(drain.next_step(at(3600.0)), EvictionStep::default());
    let progress = drain.current_progress();
    assert_eq!(progress.waiting, []);
    assert!(progress.is_incomplete());
    assert_eq!(progress.dropped[0].answer, "HTTP 403: no right to evict");
    drain.apply_pod(pod("web"));
    assert_eq!(
        waiting(&drain),
        [""; 0],
        "a change of it does not bring it back"
    );
}

fn refusal(said: &str) -> AdmissionRefusal {
    AdmissionRefusal {
        by: AdmissionRefuser::Webhook("w.example".into()),
        said: said.into(),
    }
}

fn not_admitted(said: &str) -> EvictionAnswer {
    EvictionAnswer::NotAdmitted {
        refusal: refusal(said),
        message: format!("admission webhook \"w.example\" denied the request: {said}"),
    }
}

#[test]
fn a_pod_whose_eviction_is_not_admitted_yet_stays_on_the_list_named_and_tried_every_five_seconds() {
    let mut drain = answer_to_one(not_admitted("not before noon"));
    for second in [0.0, 5.0, 10.0] {
        let progress = drain.current_progress();
        assert_eq!(waiting(&drain), ["web"]);
        assert!(!progress.is_incomplete());
        let blocked = &progress.blocked[0];
        assert_eq!(blocked.refused, Some(refusal("not before noon")));
        assert_eq!(blocked.since, at(0.0).mono);
        assert_eq!(next_try_at(&mut drain, second + 0.1), Some(second + 5.0));
        let step = drain.next_step(at(second + 0.1));
        assert!(step.watch_budgets.is_empty(), "no budget holds it up");
        let again = only_try(&mut drain, "web", at(second + 5.0));
        drain.apply_eviction_answer(again.id, not_admitted("not before noon"), at(second + 5.0));
    }
    let last = only_try(&mut drain, "web", at(20.0));
    drain.apply_eviction_answer(last.id, EvictionAnswer::Accepted, at(20.0));
    assert_eq!(drain.current_progress().blocked, []);
}

#[test]
fn a_refuser_is_shown_in_its_newest_words_and_quoted_in_its_first() {
    let mut drain = answer_to_one(not_admitted("evacuation triggered"));
    let again = only_try(&mut drain, "web", at(5.0));
    drain.apply_eviction_answer(again.id, not_admitted("evacuation in progress"), at(5.1));
    let blocked = &drain.current_progress().blocked[0];
    assert_eq!(blocked.refused, Some(refusal("evacuation in progress")));
    assert!(
        blocked.message.ends_with("evacuation triggered"),
        "{blocked:?}"
    );
}

#[test]
fn what_admission_refuses_holds_up_no_other_pod_and_is_deleted_past_the_deadline() {
    let mut drain = limited(&[pod("a"), pod("b")], 1);
    let first = only_try(&mut drain, "a", at(0.0));
    drain.apply_eviction_answer(first.id, not_admitted("no"), at(0.1));
    let second = only_try(&mut drain, "b", at(0.1));
    drain.apply_eviction_answer(second.id, EvictionAnswer::Accepted, at(0.2));
    drain.delete_remaining_pods();
    assert_eq!(
        only_try(&mut drain, "a", at(0.3)).removal_method,
        RemovalMethod::Delete
    );
}

#[test]
fn of_the_pods_that_coordinators_may_not_evict_only_dogwatchs_own_stay_and_are_named() {
    let message = "pods \"controller\" is forbidden: ValidatingAdmissionPolicy 'coordinator-evictions.dogwatch.dev' \
                   with binding 'b' denied request: no";
    let refusal = AdmissionRefusal::parse_message(message).unwrap();
    let answer = EvictionAnswer::NotAdmitted {
        refusal,
        message: message.into(),
    };
    let mut other = answer_to_one(answer.clone());
    let progress = other.current_progress();
    assert_eq!((progress.kept.len(), waiting(&other).len()), (0, 1));
    assert_eq!(progress.blocked[0].message, message, "another's pod blocks");
    only_try(&mut other, "web", at(5.0));

    let mut drain = listed(&[ObservedPod {
        labels: [("app.kubernetes.io/part-of".into(), "dogwatch".into())].into(),
        ..pod("web")
    }]);
    let call = only_try(&mut drain, "web", at(0.0));
    drain.apply_eviction_answer(call.id, answer, at(0.1));
    let kept: Vec<String> = drain
        .current_progress()
        .kept
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!((kept, waiting(&drain).len()), (vec!["shop/web".into()], 0));
    assert!(drain.current_progress().is_drained() && !drain.current_progress().is_incomplete());
    drain.delete_remaining_pods();
    assert_eq!(drain.next_step(at(3600.0)), EvictionStep::default());
}

#[test]
fn an_ending_pod_is_not_dropped_for_what_the_server_said() {
    let mut drain = listed(&[pod("web")]);
    let call = only_try(&mut drain, "web", at(0.0));
    drain.apply_pod(ObservedPod {
        deleting: true,
        ..pod("web")
    });
    for answer in [
        EvictionAnswer::Refused {
            code: 422,
            message: "no".into(),
        },
        budget_refusal(),
    ] {
        let mut drain = drain.clone();
        drain.apply_eviction_answer(call.id, answer, at(0.1));
        assert!(!drain.current_progress().is_incomplete());
        assert_eq!(drain.next_step(at(3600.0)), EvictionStep::default());
        assert_eq!(waiting(&drain), ["web"]);
    }
}

#[test]
fn past_the_deadline_the_rest_is_deleted_and_what_is_ending_already_is_not() {
    let mut drain = listed(&[
        pod("blocked"),
        pod("dropped"),
        pod("ending"),
        pod("namespace"),
    ]);
    for call in drain.next_step(at(0.0)).tries {
        let answer = match call.pod.name.as_str() {
            "blocked" => budget_refusal(),
            "dropped" => EvictionAnswer::Refused {
                code: 403,
                message: "no".into(),
            },
            "ending" => EvictionAnswer::Accepted,
            _ => EvictionAnswer::NamespaceTerminating,
        };
        drain.apply_eviction_answer(call.id, answer, at(0.1));
    }
    drain.delete_remaining_pods();
    let step = drain.next_step(at(1.0));
    assert_eq!(tried(&step), ["blocked", "dropped", "namespace"]);
    assert!(
        step.tries
            .iter()
            .all(|one| one.removal_method == RemovalMethod::Delete)
    );
    assert!(
        !drain.current_progress().is_incomplete(),
        "deleting gets its own chance"
    );
    assert_eq!(waiting(&drain).len(), 4);
    drain.apply_pod(pod("late"));
    assert_eq!(
        drain.next_step(at(1.1)).tries[0].removal_method,
        RemovalMethod::Delete
    );
}

#[test]
fn past_the_deadline_a_pod_that_may_belong_to_a_daemonset_is_still_not_touched() {
    let mut drain = listed(&[of_daemonset("d", "agent")]);
    let set: DaemonSetRef = drain.next_step(at(0.0)).look_up.remove(0);
    drain.apply_daemonset_lookup(&set, DaemonSetLookup::Failed { why: "403".into() }, at(0.1));
    drain.delete_remaining_pods();
    assert_eq!(drain.next_step(at(0.2)).tries, []);
}

#[test]
fn no_more_calls_are_open_at_once_than_the_limit() {
    let pods: Vec<_> = (0..10).map(|n| pod(&format!("p{n}"))).collect();
    let mut drain = limited(&pods, 3);
    let step = drain.next_step(at(0.0));
    assert_eq!(tried(&step), ["p0", "p1", "p2"]);
    assert_eq!(drain.next_step(at(0.1)).tries, []);
    // A deleted pod does not free its place among the calls while its call is open.
    drain.apply_pod_deletion(&step.tries[0].pod);
    assert_eq!(drain.next_step(at(0.2)).tries, []);
    drain.apply_eviction_answer(step.tries[1].id, EvictionAnswer::Accepted, at(0.3));
    assert_eq!(tried(&drain.next_step(at(0.3))), ["p3"]);
}

#[test]
fn every_budget_that_covers_a_pod_of_the_drain_is_remembered_for_the_return() {
    let budgets = vec![
        budget("a", 1),
        budget("b", 1),
        budget("c", 1),
        budget("d", 1),
    ];
    let mut drain = started(
        DrainConfig::default(),
        budgets,
        &[pod("a"), of_daemonset("d", "agent")],
    );
    let set: DaemonSetRef = drain.next_step(at(0.0)).look_up.remove(0);
    drain.apply_daemonset_lookup(&set, DaemonSetLookup::Exists, at(0.0));
    drain.apply_pod_deletion(&pod("a").pod);
    drain.apply_pod(pod("b"));
    assert_eq!(drain.current_progress().covered_by, ["shop/a", "shop/b"]);
}

#[test]
fn a_node_is_not_drained_before_the_budgets_of_its_pods_were_asked_for_even_if_all_are_gone() {
    let mut drain = NodeDrain::new(DrainConfig::default());
    assert!(drain.next_step(at(0.0)).list_budgets);
    drain.apply_pod_list(vec![pod("a")]);
    drain.apply_pod_deletion(&pod("a").pod);
    assert!(!drain.current_progress().is_drained());
    drain.apply_budget_list(Ok(vec![budget("a", 1)]), at(0.1));
    assert!(drain.current_progress().is_drained());
    assert_eq!(drain.current_progress().covered_by, ["shop/a"]);
}

#[test]
fn budgets_that_cannot_be_listed_are_reported_asked_for_again_and_do_not_hold_the_drain_up() {
    let mut drain = NodeDrain::new(DrainConfig::default());
    assert!(drain.next_step(at(0.0)).list_budgets);
    drain.apply_pod_list(Vec::new());
    drain.apply_budget_list(Err("403".into()), at(0.0));
    assert!(drain.current_progress().is_drained());
    assert_eq!(
        drain.current_progress().observation_errors,
        ["budgets cannot be listed: 403"]
    );
    assert_eq!(drain.next_step(at(0.1)).wake.unwrap().at, at(0.5).mono);
    assert!(drain.next_step(at(0.5)).list_budgets);
    drain.apply_budget_list(Ok(Vec::new()), at(0.6));
    assert_eq!(drain.current_progress().observation_errors, [""; 0]);
}

#[test]
fn a_watch_that_finds_room_at_its_start_lets_a_blocked_pod_try_even_if_the_list_had_shown_the_same()
{
    let mut drain = started(
        DrainConfig::default(),
        vec![budget("web", 1)],
        &[pod("web")],
    );
    let call = only_try(&mut drain, "web", at(0.0));
    drain.apply_eviction_answer(call.id, budget_refusal(), at(0.1));
    assert_eq!(drain.next_step(at(0.2)).tries, []);
    drain.apply_namespace_budgets("shop", vec![budget("web", 1)]);
    only_try(&mut drain, "web", at(0.3));
}

#[test]
fn a_broken_watch_is_reported_until_it_is_mended() {
    let mut drain = listed(&[]);
    drain.record_watch_error("503".into(), at(1.0));
    assert_eq!(
        drain.current_progress().observation_errors,
        ["the node's pods cannot be watched: 503"]
    );
    drain.apply_pod(pod("a"));
    assert_eq!(drain.current_progress().observation_errors, [""; 0]);
}

#[test]
fn a_watch_that_has_not_complained_for_longer_than_between_two_tries_counts_as_mended() {
    let mut drain = listed(&[]);
    drain.record_watch_error("503".into(), at(1.0));
    drain.record_watch_error("503".into(), at(60.0));
    assert_eq!(drain.next_step(at(134.0)).wake.unwrap().at, at(135.0).mono);
    assert_eq!(drain.current_progress().observation_errors.len(), 1);
    assert_eq!(drain.next_step(at(135.0)), EvictionStep::default());
    assert_eq!(drain.current_progress().observation_errors, [""; 0]);
}

#[test]
fn a_new_refuser_and_a_new_kind_of_answer_say_what_they_say() {
    let by = |by: AdmissionRefuser, said: &str| EvictionAnswer::NotAdmitted {
        refusal: AdmissionRefusal {
            by,
            said: said.into(),
        },
        message: said.into(),
    };
    let webhook = |name: &str, said: &str| by(AdmissionRefuser::Webhook(name.into()), said);
    let policy = |name: &str, said: &str| by(AdmissionRefuser::Policy(name.into()), said);
    let transient = EvictionAnswer::Transient {
        message: "503".into(),
    };
    let mut drain = listed(&[pod("web")]);
    for (second, answer, wanted) in [
        (0.0, webhook("a", "first"), "first"),
        (60.0, webhook("a", "the same in other words"), "first"),
        (120.0, webhook("b", "second"), "second"),
        (180.0, policy("b", "third"), "third"),
        (240.0, transient, "503"),
        (300.0, webhook("b", "fourth"), "fourth"),
    ] {
        let call = only_try(&mut drain, "web", at(second));
        drain.apply_eviction_answer(call.id, answer, at(second));
        let blocked = &drain.current_progress().blocked[0];
        assert_eq!(blocked.message, wanted, "{second}");
        assert_eq!(blocked.since, at(0.0).mono, "since the first refusal");
    }
}

#[test]
fn a_refuser_is_counted_by_its_kind_and_its_name() {
    for (refuser, kind, text) in [
        (
            AdmissionRefuser::Webhook("keep".into()),
            "AdmissionWebhook",
            "admission webhook keep",
        ),
        (
            AdmissionRefuser::Policy("keep".into()),
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicy keep",
        ),
    ] {
        assert_eq!((refuser.refuser_kind(), refuser.name()), (kind, "keep"));
        assert_eq!(refuser.to_string(), text);
    }
}

#[test]
fn budgets_whose_watch_begins_again_let_their_pods_try_again_at_once() {
    let mut drain = answer_to_one(budget_refusal());
    drain.next_step(at(0.1));
    drain.apply_namespace_budgets("shop", vec![budget("web", 1)]);
    let call = only_try(&mut drain, "web", at(0.2));
    let failed = EvictionAnswer::Transient {
        message: "503".into(),
    };
    drain.apply_eviction_answer(call.id, failed, at(0.2));
    // No budget blocks it any more: the watch ends.
    assert_eq!(drain.next_step(at(0.3)).watch_budgets, [].into());
    let call = only_try(&mut drain, "web", at(0.7));
    drain.apply_eviction_answer(call.id, budget_refusal(), at(0.7));
    let watched = drain.next_step(at(0.8)).watch_budgets;
    assert_eq!(watched, ["shop".to_owned()].into());
    drain.apply_namespace_budgets("shop", vec![budget("web", 1)]);
    only_try(&mut drain, "web", at(0.9));
}

#[test]
fn budgets_are_listed_again_after_a_failure_also_while_the_pods_are_not_known() {
    let mut drain = NodeDrain::new(DrainConfig::default());
    assert!(drain.next_step(at(0.0)).list_budgets);
    drain.apply_budget_list(Err("503".into()), at(0.0));
    let step = drain.next_step(at(0.1));
    assert!(!step.list_budgets);
    let again = step.wake.expect("the list is repeated").at;
    assert_eq!(again, Duration::from_millis(500));
    assert!(drain.next_step(at(0.5)).list_budgets);
}
