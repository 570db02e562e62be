//! §2.3: deadline, veto, volumes; §2.4: cordon and record are one patch.

use super::super::*;
use super::kit::*;
use crate::drain::{DroppedPod, PodIdentity, PodRules};

fn refused() -> ObservedDrain {
    let pod = PodIdentity {
        namespace: "a".into(),
        name: "p".into(),
        uid: "u".into(),
    };
    let mut drain = drained();
    drain.progress.dropped = vec![DroppedPod {
        pod,
        answer: "403 no".into(),
    }];
    drain
}

fn with(drain: ObservedDrain) -> RebootSnapshot {
    let mut seen = seen(RebootPhase::Draining);
    seen.drain = Some(drain);
    seen
}

fn on(on_drain_timeout: DrainTimeoutAction) -> RebootConfig {
    RebootConfig {
        on_drain_timeout,
        ..config()
    }
}

#[test]
fn cordon_and_record_are_one_patch_under_the_nodes_version() {
    let decision = decide(&seen(RebootPhase::Waiting), &config(), now(5));
    let patch = patch(&decision);
    assert_eq!(
        (patch.resource_version.as_str(), patch.unschedulable),
        ("1", Some(true))
    );
    let record = written(&decision);
    assert_eq!(
        (record.phase, record.cordoned_by_us),
        (RebootPhase::Draining, true)
    );
    assert_eq!(record.lease.as_deref(), Some("dogwatch-default-0"));
    assert_eq!(patch.waiting_label, Some(false));
}

#[test]
fn a_foreign_cordon_is_not_claimed_and_never_removed() {
    let mut before = seen(RebootPhase::Waiting);
    set(&mut before, |node| node.unschedulable = true);
    let decision = decide(&before, &config(), now(5));
    assert_eq!(
        (
            patch(&decision).unschedulable,
            written(&decision).cordoned_by_us
        ),
        (None, false)
    );
    let mut failed = with(refused());
    set_record(&mut failed, |record| record.cordoned_by_us = false);
    assert_eq!(
        patch(&decide(&failed, &config(), now(5))).unschedulable,
        None
    );
}

#[test]
fn drained_is_the_list_complete_and_nothing_on_it() {
    let unlisted = ObservedDrain::default();
    for (drain, goes) in [
        (drained(), true),
        (one_pod_left(), false),
        (unlisted, false),
    ] {
        let decision = decide(&with(drain.clone()), &config(), now(5));
        assert_eq!(!decision.actions.is_empty(), goes, "{drain:?}");
    }
    assert_eq!(
        written(&decide(&with(drained()), &config(), now(5))).phase,
        RebootPhase::Rebooting
    );
}

#[test]
fn past_the_deadline_abort_uncordons_and_queues_again_and_the_lock_goes_after_that() {
    let mut late = with(one_pod_left());
    set_record(&mut late, |record| record.soft_reboots = Some(3));
    let decision = decide(&late, &config(), now(3600));
    assert_eq!(patch(&decision).unschedulable, Some(false));
    let record = written(&decision).clone();
    assert_eq!(
        (record.phase, record.failures, record.cordoned_by_us),
        (RebootPhase::Waiting, 1, false)
    );
    assert_eq!(record.retry_after, Some(wall(3660)));
    assert_eq!((record.since, record.soft_reboots), (wall(3600), None));
    let mut next = seen(RebootPhase::Waiting);
    set(&mut next, |node| node.record = ParsedAnnotation::Is(record));
    let release = decide(&next, &config(), now(3601));
    assert!(matches!(
        release.actions.as_slice(),
        [RebootAction::Release {
            over_budget: false,
            ..
        }]
    ));
    next.lock.leases = Some(vec![free(0)]);
    let pause = decide(&next, &config(), now(3601));
    assert_eq!(
        (pause.actions, pause.wake.unwrap().at.as_secs()),
        (vec![], 3660)
    );
    let again = decide(&next, &config(), now(3660));
    assert_eq!(
        (written(&again).retry_after, &written(&again).lease),
        (None, &None)
    );
    assert_eq!(patch(&again).waiting_label, Some(true));
}

