//! What needs a person.

use std::sync::Arc;

use super::*;
use crate::explain::testkit::{condition, fleet, in_phase, node, requested_reboot, waiting};
use crate::policy::rollout::{PolicyRolloutState, RolloutHalt, RolloutShape};
use crate::report::PersonTask;

fn halted() -> Policy {
    let shape = RolloutShape {
        halt_after_failures: Some(1),
        ..RolloutShape::default()
    };
    let mut policy = policy("workers");
    policy.rollout.state = Some(PolicyRolloutState {
        halted: Some(RolloutHalt {
            since: at(50),
            reason: "1 reboot failed: n9".into(),
        }),
        ..shape.first_state()
    });
    policy.rollout.shape = Some(shape);
    policy
}

fn subjects(tasks: &[PersonTask]) -> Vec<(&str, &str)> {
    tasks
        .iter()
        .map(|task| (task.subject.as_str(), task.reason.as_str()))
        .collect()
}

#[test]
fn a_halted_policy_is_one_task_whatever_waits_for_it() {
    let said = ("RolloutHalted", "the rollout is halted");
    let waits = |name| in_phase(name, RebootPhase::Waiting, 10, said);
    let fleet = with_policy(fleet(vec![waits("n1"), waits("n2")], vec![]), halted());
    let tasks = view_of(&fleet, 100).needs_person;
    assert_eq!(subjects(&tasks), [("policy/workers", "TooManyFailures")]);
    assert_eq!(tasks[0].command.as_deref(), Some("dogwatch resume workers"));
    let step = tasks[0].next_step.as_deref().unwrap();
    assert!(step.ends_with("then `dogwatch resume workers`"), "{step}");
}

#[test]
fn machines_out_of_service_come_before_policies_and_waiting_nodes() {
    let failed = in_phase(
        "n9",
        RebootPhase::Rebooting,
        10,
        ("RebootFailed", "no boot"),
    );
    let mut unreadable = waiting("n1", 10);
    unreadable.record = ParsedAnnotation::Bad { why: "bad".into() };
    let fleet = with_policy(fleet(vec![unreadable, failed], vec![]), halted());
    let view = view_of(&fleet, 100);
    assert_eq!(
        subjects(&view.needs_person),
        [
            ("node/n9", "RebootFailed"),
            ("policy/workers", "TooManyFailures"),
            ("node/n1", "RecordUnreadable")
        ]
    );
    assert_eq!(view.counts.needs_person, 3);
}

#[test]
fn what_passes_by_itself_needs_nobody() {
    for reason in [
        "DrainBlocked",
        "Paused",
        "LockHeldByOther",
        "OfANewerVersion",
    ] {
        let node = in_phase("n1", RebootPhase::Draining, 10, (reason, "text"));
        let tasks = view_of(&fleet(vec![node], vec![]), 100).needs_person;
        assert_eq!(subjects(&tasks), [], "{reason}");
    }
}

#[test]
fn policies_that_cannot_be_read_are_told_as_unreadable() {
    let mut fleet = fleet(vec![waiting("n1", 10)], vec![]);
    fleet.policies = ClusterPolicies::Unreadable {
        why: "forbidden".into(),
    };
    let view = view_of(&fleet, 100);
    let told = "the RebootPolicies cannot be read: forbidden";
    assert_eq!(view.unreadable, [told]);
}

const MINUTE: i64 = 60;

fn leader(renewed: i64) -> ObservedController {
    ObservedController::Leads {
        holder: "c1".into(),
        renewed: Some(at(renewed)),
    }
}

fn hung(phase: RebootPhase) -> ObservedNode {
    in_phase("n1", phase, 0, ("AwaitingReboot", "waiting for a new boot"))
}

/// The second attempt may still come: 30 minutes each, and 15 in which a healer would act.
#[test]
fn a_phase_that_has_outlasted_its_deadline_and_whoever_ends_it_needs_somebody() {
    for (phase, minutes, is_overdue) in [
        (RebootPhase::Draining, 74, false),
        (RebootPhase::Draining, 76, true),
        (RebootPhase::Rebooting, 104, false),
        (RebootPhase::Rebooting, 106, true),
        (RebootPhase::Returning, 29, false),
        (RebootPhase::Returning, 31, true),
        (RebootPhase::Holding, 1_000_000, false),
    ] {
        let fleet = fleet(vec![hung(phase)], vec![]);
        let tasks = view_of(&fleet, minutes * MINUTE).needs_person;
        let expected: &[_] = if is_overdue {
            &[("node/n1", "Overdue")]
        } else {
            &[]
        };
        assert_eq!(subjects(&tasks), expected, "{phase:?} {minutes}");
    }
}

