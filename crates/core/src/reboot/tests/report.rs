//! §2.5: what a person sees. Serves S7.

use super::super::*;
use super::kit::*;
use crate::condition::Status;

fn conditions(decision: &Decision) -> Vec<(&'static str, bool)> {
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
        (found.kind, found.status == Status::True)
    };
    named.iter().map(status).collect()
}

#[test]
fn phases_show_as_conditions() {
    let table = [
        (Phase::Waiting, [true, false, false, false]),
        (Phase::Draining, [true, true, false, false]),
        (Phase::Rebooting, [true, false, true, true]),
        (Phase::Returning, [true, false, true, true]),
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
        outcome: Outcome::Rebooted,
        planned: wall(0),
        finished: wall(1),
        old_boot_id: boot("boot-0"),
        new_boot_id: boot("boot-1"),
        trigger: record(Phase::Waiting).trigger,
        fingerprints: std::collections::BTreeMap::new(),
        began: std::collections::BTreeMap::new(),
        rebooted: None,
    };
    set(&mut seen, |node| node.last = Parsed::Is(last));
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
        Phase::Waiting,
        Phase::Draining,
        Phase::Rebooting,
        Phase::Returning,
    ] {
        let decision = decide(&seen(phase), &config(), now(5));
        assert!(!decision.report.events.is_empty(), "{phase:?}");
        assert!(!decision.because.message.is_empty(), "{phase:?}");
    }
}

#[test]
fn what_keeps_an_observer_from_its_work_is_part_of_the_reason() {
    let mut seen = seen(Phase::Draining);
    seen.drain = None;
    seen.trouble.insert("watching pods", "403 Forbidden".into());
    let decision = decide(&seen, &config(), now(5));
    assert!(
        decision
            .because
            .message
            .contains("watching pods: 403 Forbidden")
    );
    assert!(has_event(&decision, reason::TROUBLE));
}