#[test]
fn each_pause_is_twice_as_long_up_to_a_day() {
    for (failures, minutes) in [(0, 1), (1, 2), (5, 32), (11, 24 * 60), (4_000_000, 24 * 60)] {
        let mut seen = with(one_pod_left());
        set_record(&mut seen, |record| record.failures = failures);
        let decision = decide(&seen, &config(), now(3600));
        assert_eq!(
            written(&decision).retry_after,
            Some(wall(3600 + minutes * 60)),
            "{failures}"
        );
    }
}

#[test]
fn the_cordon_of_a_quarantined_node_stays_when_the_drain_is_undone() {
    let mut seen = with(one_pod_left());
    set(&mut seen, |node| node.quarantined = true);
    let decision = decide(&seen, &config(), now(3600));
    assert_eq!(patch(&decision).unschedulable, None);
    let record = written(&decision);
    assert_eq!(
        (record.phase, record.cordoned_by_us),
        (RebootPhase::Waiting, false)
    );
}

#[test]
fn past_the_deadline_delete_is_written_down_first_and_has_as_long_again() {
    let config = on(DrainTimeoutAction::Delete);
    let decision = decide(&with(one_pod_left()), &config, now(3600));
    assert!(written(&decision).deleting);
    assert_eq!(
        (written(&decision).phase, patch(&decision).unschedulable),
        (RebootPhase::Draining, None)
    );
    let mut deleting = with(one_pod_left());
    set_record(&mut deleting, |record| record.deleting = true);
    deleting.drain.as_mut().unwrap().progress.deleting = true;
    let going_on = decide(&deleting, &config, now(3601));
    assert_eq!(going_on.actions, []);
    assert!(going_on.observe.contains(&RebootObserve::Drain {
        delete: true,
        rules: PodRules::default()
    }));
    assert_eq!(
        written(&decide(&deleting, &config, now(7200))).phase,
        RebootPhase::Waiting
    );
}

#[test]
fn what_the_evicting_drain_said_is_no_news_of_the_deleting_one() {
    let config = on(DrainTimeoutAction::Delete);
    for stale in [refused(), drained()] {
        let mut seen = with(stale);
        set_record(&mut seen, |record| record.deleting = true);
        assert_eq!(decide(&seen, &config, now(5)).actions, []);
        seen.drain.as_mut().unwrap().progress.deleting = true;
        assert_ne!(decide(&seen, &config, now(5)).actions, []);
    }
}

#[test]
fn past_the_deadline_force_reboots_anyway_and_says_so() {
    let decision = decide(
        &with(one_pod_left()),
        &on(DrainTimeoutAction::Force),
        now(3600),
    );
    let record = written(&decision);
    assert_eq!(
        (record.phase, record.forced, record.attempts),
        (RebootPhase::Rebooting, true, 1)
    );
    let drained = |decision: &RebootDecision| {
        decision
            .report
            .conditions
            .iter()
            .find(|c| c.kind == "Drained")
            .unwrap()
            .status
    };
    let mut next = seen(RebootPhase::Rebooting);
    set_record(&mut next, |record| record.forced = true);
    assert_eq!(
        drained(&decide(&next, &config(), now(5))),
        crate::condition::ConditionStatus::False
    );
}

#[test]
fn an_incomplete_drain_takes_the_deadlines_path_at_once_and_quotes_the_answer() {
    for (on_timeout, phase) in [
        (DrainTimeoutAction::Abort, RebootPhase::Waiting),
        (DrainTimeoutAction::Delete, RebootPhase::Draining),
        (DrainTimeoutAction::Force, RebootPhase::Rebooting),
    ] {
        let decision = decide(&with(refused()), &on(on_timeout), now(1));
        assert_eq!(written(&decision).phase, phase, "{on_timeout:?}");
        assert!(
            decision.cause.message.contains("403 no"),
            "{}",
            decision.cause.message
        );
    }
}

#[test]
fn the_deadline_holds_even_if_no_pod_was_ever_seen() {
    let mut seen = seen(RebootPhase::Draining);
    seen.drain = None;
    assert_eq!(
        decide(&seen, &config(), now(5)).wake.unwrap().at.as_secs(),
        3600
    );
    assert_eq!(
        written(&decide(&seen, &config(), now(3600))).phase,
        RebootPhase::Waiting
    );
}

#[test]
fn uncordoned_by_somebody_is_a_veto_undone_reported_and_backed_off() {
    let mut seen = with(one_pod_left());
    set(&mut seen, |node| node.unschedulable = false);
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(
        (written(&decision).phase, written(&decision).failures),
        (RebootPhase::Waiting, 1)
    );
    assert_eq!(patch(&decision).unschedulable, None);
    assert!(has_event(&decision, RebootReason::UncordonedByOther));
}

