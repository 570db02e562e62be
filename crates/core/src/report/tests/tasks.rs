//! What needs a person.

use super::*;
use crate::explain::testkit::{fleet, in_phase, waiting};
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
