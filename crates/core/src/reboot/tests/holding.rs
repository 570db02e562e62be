//! §10.1: a hold, from its request to its release.

use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;

use super::super::*;
use super::kit::*;

pub(super) fn asked(uid: &str) -> NodeRebootRef {
    NodeRebootRef {
        name: format!("nr-{uid}"),
        uid: uid.into(),
    }
}

fn request(method: RebootMethod, uids: &[&str]) -> ParsedAnnotation<RebootRequest> {
    ParsedAnnotation::Is(RebootRequest {
        reason: "new memory".into(),
        requester: "ann".into(),
        method,
        node_reboots: uids.iter().map(|uid| asked(uid)).collect(),
        ..RebootRequest::default()
    })
}

pub(super) fn ask(seen: &mut RebootSnapshot, method: RebootMethod, uids: &[&str]) {
    set(seen, |node| {
        node.request = request(method, uids);
        node.request_fingerprint = Some(print(&format!("{method:?}{uids:?}")));
    });
}

/// Node `n1` in this phase of what NodeReboot `u1` asks for, without a sentinel.
pub(super) fn under_way(phase: RebootPhase, method: RebootMethod) -> RebootSnapshot {
    let mut seen = seen(phase);
    seen.host.triggers = vec![absent()];
    ask(&mut seen, method, &["u1"]);
    set_record(&mut seen, |record| {
        record.trigger = RebootTrigger {
            source: "request".into(),
            reason: "new memory".into(),
            requester: Some("ann".into()),
            method,
            node_reboots: vec![asked("u1")],
        };
        let text = print(&format!("{method:?}{:?}", ["u1"]));
        record.serves = [("request".to_owned(), text)].into();
    });
    seen
}

fn reason(seen: &RebootSnapshot) -> RebootReason {
    decide(seen, &config(), now(5)).cause.reason
}

#[test]
fn a_hold_is_served_alone_and_a_power_cycle_with_the_sentinels() {
    for (method, serves) in [
        (RebootMethod::Hold, vec!["request"]),
        (
            RebootMethod::PowerCycle,
            vec!["request", "sentinel:/run/reboot-needed"],
        ),
        (
            RebootMethod::Reboot,
            vec!["request", "sentinel:/run/reboot-needed"],
        ),
    ] {
        let mut seen = idle();
        ask(&mut seen, method, &["u1"]);
        let decision = decide(&seen, &config(), now(5));
        let record = written(&decision);
        assert_eq!(record.trigger.method, method);
        assert_eq!(record.trigger.node_reboots, [asked("u1")]);
        assert_eq!(record.serves.keys().collect::<Vec<_>>(), serves);
    }
}

#[test]
fn while_nothing_has_begun_the_record_follows_the_request() {
    let changes: [(RebootMethod, &[&str]); 3] = [
        (RebootMethod::Hold, &["u1", "u2"]),
        (RebootMethod::PowerCycle, &["u1"]),
        (RebootMethod::Reboot, &[]),
    ];
    for (method, uids) in changes {
        let mut seen = under_way(RebootPhase::Waiting, RebootMethod::Hold);
        ask(&mut seen, method, uids);
        let decision = decide(&seen, &config(), now(5));
        let trigger = &written(&decision).trigger;
        assert_eq!(
            (trigger.method, trigger.node_reboots.len()),
            (method, uids.len())
        );
    }
    let same = under_way(RebootPhase::Waiting, RebootMethod::Hold);
    assert_eq!(
        written(&decide(&same, &config(), now(5))).phase,
        RebootPhase::Draining
    );
}

#[test]
fn a_hold_that_is_withdrawn_before_it_began_leaves_the_sentinel_to_be_served() {
    let mut seen = under_way(RebootPhase::Waiting, RebootMethod::Hold);
    set(&mut seen, |node| {
        node.request = ParsedAnnotation::Absent;
        node.request_fingerprint = None;
    });
    assert_eq!(reason(&seen), RebootReason::TriggerGone);
    seen.host.triggers = vec![present("a")];
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(written(&decision).trigger.method, RebootMethod::Reboot);
    assert_eq!(written(&decision).serves.len(), 1);
}

