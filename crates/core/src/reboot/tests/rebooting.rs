//! §2.4: the reboot command is started once.

use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::Now;
use crate::drain::PodRules;

/// In phase `rebooting`; the patch that wrote it was answered at second 5.
fn permitted() -> RebootSnapshot {
    let mut seen = seen(RebootPhase::Rebooting);
    seen.run.permit = Some(RebootPermit {
        attempt: 1,
        answered: Duration::from_secs(5),
    });
    seen
}

fn starts(decision: &RebootDecision) -> bool {
    decision
        .actions
        .iter()
        .any(|action| matches!(action, RebootAction::Reboot { .. }))
}

fn started(ended: Option<CommandEnd>) -> RebootSnapshot {
    let mut seen = permitted();
    seen.run.command = RebootCommandState::Started { attempt: 1, ended };
    seen
}

#[test]
fn the_intention_is_written_before_the_command_and_the_answer_starts_it() {
    let written_first = decide(&seen(RebootPhase::Draining), &config(), now(5));
    assert!(!starts(&written_first));
    assert_eq!(
        (
            written(&written_first).phase,
            written(&written_first).attempts
        ),
        (RebootPhase::Rebooting, 1)
    );
    assert!(starts(&decide(&permitted(), &config(), now(5))));
    let unanswered = decide(&seen(RebootPhase::Rebooting), &config(), now(5));
    assert_eq!(
        written(&unanswered).attempts,
        1,
        "written again, for the same attempt"
    );
}

#[test]
fn the_intention_says_by_which_limits_the_coordinator_judges_the_reboot() {
    let flags = RebootConfig {
        reboot_timeout: Duration::from_hours(2),
        reboot_attempts: 5,
        settle: Duration::from_millis(1_500),
        ..config()
    };
    let written_first = decide(&seen(RebootPhase::Draining), &flags, now(5));
    let mut expected = RebootLimits {
        reboot_timeout_seconds: Some(7_200),
        reboot_attempts: Some(5),
        settle_seconds: Some(2),
    };
    assert_eq!(written(&written_first).limits, expected);
    let mut ruled = seen(RebootPhase::Draining);
    let mut policy = crate::policy::Policy::without_rules(crate::name::GroupName::default_group());
    policy.reboot.attempts = Some(1);
    ruled.policies = crate::policy::ClusterPolicies::Known(vec![policy]);
    expected.reboot_attempts = Some(1);
    assert_eq!(written(&decide(&ruled, &flags, now(5))).limits, expected);
}

#[test]
fn the_command_starts_within_ten_seconds_of_the_answer_or_everything_is_checked_again() {
    let in_time = Now {
        mono: Duration::from_millis(14_999),
        ..now(14)
    };
    assert!(starts(&decide(&permitted(), &config(), in_time)));
    let late = decide(&permitted(), &config(), now(15));
    assert_eq!(
        (written(&late).phase, written(&late).since),
        (RebootPhase::Rebooting, wall(15))
    );
}

#[test]
fn the_step_that_starts_the_command_keeps_in_sight_what_it_was_decided_from() {
    let decision = decide(&permitted(), &config(), now(5));
    assert!(decision.observe.contains(&RebootObserve::Drain {
        delete: false,
        rules: PodRules::default()
    }));
    assert!(
        decision
            .observe
            .iter()
            .any(|look| matches!(look, RebootObserve::Locks { .. }))
    );
}

#[test]
fn just_before_the_command_any_obstacle_undoes() {
    type Change = fn(&mut RebootSnapshot);
    let table: [(Change, RebootReason); 3] = [
        (
            |seen| set(seen, |node| node.unschedulable = false),
            RebootReason::UncordonedByOther,
        ),
        (
            |seen| seen.lock.leases = Some(vec![free(0)]),
            RebootReason::LockLost,
        ),
        (
            |seen| seen.host.triggers = vec![absent()],
            RebootReason::TriggerGone,
        ),
    ];
    for (change, why) in table {
        let mut seen = permitted();
        change(&mut seen);
        let decision = decide(&seen, &config(), now(6));
        assert_eq!(
            (written(&decision).phase, decision.cause.reason),
            (RebootPhase::Waiting, why)
        );
        assert_eq!(written(&decision).attempts, 0);
    }
}