#[test]
fn the_lock_lost_or_the_trigger_gone_undoes_the_drain() {
    let mut lost = with(one_pod_left());
    lost.lock.leases = Some(vec![held(0, "n2", &["coordinator/x"])]);
    let decision = decide(&lost, &config(), now(5));
    assert_eq!(
        (written(&decision).phase, patch(&decision).unschedulable),
        (RebootPhase::Waiting, Some(false))
    );
    assert_eq!(decision.cause.reason, RebootReason::LockLost);
    let mut gone = with(one_pod_left());
    gone.host.triggers = vec![absent()];
    let decision = decide(&gone, &config(), now(5));
    assert_eq!(
        (written(&decision).phase, patch(&decision).unschedulable),
        (RebootPhase::Waiting, Some(false))
    );
    assert_eq!(written(&decision).retry_after, None, "nobody is to blame");
}

#[test]
fn volumes_of_drained_pods_must_go_for_two_minutes_then_it_goes_on_and_says_so() {
    let mut seen = with(drained());
    seen.drain.as_mut().unwrap().progress.claims = vec!["a/data".into()];
    let looks = decide(&seen, &config(), now(5));
    assert!(matches!(
        looks.observe.as_slice(),
        [RebootObserve::Attachments { .. }, ..]
    ));
    seen.attachments = Some(vec!["csi-1".into()]);
    let waits = decide(&seen, &config(), now(119));
    assert_eq!(
        (waits.actions, waits.wake.unwrap().at.as_secs()),
        (vec![], 120)
    );
    let on = decide(&seen, &config(), now(120));
    assert_eq!(written(&on).phase, RebootPhase::Rebooting);
    let expected = "drained; volumes are still attached after 2m; the reboot continues: csi-1";
    assert_eq!(written(&on).message, expected);
    assert!(has_event(&on, RebootReason::DetachingVolumes));
    // If the write fails, the volumes are still known at the next try.
    let kept = |look: &RebootObserve| matches!(look, RebootObserve::Attachments { .. });
    assert!(on.observe.iter().any(kept), "{:?}", on.observe);
    let mut short = config();
    short.volume_detach_timeout = std::time::Duration::from_secs(10);
    let on = decide(&seen, &short, now(10));
    assert_eq!(written(&on).phase, RebootPhase::Rebooting, "as configured");
    seen.attachments = Some(Vec::new());
    assert_eq!(
        written(&decide(&seen, &config(), now(6))).phase,
        RebootPhase::Rebooting
    );
}

#[test]
fn a_controller_that_puts_its_pod_back_for_ever_is_named_with_how_often_it_did() {
    let back = crate::drain::ToleratedPod {
        pod: crate::drain::PodIdentity {
            namespace: "a".into(),
            name: "p-3".into(),
            uid: "u3".into(),
        },
        kind: "ReplicaSet".into(),
        controller: "p".into(),
        replaced: 3,
    };
    let words =
        "ReplicaSet a/p put a pod back on the cordoned node 3 times: the drain leaves a/p-3 there";
    let mut drain = one_pod_left();
    drain.progress.tolerated = vec![back.clone()];
    let under_way = decide(&with(drain), &config(), now(10));
    let message = &under_way.cause.message;
    assert!(message.contains(words), "{message}");
    assert!(has_event(&under_way, RebootReason::PodsComeBack));

    let mut drain = drained();
    drain.progress.tolerated = vec![back];
    let on = decide(&with(drain), &config(), now(10));
    assert_eq!(written(&on).phase, RebootPhase::Rebooting);
    let message = &written(&on).message;
    assert!(message.contains(words), "{message}");
    assert!(has_event(&on, RebootReason::PodsComeBack));
}

#[test]
fn a_pod_that_goes_without_its_rollout_is_an_event_also_if_the_drain_is_over_at_once() {
    let gone = crate::drain::UnrolledPod {
        pod: crate::drain::PodIdentity {
            namespace: "a".into(),
            name: "p".into(),
            uid: "u".into(),
        },
        why: "Deployment a/p is paused".into(),
    };
    for mut drain in [one_pod_left(), drained()] {
        drain.progress.unrolled = vec![gone.clone()];
        let on = decide(&with(drain), &config(), now(10));
        assert!(has_event(&on, RebootReason::NotRolledFirst));
    }
}