#[test]
fn a_drained_node_is_held_and_no_command_is_started() {
    let seen = under_way(RebootPhase::Draining, RebootMethod::Hold);
    let decision = decide(&seen, &config(), now(5));
    let record = written(&decision);
    assert_eq!((record.phase, record.attempts), (RebootPhase::Holding, 0));
    let held = under_way(RebootPhase::Holding, RebootMethod::Hold);
    let decision = decide(&held, &config(), now(5));
    assert_eq!(decision.cause.reason, RebootReason::Held);
    assert!(decision.actions.is_empty() && decision.wake.is_none());
    let lead = decision
        .report
        .conditions
        .iter()
        .find(|one| one.kind == "MaintenanceInProgress");
    let lead = lead.unwrap();
    assert_eq!((lead.reason.as_str(), lead.heartbeat), ("Held", true));
    assert!(
        lead.message.contains("held for ann: new memory"),
        "{}",
        lead.message
    );
}

#[test]
fn a_hold_never_begins_with_pods_left() {
    let mut seen = under_way(RebootPhase::Draining, RebootMethod::Hold);
    seen.drain = Some(one_pod_left());
    let forcing = RebootConfig {
        on_drain_timeout: DrainTimeoutAction::Force,
        ..config()
    };
    let decision = decide(&seen, &forcing, now(4000));
    assert_eq!(written(&decision).phase, RebootPhase::Waiting);
    assert_eq!(decision.cause.reason, RebootReason::DrainTimedOut);
}

#[test]
fn a_boot_is_no_end_of_a_hold() {
    for phase in [
        RebootPhase::Waiting,
        RebootPhase::Draining,
        RebootPhase::Holding,
    ] {
        let mut seen = under_way(phase, RebootMethod::Hold);
        seen.host.boot_id = Ok(boot("boot-2"));
        let decision = decide(&seen, &config(), now(5));
        let record = written(&decision);
        assert_eq!((record.phase, &record.boot_id), (phase, &boot("boot-2")));
    }
}

#[test]
fn a_hold_ends_when_its_request_does_and_the_node_returns_before_the_lock_goes() {
    let ends: [Option<(RebootMethod, &[&str])>; 3] = [
        None,
        Some((RebootMethod::Hold, &["u2"])),
        Some((RebootMethod::Reboot, &["u1"])),
    ];
    for request in ends {
        let mut seen = under_way(RebootPhase::Holding, RebootMethod::Hold);
        match request {
            Some((method, uids)) => ask(&mut seen, method, uids),
            None => set(&mut seen, |node| node.request = ParsedAnnotation::Absent),
        }
        let decision = decide(&seen, &config(), now(5));
        assert_eq!(decision.cause.reason, RebootReason::HoldEnded);
        assert_eq!(written(&decision).phase, RebootPhase::Returning);
        assert!(written(&decision).cordoned_by_us);
    }
    let mut back = under_way(RebootPhase::Returning, RebootMethod::Hold);
    set(&mut back, |node| node.request = ParsedAnnotation::Absent);
    assert_eq!(reason(&back), RebootReason::AwaitingReady);
    back.run.ready_since = Some(Duration::ZERO);
    let decision = decide(&back, &config(), now(40));
    assert_eq!(patch(&decision).unschedulable, Some(false));
    set(&mut back, |node| node.unschedulable = false);
    set_record(&mut back, |record| record.cordoned_by_us = false);
    back.gates = Some(Vec::new());
    let releases = decide(&back, &config(), now(40));
    assert!(matches!(
        releases.actions[..],
        [RebootAction::Release { .. }]
    ));
    back.lock.leases = Some(vec![free(0)]);
    let finished = decide(&back, &config(), now(40));
    assert_eq!(
        patch(&finished).last.as_ref().unwrap().outcome,
        RebootOutcome::Released
    );
    assert_eq!(finished.cause.reason, RebootReason::Released);
}

#[test]
fn a_hold_stays_while_another_node_reboot_or_a_person_asks_for_it_or_the_request_is_unreadable() {
    let mut seen = under_way(RebootPhase::Holding, RebootMethod::Hold);
    for uids in [&["u2", "u1"][..], &[]] {
        ask(&mut seen, RebootMethod::Hold, uids);
        assert_eq!(reason(&seen), RebootReason::Held);
    }
    set(&mut seen, |node| {
        node.request = ParsedAnnotation::Bad { why: "no".into() }
    });
    assert_eq!(reason(&seen), RebootReason::Held);
}

