//! §2.5: what a person sees. Serves S7.

use super::super::*;
use super::kit::*;
use crate::condition::{ConditionStatus, CurrentCondition, DesiredCondition};

fn conditions(decision: &RebootDecision) -> Vec<(&'static str, bool)> {
    let named = [
        "MaintenancePlanned",
        "DrainInProgress",
        "Drained",
        "MaintenanceInProgress",
    ];
    let status = |kind: &&str| {
        let found = decision
            .report
            .conditions
            .iter()
            .find(|c| c.kind == *kind)
            .unwrap();
        (found.kind, found.status == ConditionStatus::True)
    };
    named.iter().map(status).collect()
}

#[test]
fn phases_show_as_conditions() {
    let table = [
        (RebootPhase::Waiting, [true, false, false, false]),
        (RebootPhase::Draining, [true, true, false, false]),
        (RebootPhase::Rebooting, [true, false, true, true]),
        (RebootPhase::Returning, [true, false, true, true]),
    ];
    for (phase, expected) in table {
        let shown = conditions(&decide(&seen(phase), &config(), now(5)));
        assert_eq!(
            shown.iter().map(|(_, status)| *status).collect::<Vec<_>>(),
            expected,
            "{phase:?}"
        );
    }
}

fn planned(seen: &RebootSnapshot) -> Option<DesiredCondition> {
    let all = decide(seen, &config(), now(5)).report.conditions;
    all.into_iter().find(|one| one.kind == "MaintenancePlanned")
}

#[test]
fn a_reboot_is_planned_only_when_it_is_near_and_its_wait_has_a_reason() {
    let mut seen = seen(RebootPhase::Waiting);
    assert_eq!(planned(&seen).unwrap().status, ConditionStatus::True);
    seen.lock.leases = Some(vec![held(0, "n2", &["coordinator/z"])]);
    let waits = planned(&seen).unwrap();
    assert_eq!(waits.status, ConditionStatus::False);
    assert_eq!(waits.reason, "LockHeldByOther");
    // Written also on a node that never rebooted: people look there for the reason.
    assert!(waits.shows_reason);
    seen.lock.leases = Some(vec![ours()]);
    set_record(&mut seen, |record| record.retry_after = Some(wall(60)));
    assert_eq!(planned(&seen).unwrap().status, ConditionStatus::False);
}

#[test]
fn a_reboot_that_the_controller_expects_soon_is_said_to_be_planned() {
    let mut seen = seen(RebootPhase::Waiting);
    seen.lock.leases = Some(vec![held(0, "n2", &["coordinator/z"])]);
    let since = seen_since(&seen);
    for (start, status) in [
        (Some(since), ConditionStatus::True),
        (
            Some(since - jiff::SignedDuration::from_secs(1)),
            ConditionStatus::False,
        ),
        (None, ConditionStatus::False),
    ] {
        set(&mut seen, |node| node.estimated_start = start);
        assert_eq!(planned(&seen).unwrap().status, status, "{start:?}");
    }
    set(&mut seen, |node| {
        node.record = ParsedAnnotation::Absent;
        node.estimated_start = Some(since);
    });
    let decision = decide(&seen, &config(), now(5));
    assert!(conditions(&decision).iter().all(|(_, status)| !status));
}

/// Since when the node waits.
fn seen_since(seen: &RebootSnapshot) -> jiff::Timestamp {
    let OwnNodeState::There(node) = &seen.node else {
        panic!("a node");
    };
    node.record.get().unwrap().since
}

#[test]
fn afterwards_they_are_false_with_the_outcome_as_reason() {
    let mut seen = idle();
    seen.host.triggers = vec![absent()];
    let last = LastReboot {
        outcome: RebootOutcome::Rebooted,
        planned: wall(0),
        finished: wall(1),
        old_boot_id: boot("boot-0"),
        new_boot_id: boot("boot-1"),
        trigger: record(RebootPhase::Waiting).trigger,
        fingerprints: std::collections::BTreeMap::new(),
        began: std::collections::BTreeMap::new(),
        rebooted: None,
        soft: false,
    };
    set(&mut seen, |node| {
        node.last_reboot = ParsedAnnotation::Is(last);
    });
    let decision = decide(&seen, &config(), now(5));
    assert!(conditions(&decision).iter().all(|(_, status)| !status));
    let reasons = decision
        .report
        .conditions
        .iter()
        .take(4)
        .map(|c| c.reason.as_str());
    assert_eq!(reasons.collect::<Vec<_>>(), ["Rebooted"; 4]);
}

fn set_by_other(kind: &str) -> CurrentCondition {
    CurrentCondition {
        kind: kind.into(),
        status: "True".into(),
        reason: "KubectlDrainStarted".into(),
        message: "somebody else drains".into(),
        last_transition: Some(wall(1)),
        last_heartbeat: Some(wall(1)),
    }
}