#[test]
fn the_record_keeps_the_budgets_of_this_drain_and_every_trigger_it_serves() {
    let mut seen = with(drained());
    seen.drain.as_mut().unwrap().progress.covered_by = vec!["a/pdb".into()];
    seen.host.triggers = vec![present("touched-anew")];
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(written(&decision).budgets, ["a/pdb"]);
    assert!(
        written(&decision)
            .serves
            .values()
            .any(|served| *served == print("touched-anew"))
    );
}

#[test]
fn budgets_are_written_down_while_the_drain_goes_on_and_a_new_run_adds_to_them() {
    let mut seen = seen(RebootPhase::Draining);
    let mut drain = one_pod_left();
    drain.progress.covered_by = vec!["a/pdb".into()];
    seen.drain = Some(drain.clone());
    let first = decide(&seen, &config(), now(10));
    assert_eq!(written(&first).budgets, ["a/pdb"]);
    assert_eq!(written(&first).since, wall(0), "the phase goes on");

    // The process that saw the pods of `a/gone` leave has ended.
    set_record(&mut seen, |record| {
        record.budgets = vec!["a/gone".into(), "a/pdb".into()];
    });
    assert_eq!(decide(&seen, &config(), now(10)).actions, []);
    drain.progress.waiting.clear();
    seen.drain = Some(drain);
    let last = decide(&seen, &config(), now(20));
    assert_eq!(written(&last).phase, RebootPhase::Rebooting);
    assert_eq!(written(&last).budgets, ["a/gone", "a/pdb"]);
}

#[test]
fn a_budget_that_blocks_for_ten_seconds_is_an_event_and_named_with_its_numbers() {
    let mut drain = one_pod_left();
    let numbers = crate::drain::BudgetNumbers {
        namespace: "a".into(),
        name: "pdb".into(),
        disruptions_allowed: 0,
        current_healthy: 2,
        desired_healthy: 2,
        expected_pods: 2,
    };
    drain.progress.blocked = vec![crate::drain::BlockedPod {
        pod: drain.progress.waiting[0].clone(),
        message: "would violate it".into(),
        refused: None,
        budgets: vec![numbers],
        since: std::time::Duration::from_secs(5),
    }];
    let soon = decide(&with(drain.clone()), &config(), now(6));
    assert!(!has_event(&soon, RebootReason::DrainBlocked));
    assert_eq!(soon.wake.unwrap().at.as_secs(), 15);
    assert!(
        soon.cause
            .message
            .contains("a/pdb (2 healthy of 2 desired, 0 disruptions allowed)")
    );
    assert!(has_event(
        &decide(&with(drain), &config(), now(15)),
        RebootReason::DrainBlocked
    ));
}

#[test]
fn a_webhook_that_refuses_an_eviction_is_named_in_condition_and_event_and_ends_nothing() {
    let mut drain = one_pod_left();
    let said = "rolled by its operator".to_owned();
    let refused = crate::drain::AdmissionRefusal {
        by: crate::drain::AdmissionRefuser::Webhook("w.example".into()),
        said,
    };
    drain.progress.blocked = vec![crate::drain::BlockedPod {
        pod: drain.progress.waiting[0].clone(),
        message: "admission webhook \"w.example\" denied the request: wait".into(),
        refused: Some(refused),
        budgets: Vec::new(),
        since: std::time::Duration::from_secs(5),
    }];
    let decision = decide(&with(drain.clone()), &config(), now(15));
    assert_eq!(decision.cause.reason, RebootReason::DrainBlocked);
    let message = &decision.cause.message;
    let expected = "a/p is blocked by admission webhook w.example: rolled by its operator";
    assert!(message.ends_with(expected), "{message}");
    assert!(has_event(&decision, RebootReason::DrainBlocked));
    // At the deadline the same happens as with a budget.
    let late = decide(&with(drain), &config(), now(3600));
    assert_eq!(late.cause.reason, RebootReason::DrainTimedOut);
}