#[test]
fn neither_a_lost_cordon_nor_a_lost_lock_ends_a_hold() {
    let mut seen = under_way(RebootPhase::Holding, RebootMethod::Hold);
    seen.lock.leases = Some(vec![free(0)]);
    assert_eq!(reason(&seen), RebootReason::LockLost);
    set(&mut seen, |node| node.unschedulable = false);
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(decision.cause.reason, RebootReason::UncordonedByOther);
    let record = written(&decision);
    assert_eq!(
        (record.phase, record.cordoned_by_us),
        (RebootPhase::Holding, false)
    );
    set_record(&mut seen, |record| record.cordoned_by_us = false);
    assert!(decide(&seen, &config(), now(5)).actions.is_empty());
}

#[test]
fn a_fenced_node_is_not_released_from_its_hold() {
    let mut seen = under_way(RebootPhase::Holding, RebootMethod::Hold);
    set(&mut seen, |node| {
        node.request = ParsedAnnotation::Absent;
        node.being_fenced = true;
    });
    assert_eq!(reason(&seen), RebootReason::BeingFenced);
    assert!(decide(&seen, &config(), now(5)).actions.is_empty());
}

#[test]
fn a_new_run_takes_a_hold_over() {
    let mut seen = under_way(RebootPhase::Holding, RebootMethod::Hold);
    seen.run.owned_since = None;
    set_record(&mut seen, |record| record.run = run("coordinator/a"));
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(written(&decision).run, run(RUN));
    assert_eq!(written(&decision).phase, RebootPhase::Holding);
    let mut adopted = under_way(RebootPhase::Holding, RebootMethod::Hold);
    adopted.lock.leases = Some(vec![held(0, "n1", &["coordinator/a"])]);
    let decision = decide(&adopted, &config(), now(5));
    assert!(matches!(decision.actions[..], [RebootAction::Bid { .. }]));
}

#[test]
fn an_abort_ends_a_hold_at_once_and_removes_its_request() {
    let mut seen = under_way(RebootPhase::Holding, RebootMethod::Hold);
    let abort = AbortRequest {
        reason: String::new(),
        requester: "bob".into(),
    };
    set(&mut seen, |node| node.abort = ParsedAnnotation::Is(abort));
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(patch(&decision).unschedulable, Some(false));
    set(&mut seen, |node| node.unschedulable = false);
    set_record(&mut seen, |record| record.cordoned_by_us = false);
    seen.lock.leases = Some(vec![free(0)]);
    let decision = decide(&seen, &config(), now(5));
    assert!(patch(&decision).remove_request && patch(&decision).remove_abort);
    assert_eq!(
        patch(&decision).last.as_ref().unwrap().outcome,
        RebootOutcome::Released
    );
}

#[test]
fn a_power_cycle_starts_no_command_and_fails_loudly_without_a_new_boot() {
    let drained = under_way(RebootPhase::Draining, RebootMethod::PowerCycle);
    let decision = decide(&drained, &config(), now(5));
    assert_eq!(written(&decision).phase, RebootPhase::Rebooting);
    let mut seen = under_way(RebootPhase::Rebooting, RebootMethod::PowerCycle);
    seen.run.permit = Some(RebootPermit {
        attempt: 1,
        answered: Duration::from_secs(4),
    });
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(decision.cause.reason, RebootReason::AwaitingReboot);
    assert!(decision.actions.is_empty());
    assert_eq!(decision.wake.unwrap().at, Duration::from_mins(30));
    let decision = decide(&seen, &config(), now(1801));
    assert_eq!(decision.cause.reason, RebootReason::RebootFailed);
    assert!(decision.actions.is_empty());
    seen.host.boot_id = Ok(boot("boot-2"));
    assert_eq!(reason(&seen), RebootReason::NewBoot);
    assert_eq!(
        written(&decide(&seen, &config(), now(5))).phase,
        RebootPhase::Returning
    );
}

#[test]
fn a_boot_before_a_power_cycle_does_not_serve_it() {
    let mut seen = under_way(RebootPhase::Draining, RebootMethod::PowerCycle);
    seen.host.boot_id = Ok(boot("boot-2"));
    assert_eq!(
        written(&decide(&seen, &config(), now(5))).phase,
        RebootPhase::Draining
    );
}

