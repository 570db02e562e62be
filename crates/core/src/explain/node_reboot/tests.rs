use std::time::Duration;

use dogwatch_api::node_reboot::{NodeRebootPhase, RebootAttemptStatus, RebootMethod};
use jiff::Timestamp;

use super::*;
use crate::name::NodeName;
use crate::node_reboot::NodeRebootState;

fn at(text: &str) -> Timestamp {
    format!("2026-11-22T{text}Z").parse().unwrap()
}

fn now() -> Now {
    Now {
        wall: at("10:00:00"),
        mono: Duration::ZERO,
    }
}

fn leads() -> ObservedController {
    ObservedController::Leads {
        holder: "c1".into(),
        renewed: Some(at("09:59:55")),
    }
}

fn condition_of(kind: &str, status: &str, reason: NodeRebootReason) -> CurrentCondition {
    CurrentCondition {
        kind: kind.into(),
        status: status.into(),
        reason: reason.as_str().into(),
        message: "a message".into(),
        last_transition: Some(at("09:50:00")),
        last_heartbeat: None,
    }
}

/// A NodeReboot that waits for the lock.
fn waiting() -> ObservedNodeReboot {
    let reason = NodeRebootReason::WaitingForLock;
    ObservedNodeReboot {
        name: "nr".into(),
        uid: "u".into(),
        resource_version: "1".into(),
        generation: Some(1),
        created: at("09:40:00"),
        deleting: false,
        has_finalizer: true,
        other_finalizers: Vec::new(),
        status_problem: None,
        plan: Ok(NodeRebootPlan {
            node: NodeName::new("n1").unwrap(),
            node_uid: None,
            method: RebootMethod::Reboot,
            reason: "kernel".into(),
            requester: Some("ann".into()),
            not_before: None,
            deadline: Some(at("11:00:00")),
            success: None,
            escalation: Vec::new(),
            cancel: false,
            ttl: Duration::from_hours(24),
        }),
        status: NodeRebootState {
            observed_generation: Some(1),
            phase: NodeRebootPhase::Waiting,
            attempts: vec![RebootAttemptStatus {
                method: RebootMethod::Reboot,
                started_at: at("09:40:00"),
                drained_at: None,
                rebooted_at: None,
                finished_at: None,
                boot_id_before: None,
                boot_id_after: None,
                outcome: None,
                power: None,
            }],
            conditions: vec![condition_of(condition::PROGRESSING, "True", reason)],
            ..NodeRebootState::default()
        },
    }
}

fn texts(explanation: &NodeRebootExplanation, topic: ExplanationTopic) -> Vec<&str> {
    let lines = explanation.chain.iter().filter(|line| line.topic == topic);
    lines.map(|line| line.text.as_str()).collect()
}

#[test]
fn what_a_node_reboot_waits_for_is_told_with_its_deadline_and_the_next_step() {
    let told = explain_node_reboot(&waiting(), &leads(), now());
    assert_eq!(told.summary, "nr: Waiting: WaitingForLock");
    assert_eq!(
        texts(&told, ExplanationTopic::Asked),
        ["method Reboot for node n1 by ann: \"kernel\", since 2026-11-22 09:40:00Z (20m)"]
    );
    assert_eq!(
        texts(&told, ExplanationTopic::Deadline),
        ["given up if nothing has begun: at 2026-11-22 11:00:00Z (in 60m)"]
    );
    assert_eq!(
        texts(&told, ExplanationTopic::Says),
        ["WaitingForLock: a message"]
    );
    assert_eq!(
        texts(&told, ExplanationTopic::Step),
        ["1. Reboot: under way: begun 2026-11-22 09:40:00Z"]
    );
    let step = NodeRebootReason::WaitingForLock.next_step().unwrap();
    assert_eq!(told.advice, [step]);
}

#[test]
fn a_node_reboot_that_no_controller_has_read_asks_for_one() {
    let mut unread = waiting();
    unread.status = NodeRebootState::default();
    let told = explain_node_reboot(&unread, &ObservedController::Nobody, now());
    assert!(texts(&told, ExplanationTopic::Says)[0].contains("no controller has read"));
    assert!(
        told.advice[0].starts_with("start the controller"),
        "{:?}",
        told.advice
    );
}

#[test]
fn an_end_is_told_with_how_long_the_object_is_kept() {
    let mut ended = waiting();
    let reason = NodeRebootReason::SuccessNotReached;
    ended.status.phase = NodeRebootPhase::Finished;
    ended.status.conditions = vec![
        condition_of(condition::PROGRESSING, "False", reason),
        condition_of(condition::SUCCEEDED, "False", reason),
    ];
    let told = explain_node_reboot(&ended, &ObservedController::Nobody, now());
    assert_eq!(told.summary, "nr: failed: SuccessNotReached");
    assert_eq!(
        texts(&told, ExplanationTopic::Kept),
        ["the object is deleted at 2026-11-23 09:50:00Z (in 23h)"]
    );
    assert_eq!(told.advice, [reason.next_step().unwrap()]);
    ended.status.conditions[1] =
        condition_of(condition::SUCCEEDED, "True", NodeRebootReason::Rebooted);
    let told = explain_node_reboot(&ended, &leads(), now());
    assert_eq!(told.summary, "nr: succeeded: Rebooted");
}

#[test]
fn an_invalid_request_names_each_problem() {
    let mut invalid = waiting();
    invalid.plan = Err(vec!["spec.nodeName: empty".into(), "spec.method: ?".into()]);
    let told = explain_node_reboot(&invalid, &leads(), now());
    assert_eq!(
        texts(&told, ExplanationTopic::Asked),
        ["invalid: spec.nodeName: empty", "invalid: spec.method: ?"]
    );
}