#[test]
fn however_many_pods_are_held_up_few_events_stand_at_a_time() {
    let blocked = |n: usize, budget: &str| crate::drain::BlockedPod {
        pod: crate::drain::PodIdentity {
            namespace: "a".into(),
            name: format!("p{n}"),
            uid: format!("u{n}"),
        },
        message: format!("{budget} would be violated"),
        refused: None,
        budgets: Vec::new(),
        since: std::time::Duration::from_secs(1 + u64::try_from(200 - n).unwrap()),
    };
    let events = |budget: fn(usize) -> String| {
        let mut drain = one_pod_left();
        drain.progress.blocked = (0..200).map(|n| blocked(n, &budget(n))).collect();
        let decision = decide(&with(drain), &config(), now(300));
        let events = decision.report.events.into_iter();
        events
            .filter(|event| event.reason == RebootReason::DrainBlocked.as_str())
            .map(|event| event.message)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        events(|_| "one".into()),
        ["a/p199: one would be violated"],
        "the one that is held up for the longest"
    );
    assert_eq!(events(|n| format!("budget {n}")).len(), 10);
}

#[test]
fn what_the_drain_cannot_see_is_said_with_what_is_left() {
    let mut seen = seen(RebootPhase::Draining);
    let mut drain = one_pod_left();
    drain.progress.observation_errors = vec!["pods cannot be watched: no answer".into()];
    seen.drain = Some(drain);
    let decision = decide(&seen, &config(), now(10));
    let message = &decision.cause.message;
    assert!(message.contains("1 to go"), "{message}");
    assert!(message.contains("pods cannot be watched"), "{message}");
}

#[test]
fn one_webhook_that_refuses_many_pods_in_ever_other_words_is_one_event() {
    let blocked = |n: usize, by: &str| crate::drain::BlockedPod {
        pod: PodIdentity {
            namespace: "a".into(),
            name: format!("p{n}"),
            uid: format!("u{n}"),
        },
        message: format!("not before {n} o'clock"),
        refused: Some(crate::drain::AdmissionRefusal {
            by: crate::drain::AdmissionRefuser::Webhook(by.into()),
            said: format!("not before {n} o'clock"),
        }),
        budgets: Vec::new(),
        since: std::time::Duration::from_secs(1),
    };
    let mut drain = one_pod_left();
    drain.progress.blocked = vec![blocked(1, "w"), blocked(2, "w"), blocked(3, "other")];
    let decision = decide(&with(drain), &config(), now(300));
    let events = decision.report.events.iter();
    let blocked = events.filter(|event| event.reason == RebootReason::DrainBlocked.as_str());
    assert_eq!(blocked.count(), 2, "{:?}", decision.report.events);
}

#[test]
fn dogwatchs_own_pods_that_stay_are_named_in_the_record_and_in_the_condition() {
    let mut drain = drained();
    drain.progress.kept = vec![PodIdentity {
        namespace: "dogwatch".into(),
        name: "controller-0".into(),
        uid: "u".into(),
    }];
    let on = decide(&with(drain), &config(), now(5));
    let words = "Dogwatch's own pods stay: dogwatch/controller-0";
    let message = written(&on).message.clone();
    assert!(message.contains(words), "{message}");
    let mut rebooting = seen(RebootPhase::Rebooting);
    set_record(&mut rebooting, |record| record.message = message);
    let conditions = decide(&rebooting, &config(), now(6)).report.conditions;
    let drained = conditions.iter().find(|it| it.kind == "Drained").unwrap();
    assert!(drained.message.contains(words), "{}", drained.message);
}

#[test]
fn the_drain_begins_now_and_names_its_lease() {
    let record = written(&decide(&seen(RebootPhase::Waiting), &config(), now(5))).clone();
    assert_eq!(record.since, wall(5));
    assert_eq!(record.message, "draining with Lease dogwatch-default-0");
}

#[test]
fn an_undone_drain_leaves_nothing_of_its_own_for_the_next() {
    let mut seen = with(one_pod_left());
    seen.host.triggers = vec![absent()];
    set_record(&mut seen, |record| {
        record.forced = true;
        record.deleting = true;
        record.budgets = vec!["a/pdb".into()];
        record.message = "drained".into();
    });
    let undone = written(&decide(&seen, &config(), now(5))).clone();
    assert!(!undone.forced, "the next drain is not cut short");
    assert!(!undone.deleting, "the next drain evicts again");
    assert!(undone.budgets.is_empty(), "{:?}", undone.budgets);
    let message = "the trigger of the reboot is gone; undoing the drain";
    assert_eq!(undone.message, message);
}