#[test]
fn a_power_cycle_whose_node_reboot_is_gone_is_undone_while_nothing_is_announced() {
    let mut seen = under_way(RebootPhase::Draining, RebootMethod::PowerCycle);
    seen.host.triggers = vec![present("a")];
    ask(&mut seen, RebootMethod::Reboot, &[]);
    assert_eq!(
        written(&decide(&seen, &config(), now(5))).phase,
        RebootPhase::Waiting
    );
}

#[test]
fn a_person_cannot_ask_for_a_power_cycle_by_annotation() {
    let mut seen = idle();
    seen.host.triggers = vec![absent()];
    ask(&mut seen, RebootMethod::PowerCycle, &[]);
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(decision.cause.reason, RebootReason::NoRebootWanted);
    assert!(has_event(&decision, RebootReason::RequestUnreadable));
    assert!(decision.actions.is_empty());
}

#[test]
fn what_is_asked_for_after_the_cordon_waits_for_the_next_reboot() {
    // A sentinel's reboot drains; a NodeReboot asks for one.
    let mut late = seen(RebootPhase::Draining);
    ask(&mut late, RebootMethod::Reboot, &["u2"]);
    let decision = decide(&late, &config(), now(5));
    let serves = &written(&decision).serves;
    assert!(!serves.contains_key("request"), "{serves:?}");
    // The sentinel goes: the NodeReboot is not served by the reboot that has begun for it.
    late.host.triggers = vec![absent()];
    assert_eq!(
        written(&decide(&late, &config(), now(5))).phase,
        RebootPhase::Waiting
    );
    // A person's request joins, as before.
    ask(&mut late, RebootMethod::Reboot, &[]);
    let decision = decide(&late, &config(), now(5));
    assert!(written(&decision).serves.contains_key("request"));
}

#[test]
fn a_hold_begins_and_ends_at_its_moment_and_keeps_the_budgets_of_its_drain() {
    let mut drained = under_way(RebootPhase::Draining, RebootMethod::Hold);
    drained.drain.as_mut().unwrap().progress.covered_by = vec!["a/pdb".into()];
    let begun = written(&decide(&drained, &config(), now(5))).clone();
    assert_eq!((begun.phase, begun.since), (RebootPhase::Holding, wall(5)));
    assert_eq!(begun.message, "drained");
    assert_eq!(begun.budgets, ["a/pdb"], "the return checks them");
    let mut held = under_way(RebootPhase::Holding, RebootMethod::Hold);
    set(&mut held, |node| {
        node.record = ParsedAnnotation::Is(begun);
        node.request = ParsedAnnotation::Absent;
    });
    let ended = written(&decide(&held, &config(), now(9))).clone();
    assert_eq!(
        (ended.phase, ended.since),
        (RebootPhase::Returning, wall(9))
    );
    let message = "the hold was withdrawn; the node goes back into service";
    assert_eq!(ended.message, message);
}

/// A reboot for a sentinel failed, and pauses until its next try. The pause is not for what somebody
/// asks for meanwhile.
#[test]
fn what_is_asked_for_during_a_pause_after_a_failed_try_does_not_wait_for_its_end() {
    for (method, uids, is_kept) in [
        (RebootMethod::Hold, &[][..], false),
        (RebootMethod::Hold, &["u1"], false),
        (RebootMethod::Reboot, &["u1"], false),
        (RebootMethod::PowerCycle, &["u1"], false),
        (RebootMethod::Reboot, &[], true),
    ] {
        let mut seen = seen(RebootPhase::Waiting);
        set_record(&mut seen, |record| {
            record.failures = 3;
            record.retry_after = Some(wall(3600));
            record.lease = Some("dogwatch-g-0".into());
        });
        ask(&mut seen, method, uids);
        let decision = decide(&seen, &config(), now(5));
        if is_kept {
            assert_eq!(decision.cause.reason, RebootReason::BackingOff);
            continue;
        }
        let record = written(&decision);
        assert_eq!(record.retry_after, None, "{method:?} {uids:?}");
        assert_eq!(record.failures, 3);
        assert!(record.lease.is_some(), "that Lease is released first");
    }
}