/// The reported conditions of a node on which another tool has set these.
fn beside_others(phase: RebootPhase, kinds: &[&str]) -> Vec<DesiredCondition> {
    let mut seen = seen(phase);
    set(&mut seen, |node| {
        node.conditions = kinds.iter().map(|kind| set_by_other(kind)).collect();
    });
    decide(&seen, &config(), now(5)).report.conditions
}

#[test]
fn a_condition_that_another_tool_has_set_is_neither_cleared_nor_overwritten() {
    let phases = [
        RebootPhase::Waiting,
        RebootPhase::Draining,
        RebootPhase::Rebooting,
        RebootPhase::Returning,
    ];
    for phase in phases {
        for kind in ["MaintenancePlanned", "DrainInProgress", "Drained"] {
            let reported = beside_others(phase, &[kind]);
            assert!(
                reported.iter().all(|one| one.kind != kind),
                "{phase:?} {kind}: {reported:?}"
            );
            let has_sign = reported.iter().any(|one| one.heartbeat);
            assert_eq!(has_sign, phase != RebootPhase::Waiting, "{phase:?} {kind}");
        }
    }
}

#[test]
fn what_another_tool_has_cleared_may_be_used() {
    let mut seen = seen(RebootPhase::Rebooting);
    set(&mut seen, |node| {
        let status = "False".into();
        node.conditions = vec![CurrentCondition {
            status,
            ..set_by_other("Drained")
        }];
    });
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(conditions(&decision)[2], ("Drained", true));
}

#[test]
fn the_sign_of_life_goes_on_although_another_tool_has_set_every_condition() {
    let all = [
        "MaintenancePlanned",
        "DrainInProgress",
        "Drained",
        "MaintenanceInProgress",
    ];
    let reported = beside_others(RebootPhase::Draining, &all);
    let signs = reported.iter().filter(|one| one.heartbeat);
    let signs: Vec<&str> = signs.map(|one| one.kind).collect();
    assert_eq!(signs, ["DrainInProgress"]);
}

#[test]
fn every_phase_has_its_event_and_every_decision_its_reason() {
    for phase in [
        RebootPhase::Waiting,
        RebootPhase::Draining,
        RebootPhase::Rebooting,
        RebootPhase::Returning,
    ] {
        let decision = decide(&seen(phase), &config(), now(5));
        assert!(!decision.report.events.is_empty(), "{phase:?}");
        assert!(!decision.cause.message.is_empty(), "{phase:?}");
    }
}

#[test]
fn what_keeps_an_observer_from_its_work_is_part_of_the_reason() {
    let mut seen = seen(RebootPhase::Draining);
    seen.drain = None;
    seen.observation_errors
        .insert("watching pods", "403 Forbidden".into());
    let decision = decide(&seen, &config(), now(5));
    assert!(
        decision
            .cause
            .message
            .contains("watching pods: 403 Forbidden")
    );
    assert!(has_event(&decision, RebootReason::CannotLook));
}

/// Reason and message of a condition of this node.
fn reported(seen: &RebootSnapshot, kind: &str) -> (String, String) {
    let conditions = decide(seen, &config(), now(5)).report.conditions;
    let mut found = conditions.into_iter().filter(|one| one.kind == kind);
    let one = found.next().expect("the condition is reported");
    (one.reason, one.message)
}

#[test]
fn only_a_node_that_looks_at_something_gives_as_its_reason_that_it_cannot() {
    let mut drains = seen(RebootPhase::Draining);
    drains.drain = None;
    let mut idles = idle();
    idles.host.triggers = vec![absent()];
    for seen in [&mut drains, &mut idles] {
        seen.observation_errors
            .insert("watching pods", "403 Forbidden".into());
    }
    let (reason, message) = reported(&drains, "DrainInProgress");
    assert_eq!(reason, "CannotLook");
    let expected = "listing the node's pods; trouble: watching pods: 403 Forbidden";
    assert_eq!(message, expected);
    let (reason, message) = reported(&idles, "MaintenancePlanned");
    assert_eq!(reason, "NoRebootWanted");
    assert_eq!(message, "nothing requests a reboot");
}

#[test]
fn a_node_that_did_not_boot_again_is_not_said_to_have_done_so() {
    let mut drains = seen(RebootPhase::Draining);
    drains.drain = Some(one_pod_left());
    let (reason, message) = reported(&drains, "DrainInProgress");
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("Draining", "0 pods gone, 1 to go")
    );
    let mut held = seen(RebootPhase::Returning);
    set_record(&mut held, |record| {
        record.trigger.method = dogwatch_api::node_reboot::RebootMethod::Hold;
    });
    held.run.ready_since = Some(std::time::Duration::ZERO);
    let (reason, message) = reported(&held, "MaintenanceInProgress");
    assert_eq!(reason, "HoldEnded");
    assert_eq!(message, "the Node is Ready; it must stay Ready for 30s");
}