#[test]
fn a_pod_that_came_back_is_drained_first_and_the_attempt_never_was() {
    let mut seen = permitted();
    seen.drain = Some(one_pod_left());
    let decision = decide(&seen, &config(), now(6));
    assert_eq!(
        (written(&decision).phase, written(&decision).attempts),
        (RebootPhase::Draining, 0)
    );
    for unknown in [None, Some(ObservedDrain::default())] {
        seen.drain = unknown;
        let decision = decide(&seen, &config(), now(6));
        assert_eq!(
            decision.actions,
            [],
            "a list that is not complete says nothing"
        );
    }
}

#[test]
fn a_forced_reboot_does_not_ask_for_the_drain_but_for_everything_else() {
    let mut seen = permitted();
    seen.drain = Some(one_pod_left());
    set_record(&mut seen, |record| record.forced = true);
    assert!(starts(&decide(&seen, &config(), now(6))));
    set(&mut seen, |node| node.unschedulable = false);
    assert!(!starts(&decide(&seen, &config(), now(6))));
}

#[test]
fn a_deleted_drain_is_still_drained() {
    let mut seen = permitted();
    set_record(&mut seen, |record| record.deleting = true);
    seen.drain.as_mut().unwrap().progress.deleting = true;
    let decision = decide(&seen, &config(), now(6));
    assert!(starts(&decision));
    assert!(decision.observe.contains(&RebootObserve::Drain {
        delete: true,
        rules: PodRules::default()
    }));
}

#[test]
fn once_started_it_waits_whatever_happens_to_cordon_lock_and_trigger() {
    for ended in [
        None,
        Some(CommandEnd::Success),
        Some(CommandEnd::Failure("exit status: 1".into())),
    ] {
        let mut seen = started(ended);
        set(&mut seen, |node| node.unschedulable = false);
        seen.lock.leases = Some(vec![free(0)]);
        seen.host.triggers = vec![absent()];
        // It only writes down that a later cordon is not its own.
        let first = decide(&seen, &config(), now(6));
        let record = written(&first).clone();
        assert_eq!(patch(&first).unschedulable, None);
        let disowned = RebootRecord {
            cordoned_by_us: false,
            ..super::kit::record(RebootPhase::Rebooting)
        };
        assert_eq!(record, disowned);
        set_record(&mut seen, |before| *before = record);
        let decision = decide(&seen, &config(), now(7));
        assert_eq!(
            (decision.actions, decision.wake.unwrap().at.as_secs()),
            (vec![], 1800)
        );
    }
}

#[test]
fn a_cordon_that_comes_after_a_persons_uncordon_stays_after_the_boot() {
    for fenced in [false, true] {
        let mut seen = started(None);
        set(&mut seen, |node| {
            node.unschedulable = false;
            node.being_fenced = fenced;
        });
        let record = written(&decide(&seen, &config(), now(6))).clone();
        assert!(!record.cordoned_by_us, "fenced: {fenced}");
        set_record(&mut seen, |before| *before = record);
        set(&mut seen, |node| {
            // Somebody cordons it to work on the machine, and boots it.
            node.unschedulable = true;
            node.being_fenced = false;
        });
        seen.host.boot_id = Ok(boot("boot-2"));
        let back = written(&decide(&seen, &config(), now(60))).clone();
        assert_eq!(back.phase, RebootPhase::Returning);
        set_record(&mut seen, |before| *before = back);
        seen.run.ready_since = Some(std::time::Duration::ZERO);
        seen.gates = Some(Vec::new());
        seen.lock.leases = Some(vec![free(0)]);
        let end = decide(&seen, &config(), now(600));
        assert_eq!(patch(&end).unschedulable, None, "fenced: {fenced}");
        assert_eq!(patch(&end).record, RecordChange::Remove);
    }
}

