//! A wall clock that is set moves no deadline. Serves S5 and S6.

use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::Now;

/// The clock that showed second 0 at monotonic second 0, set ahead by `ahead` seconds.
fn set_ahead(second: u32, ahead: i64) -> Now {
    let wall = wall(second) + jiff::SignedDuration::from_secs(ahead);
    Now {
        wall,
        ..now(second)
    }
}

fn seen_from_its_start(phase: RebootPhase) -> RebootSnapshot {
    let mut seen = seen(phase);
    let record = record(phase);
    seen.run.observe_record(Some(&record), now(0));
    seen
}

#[test]
fn no_jump_of_the_clock_runs_the_command_early_or_never_again() {
    let mut seen = seen_from_its_start(RebootPhase::Rebooting);
    seen.run.command = RebootCommandState::Started {
        attempt: 1,
        ended: None,
    };
    for ahead in [-1_000_000, 0, 1_000_000] {
        assert_eq!(
            decide(&seen, &config(), set_ahead(1799, ahead)).actions,
            [],
            "{ahead}"
        );
        let again = decide(&seen, &config(), set_ahead(1800, ahead));
        assert_eq!(written(&again).attempts, 2, "{ahead}");
    }
}

#[test]
fn no_jump_of_the_clock_ends_a_drain_early_or_never() {
    let mut seen = seen_from_its_start(RebootPhase::Draining);
    seen.drain = Some(one_pod_left());
    for ahead in [-1_000_000, 0, 1_000_000] {
        assert_eq!(
            decide(&seen, &config(), set_ahead(3599, ahead)).actions,
            [],
            "{ahead}"
        );
        assert_ne!(
            decide(&seen, &config(), set_ahead(3600, ahead)).actions,
            [],
            "{ahead}"
        );
    }
}

#[test]
fn no_jump_of_the_clock_makes_a_pause_shorter_or_longer() {
    let mut seen = seen(RebootPhase::Waiting);
    seen.lock.leases = Some(vec![free(0)]);
    set_record(&mut seen, |record| record.retry_after = Some(wall(60)));
    let OwnNodeState::There(node) = seen.node.clone() else {
        panic!()
    };
    seen.run.observe_record(node.record.get(), now(0));
    for ahead in [-1_000_000, 0, 1_000_000] {
        assert_eq!(
            decide(&seen, &config(), set_ahead(59, ahead)).actions,
            [],
            "{ahead}"
        );
        assert_ne!(
            decide(&seen, &config(), set_ahead(60, ahead)).actions,
            [],
            "{ahead}"
        );
    }
}

#[test]
fn who_takes_a_reboot_over_waits_the_whole_timeout_by_its_own_clock_before_the_next_attempt() {
    let mut seen = seen(RebootPhase::Rebooting);
    seen.run.adopted_attempt = Some(1);
    // Started when the record was 1000 seconds old by the wall clock.
    let begun = Now {
        mono: Duration::from_secs(3),
        ..now(1000)
    };
    seen.run
        .observe_record(Some(&record(RebootPhase::Rebooting)), begun);
    let wake = decide(&seen, &config(), begun).wake.unwrap();
    assert_eq!(
        wake.at.as_secs(),
        3 + 1800,
        "whatever the clocks did meanwhile"
    );
}

#[test]
fn no_jump_of_the_clock_runs_the_command_again_while_the_run_before_may_still_start_it() {
    let mut seen = seen(RebootPhase::Rebooting);
    seen.run.adopted_attempt = Some(1);
    let older = RebootRecord {
        run: run("coordinator/a"),
        ..record(RebootPhase::Rebooting)
    };
    seen.run.owned_since = None;
    seen.run
        .observe_record(Some(&older), set_ahead(1, 1_000_000));
    // Taken over. A permit of the earlier run was answered before that.
    let ours = record(RebootPhase::Rebooting);
    seen.run
        .observe_record(Some(&ours), set_ahead(5, 1_000_000));
    seen.run
        .observe_record(Some(&ours), set_ahead(9, 1_000_000));
    let waits = decide(&seen, &config(), set_ahead(14, 1_000_000));
    assert_eq!(
        (waits.actions, waits.wake.unwrap().at.as_secs()),
        (vec![], 1801)
    );
    let again = decide(&seen, &config(), set_ahead(1801, 1_000_000));
    assert_eq!(written(&again).attempts, 2);
}

