//! Runs of one node's coordinator: which run goes on, and what a process may remember. Serves S5.

use std::time::Duration;

use super::super::*;
use super::kit::*;

fn of_older_run(phase: RebootPhase) -> RebootSnapshot {
    let mut seen = seen(phase);
    seen.run.owned_since = None;
    set_record(&mut seen, |record| record.run = run("coordinator/a"));
    seen
}

#[test]
fn a_new_run_takes_the_record_over_before_anything_else() {
    for phase in [
        RebootPhase::Waiting,
        RebootPhase::Draining,
        RebootPhase::Rebooting,
        RebootPhase::Returning,
    ] {
        let decision = decide(&of_older_run(phase), &config(), now(5));
        let adopted = RebootRecord {
            run: run(RUN),
            ..record(phase)
        };
        assert_eq!(written(&decision), &adopted, "{phase:?}");
        assert_eq!(patch(&decision).unschedulable, None);
    }
}

#[test]
fn a_run_whose_record_was_taken_over_stops() {
    let mut seen = of_older_run(RebootPhase::Draining);
    seen.run.owned_since = Some(Duration::ZERO);
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(
        decision.actions,
        [RebootAction::Stop {
            by: "coordinator/a".into()
        }]
    );
}

#[test]
fn an_adopted_attempt_gives_no_permit_even_if_the_answer_was_lost() {
    let mut seen = of_older_run(RebootPhase::Rebooting);
    let decision = decide(&seen, &config(), now(5));
    let standing = RebootRecord {
        run: run("coordinator/a"),
        ..record(RebootPhase::Rebooting)
    };
    seen.run
        .record_patch_sending(Some(&standing), patch(&decision));
    // The answer is lost; the watch shows the record as if it were ours.
    seen.run.observe_record(Some(written(&decision)), now(6));
    set_record(&mut seen, |record| record.run = run(RUN));
    let next = decide(&seen, &config(), now(6));
    assert_eq!(
        (next.actions, next.cause.reason),
        (vec![], RebootReason::AwaitingReboot)
    );
    seen.run.record_patch_answer(patch(&decision), now(7));
    assert_eq!(seen.run.permit, None);
}

#[test]
fn only_the_answer_gives_the_permit_and_it_is_for_that_attempt() {
    let mut run = seen(RebootPhase::Draining).run;
    let decision = decide(&seen(RebootPhase::Draining), &config(), now(5));
    run.record_patch_sending(Some(&record(RebootPhase::Draining)), patch(&decision));
    assert_eq!(run.permit, None);
    run.observe_record(Some(written(&decision)), now(6));
    assert_eq!(
        run.permit, None,
        "the watch shows what was written, not when it was answered"
    );
    run.record_patch_answer(patch(&decision), now(7));
    assert_eq!(
        run.permit,
        Some(RebootPermit {
            attempt: 1,
            answered: now(7).mono
        })
    );
}

#[test]
fn a_command_of_an_undone_reboot_does_not_stand_for_the_next_ones() {
    for command in [
        RebootCommandState::FailedToStart {
            attempt: 1,
            why: "no such file".into(),
        },
        RebootCommandState::Started {
            attempt: 1,
            ended: None,
        },
    ] {
        let mut run = seen(RebootPhase::Rebooting).run;
        run.command = command.clone();
        run.observe_record(Some(&record(RebootPhase::Rebooting)), now(5));
        assert_eq!(run.command, command);
        run.observe_record(Some(&record(RebootPhase::Waiting)), now(6));
        assert_eq!(run.command, RebootCommandState::None);
    }
}

#[test]
fn a_node_that_is_not_there_is_said_and_nothing_is_done() {
    for (fact, why) in [
        (OwnNodeState::NotYet, RebootReason::NodeNotSeen),
        (OwnNodeState::Gone, RebootReason::NodeGone),
    ] {
        let mut seen = idle();
        seen.node = fact;
        let decision = decide(&seen, &config(), now(5));
        assert_eq!((decision.actions, decision.cause.reason), (vec![], why));
    }
}

#[test]
fn the_record_reads_back_as_it_was_written_under_its_public_names() {
    let record = record(RebootPhase::Draining);
    let text = serde_json::to_string(&record).unwrap();
    for name in [
        "phase",
        "run",
        "since",
        "trigger",
        "bootId",
        "cordonedByUs",
        "lease",
        "attempts",
        "message",
    ] {
        assert!(text.contains(&format!("\"{name}\":")), "{name} in {text}");
    }
    assert_eq!(
        ParsedAnnotation::from_text(Some(&text)),
        ParsedAnnotation::Is(record)
    );
}

#[test]
fn a_lock_that_a_killed_run_has_left_is_given_up_by_the_next_though_nothing_wants_a_reboot() {
    let mut seen = idle();
    seen.host.triggers = vec![absent()];
    seen.run.leftover_lock_released = false;
    seen.lock.leases = None;
    let looking = decide(&seen, &config(), now(5));
    assert!(looking.actions.is_empty());
    let looks = |look: &RebootObserve| matches!(look, RebootObserve::Locks { .. });
    assert!(looking.observe.iter().any(looks));
    seen.lock.leases = Some(vec![ours()]);
    let leaving = decide(&seen, &config(), now(5));
    assert!(matches!(
        leaving.actions.as_slice(),
        [RebootAction::Release {
            over_budget: false,
            ..
        }]
    ));
    seen.run.leftover_lock_released = true;
    let still = decide(&seen, &config(), now(5));
    assert_eq!(still.actions, leaving.actions, "while it is in sight");
    seen.lock.leases = Some(vec![free(0)]);
    assert_eq!(decide(&seen, &config(), now(5)).observe, []);
}

#[test]
fn what_the_calendar_held_back_is_no_wait_for_a_turn() {
    let mut run = run_seen("n1", run(RUN));
    let waiting = record(RebootPhase::Waiting);
    run.observe_record(Some(&waiting), now(0));
    run.record_decision(RebootReason::OutsideWindow, now(10));
    assert_eq!(run.held_back.waiting_since(wall(0)), None);
    run.record_decision(RebootReason::LockHeldByOther, now(40));
    assert_eq!(run.held_back.waiting_since(wall(0)), Some(wall(30)));
    // Another process does not know how much of the wait was held back.
    let mut next = run_seen("n1", super::kit::run("coordinator/next"));
    next.observe_record(Some(&waiting), now(100));
    assert_eq!(next.held_back.waiting_since(wall(0)), Some(wall(100)));
}

#[test]
fn a_process_that_has_only_seen_the_record_of_another_run_takes_it_over() {
    let mut seen = of_older_run(RebootPhase::Draining);
    let older = RebootRecord {
        run: run("coordinator/a"),
        ..record(RebootPhase::Draining)
    };
    for second in [4, 5] {
        seen.run.observe_record(Some(&older), now(second));
    }
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(decision.cause.reason, RebootReason::AdoptingOlderRun);
    seen.run
        .observe_record(Some(&record(RebootPhase::Draining)), now(6));
    assert_eq!(seen.run.owned_since, Some(Duration::from_secs(6)));
    seen.run.observe_record(Some(&older), now(7));
    let decision = decide(&seen, &config(), now(7));
    assert_eq!(decision.cause.reason, RebootReason::SupersededByNewerRun);
}