#[test]
fn a_run_that_finds_the_record_waits_too_and_runs_the_command_again_only_after_the_timeout() {
    let mut seen = seen(RebootPhase::Rebooting);
    seen.run.adopted_attempt = Some(1);
    let waits = decide(&seen, &config(), now(1799));
    assert_eq!(
        (waits.actions, waits.wake.unwrap().at.as_secs()),
        (vec![], 1800)
    );
    let again = decide(&seen, &config(), now(1800));
    assert_eq!(
        (written(&again).phase, written(&again).attempts),
        (RebootPhase::Rebooting, 2)
    );
    assert!(has_event(&again, RebootReason::Rebooting));
}

#[test]
fn after_the_last_attempt_cordon_and_lock_stay_and_it_stays_said() {
    let mut seen = started(None);
    set_record(&mut seen, |record| record.attempts = 2);
    seen.run.command = RebootCommandState::Started {
        attempt: 2,
        ended: None,
    };
    let decision = decide(&seen, &config(), now(1800));
    assert_eq!(
        (decision.actions.as_slice(), decision.cause.reason),
        (&[][..], RebootReason::RebootFailed)
    );
    assert!(has_event(&decision, RebootReason::RebootFailed));
    assert!(decision.cause.message.contains("dogwatch abort n1"));
}

#[test]
fn an_obstacle_to_the_next_attempt_undoes_nothing_and_is_said_as_a_failure() {
    type Change = fn(&mut RebootSnapshot);
    let table: [Change; 4] = [
        |seen| set(seen, |node| node.unschedulable = false),
        |seen| seen.lock.leases = Some(vec![free(0)]),
        |seen| seen.host.triggers = vec![absent()],
        |seen| seen.drain = Some(one_pod_left()),
    ];
    for (index, change) in table.into_iter().enumerate() {
        let mut seen = started(None);
        set_record(&mut seen, |record| record.cordoned_by_us = false);
        change(&mut seen);
        let decision = decide(&seen, &config(), now(1800 + 3600));
        assert_eq!(
            (decision.actions, decision.cause.reason),
            (vec![], RebootReason::RebootFailed),
            "{index}"
        );
    }
}

#[test]
fn a_command_that_could_not_be_started_is_none_and_everything_is_undone() {
    let mut seen = permitted();
    seen.run.command = RebootCommandState::FailedToStart {
        attempt: 1,
        why: "no such file".into(),
    };
    let decision = decide(&seen, &config(), now(6));
    assert_eq!(
        (written(&decision).phase, patch(&decision).unschedulable),
        (RebootPhase::Waiting, Some(false))
    );
    assert!(decision.cause.message.contains("no such file"));
}

#[test]
fn a_second_command_that_could_not_be_started_undoes_nothing() {
    let mut seen = permitted();
    set_record(&mut seen, |record| record.attempts = 2);
    seen.run.command = RebootCommandState::FailedToStart {
        attempt: 2,
        why: "no such file".into(),
    };
    assert_eq!(decide(&seen, &config(), now(6)).actions, []);
}

#[test]
fn a_new_boot_ends_it_in_every_phase_even_after_it_failed() {
    for phase in [
        RebootPhase::Waiting,
        RebootPhase::Draining,
        RebootPhase::Rebooting,
    ] {
        let mut seen = seen(phase);
        seen.host.boot_id = Ok(boot("boot-2"));
        set_record(&mut seen, |record| record.attempts = 2);
        let decision = decide(&seen, &config(), now(9000));
        assert_eq!(
            written(&decision).phase,
            RebootPhase::Returning,
            "{phase:?}"
        );
        assert_eq!(
            patch(&decision).unschedulable,
            None,
            "not before it is Ready"
        );
    }
}

#[test]
fn the_lock_is_taken_over_from_the_run_that_is_gone_while_the_boot_is_awaited() {
    let mut seen = seen(RebootPhase::Rebooting);
    seen.run.adopted_attempt = Some(1);
    seen.lock.leases = Some(vec![held(0, "n1", &["coordinator/a"])]);
    let decision = decide(&seen, &config(), now(6));
    let [RebootAction::Bid { record, .. }] = decision.actions.as_slice() else {
        panic!("{decision:?}");
    };
    assert_eq!(record.runs, [run(RUN)]);
}