#[test]
fn a_phase_that_we_began_is_timed_from_its_answer() {
    let mut seen = idle();
    let decision = decide(&super::kit::seen(RebootPhase::Draining), &config(), now(5));
    // The clock is set between the patch and its answer.
    seen.run
        .record_patch_answer(patch(&decision), set_ahead(6, 1_000_000));
    let phase = seen.run.phase.unwrap();
    assert_eq!((phase.before, phase.seen.as_secs()), (Duration::ZERO, 6));
}

#[test]
fn a_drain_that_was_under_way_when_it_was_first_seen_has_the_rest_of_its_time() {
    let mut seen = seen(RebootPhase::Draining);
    seen.drain = Some(one_pod_left());
    seen.run.phase = Some(ObservedPhase {
        since: wall(0),
        before: Duration::from_mins(10),
        seen: Duration::from_secs(100),
    });
    assert_eq!(decide(&seen, &config(), now(3099)).actions, []);
    let late = decide(&seen, &config(), now(3100));
    assert_eq!(late.cause.reason, RebootReason::DrainTimedOut);
}

#[test]
fn the_time_of_the_phase_before_does_not_count_for_this_one() {
    let mut seen = seen(RebootPhase::Draining);
    seen.drain = Some(one_pod_left());
    seen.run.phase = Some(ObservedPhase {
        since: wall(0),
        before: Duration::from_secs(3500),
        seen: Duration::ZERO,
    });
    set_record(&mut seen, |record| record.since = wall(100));
    let waits = decide(&seen, &config(), now(200));
    assert_eq!(waits.cause.reason, RebootReason::Draining);
    assert_eq!(waits.wake.unwrap().at.as_secs(), 3700);
}

#[test]
fn no_jump_of_the_clock_shuts_the_return_gates_early_or_keeps_them_open() {
    let config = RebootConfig {
        on_gate_timeout: GateTimeoutAction::Release,
        ..config()
    };
    let mut seen = seen(RebootPhase::Returning);
    seen.host.boot_id = Ok(boot("boot-2"));
    seen.gates = Some(vec!["short".into()]);
    seen.run.ready_since = Some(Duration::ZERO);
    set(&mut seen, |node| {
        node.boot_id = Some(boot("boot-2"));
        node.unschedulable = false;
    });
    set_record(&mut seen, |record| {
        record.cordoned_by_us = false;
        record.usable = Some(wall(100));
    });
    let OwnNodeState::There(node) = seen.node.clone() else {
        panic!("the Node is there");
    };
    seen.run.observe_record(node.record.get(), now(100));
    for ahead in [-1_000_000, 0, 1_000_000] {
        let waits = decide(&seen, &config, set_ahead(999, ahead));
        assert_eq!(waits.actions, [], "{ahead}");
        assert_eq!(waits.cause.reason, RebootReason::ReturnGatesShut, "{ahead}");
        let late = decide(&seen, &config, set_ahead(1000, ahead));
        assert!(
            has_event(&late, RebootReason::ReturnGatesTimedOut),
            "{ahead}"
        );
        let release = late.actions.as_slice();
        assert!(
            matches!(release, [RebootAction::Release { .. }]),
            "{ahead}: {release:?}"
        );
    }
}

#[test]
fn when_the_node_became_usable_is_timed_from_the_answer_or_from_when_it_is_first_seen() {
    let record = RebootRecord {
        usable: Some(wall(40)),
        ..record(RebootPhase::Returning)
    };
    let mut decision = decide(&super::kit::seen(RebootPhase::Draining), &config(), now(40));
    let RebootAction::PatchNode(patch) = &mut decision.actions[0] else {
        panic!("it begins to reboot: {decision:?}");
    };
    patch.record = RecordChange::Set(record.clone());
    let mut writer = idle().run;
    writer.record_patch_answer(patch, set_ahead(41, 1_000_000));
    let mut reader = idle().run;
    reader.observe_record(Some(&record), now(50));
    for (run, before, first_seen) in [(&mut writer, 0, 41), (&mut reader, 10, 50)] {
        run.observe_record(Some(&record), set_ahead(60, 1_000_000));
        let usable = run.usable.expect("the record has it");
        let timed = (usable.before.as_secs(), usable.seen.as_secs());
        assert_eq!(timed, (before, first_seen));
        run.observe_record(None, now(70));
        assert_eq!(run.usable, None);
    }
}