#[test]
fn an_overdue_node_tells_since_when_and_what_to_type() {
    let fleet = fleet(vec![hung(RebootPhase::Rebooting)], vec![]);
    let view = view_of(&fleet, 200 * MINUTE);
    let task = &view.needs_person[0];
    assert!(
        task.message
            .contains("should have ended at 1970-01-01 00:30:00Z"),
        "{}",
        task.message
    );
    let end = "node/n1 needs you (Overdue); type: dogwatch explain node/n1";
    assert!(view.sentence.ends_with(end), "{}", view.sentence);
}

/// The coordinator's flags are not on the cluster: one that lives may allow more time.
#[test]
fn a_node_whose_coordinator_lives_is_not_overdue() {
    let mut slow = hung(RebootPhase::Draining);
    let mut sign = condition("DrainInProgress", ("Draining", "3 pods gone"));
    sign.last_heartbeat = Some(at(195 * MINUTE));
    slow.conditions = vec![sign];
    let tasks = view_of(&fleet(vec![slow], vec![]), 200 * MINUTE).needs_person;
    assert_eq!(subjects(&tasks), []);
}

#[test]
fn a_controller_that_is_missing_needs_somebody_if_something_waits_for_it() {
    let reboots = vec![
        Arc::new(requested_reboot("a", "n1")),
        Arc::new(requested_reboot("b", "n2")),
    ];
    for (controller, node_reboots, is_missed) in [
        (ObservedController::Nobody, reboots.clone(), true),
        (leader(30), reboots.clone(), true),
        (leader(95), reboots.clone(), false),
        (ObservedController::Unknown, reboots, false),
        (ObservedController::Nobody, Vec::new(), false),
    ] {
        let mut fleet = fleet(vec![node("n1"), node("n2")], vec![]);
        fleet.controller = controller.clone();
        let input = FleetViewInput {
            node_reboots,
            ..FleetViewInput::of_fleet(&fleet)
        };
        let view = build_fleet_view(input, now(100));
        let expected: &[_] = if is_missed {
            &[("controller", "NobodyLeads")]
        } else {
            &[]
        };
        assert_eq!(subjects(&view.needs_person), expected, "{controller:?}");
        if is_missed {
            let message = &view.needs_person[0].message;
            assert!(
                message.ends_with("leads, and 2 requested reboots wait for one"),
                "{message}"
            );
        }
    }
}

#[test]
fn an_overdue_node_tells_that_no_controller_leads() {
    let mut fleet = fleet(vec![hung(RebootPhase::Rebooting)], vec![]);
    fleet.controller = ObservedController::Nobody;
    let tasks = view_of(&fleet, 200 * MINUTE).needs_person;
    assert_eq!(subjects(&tasks), [("node/n1", "Overdue")]);
    let message = &tasks[0].message;
    assert!(
        message.ends_with("no controller leads, so no healer ends it"),
        "{message}"
    );
}

fn remediation_under_way() -> crate::explain::RemediationRow {
    crate::explain::RemediationRow {
        subject: "machine/metal/m1".into(),
        namespace: Some("metal".into()),
        node: Some("n1".into()),
        host: Some("metal/h1".into()),
        step: None,
        since: None,
        attempt: Some(1),
        under_way: true,
        needs_somebody: false,
        reason: "ProvingOff".into(),
        message: "reads the host's power".into(),
        steps: Vec::new(),
    }
}

#[test]
fn a_remediation_without_a_controller_needs_somebody_and_its_node_is_no_task_of_its_own() {
    let mut fleet = fleet(vec![hung(RebootPhase::Rebooting)], vec![]);
    for (controller, tasks) in [
        (leader(200 * MINUTE), &[][..]),
        (leader(0), &[("controller", "NobodyLeads")][..]),
    ] {
        fleet.controller = controller;
        let input = FleetViewInput {
            remediations: vec![remediation_under_way()],
            ..FleetViewInput::of_fleet(&fleet)
        };
        let view = build_fleet_view(input, now(200 * MINUTE));
        assert_eq!(subjects(&view.needs_person), tasks);
    }
}
