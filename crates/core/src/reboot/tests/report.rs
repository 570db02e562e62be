//! §2.5: what a person sees. Serves S7.

use super::super::*;
use super::kit::*;
use crate::condition::ConditionStatus;

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