#[test]
fn a_pod_that_comes_back_before_the_command_gives_the_drain_no_new_deadline() {
    let mut seen = seen(RebootPhase::Rebooting);
    set_record(&mut seen, |record| {
        record.since = wall(50);
        record.began.insert(RebootPhase::Draining, wall(5));
    });
    seen.drain = Some(one_pod_left());
    let decision = decide(&seen, &config(), now(60));
    let record = written(&decision);
    assert_eq!(
        (record.phase, record.since),
        (RebootPhase::Draining, wall(5))
    );
}

#[test]
fn a_permit_allows_the_command_for_ten_seconds_since_its_answer_and_no_longer() {
    let mut seen = seen(RebootPhase::Rebooting);
    assert_eq!(permit_time_left(&seen, now(0)), Duration::ZERO);
    seen.run.permit = Some(RebootPermit {
        attempt: 1,
        answered: Duration::from_secs(5),
    });
    for (second, left) in [(5, 10), (12, 3), (15, 0), (60, 0)] {
        let allowed = permit_time_left(&seen, now(second));
        assert_eq!(allowed, Duration::from_secs(left), "{second}");
    }
}

#[test]
fn the_end_of_an_earlier_attempt_is_not_that_of_this_one() {
    let failed = RebootCommandState::FailedToStart {
        attempt: 1,
        why: "no such file".into(),
    };
    let ended = RebootCommandState::Started {
        attempt: 1,
        ended: None,
    };
    for command in [failed, ended] {
        let mut seen = permitted();
        set_record(&mut seen, |record| record.attempts = 2);
        seen.run.permit = Some(RebootPermit {
            attempt: 2,
            answered: Duration::from_secs(5),
        });
        seen.run.command = command;
        let decision = decide(&seen, &config(), now(6));
        assert!(starts(&decision), "{:?}: {decision:?}", seen.run.command);
    }
}

#[test]
fn after_a_takeover_the_older_run_has_ten_seconds_for_its_command() {
    let taken_over_at = |second, adopted| {
        let mut seen = seen(RebootPhase::Rebooting);
        seen.run.owned_since = Some(Duration::from_secs(second));
        seen.run.adopted_attempt = adopted;
        seen
    };
    let late = taken_over_at(1795, Some(1));
    for second in [1800, 1804] {
        let waits = decide(&late, &config(), now(second));
        let wake = waits.wake.unwrap().at.as_secs();
        assert_eq!((waits.actions, wake), (vec![], 1805));
    }
    let again = decide(&late, &config(), now(1805));
    assert_eq!(written(&again).attempts, 2);
    let mut own = taken_over_at(1795, None);
    own.run.command = RebootCommandState::Started {
        attempt: 1,
        ended: None,
    };
    assert_eq!(written(&decide(&own, &config(), now(1800))).attempts, 2);
}

#[test]
fn a_forced_reboot_runs_its_command_again_beside_a_pod() {
    let mut seen = started(None);
    set_record(&mut seen, |record| record.forced = true);
    seen.drain = Some(one_pod_left());
    let again = decide(&seen, &config(), now(1800));
    assert_eq!(written(&again).attempts, 2);
}

#[test]
fn a_command_that_failed_is_the_reason_until_no_attempt_is_left() {
    let mut seen = started(Some(CommandEnd::Failure("exit status: 1".into())));
    let waits = decide(&seen, &config(), now(6));
    assert_eq!(waits.cause.reason, RebootReason::RebootCommandFailed);
    assert!(has_event(&waits, RebootReason::RebootCommandFailed));
    set_record(&mut seen, |record| record.attempts = 2);
    seen.run.command = RebootCommandState::Started {
        attempt: 2,
        ended: Some(CommandEnd::Failure("exit status: 1".into())),
    };
    let failed = decide(&seen, &config(), now(1800));
    assert_eq!(failed.cause.reason, RebootReason::RebootFailed);
}

#[test]
fn the_record_says_that_a_pod_came_back_before_the_reboot() {
    let mut seen = permitted();
    seen.drain = Some(one_pod_left());
    set_record(&mut seen, |record| record.message = "drained".into());
    let decision = decide(&seen, &config(), now(6));
    let message = "a pod came back before the reboot";
    assert_eq!(written(&decision).message, message);
}
