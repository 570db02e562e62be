//! How a NodeReboot ends, and whether another attempt follows.

use dogwatch_api::node_reboot::{
    NodeRebootPhase, RebootAttemptStatus, RebootMethod, RequiredCondition,
};
use jiff::{SignedDuration, Timestamp};

use super::attempt::RebootCase;
use super::decide::{NextStep, NodeRebootStep};
use super::following;
use super::reason::NodeRebootReason;
use super::request::withdraw_patch;
use super::types::{ObservedNodeReboot, SuccessPlan, close_attempt, copy_phase_times};
use crate::Now;
use crate::reboot::{LastReboot, ObservedNode, RebootOutcome};
use crate::time::{SCHEDULE_CLOCK_CHECK_INTERVAL, truncate_to_micros};

/// Refused before anything began, and for good.
pub(super) fn refuse_request(
    own: &ObservedNodeReboot,
    reason: NodeRebootReason,
    text: impl Into<String>,
) -> NodeRebootStep {
    NodeRebootStep::new(own, NextStep::End, reason, text)
}

/// The end, also of the attempt that is open.
pub(super) fn end_with(
    own: &ObservedNodeReboot,
    reason: NodeRebootReason,
    text: impl Into<String>,
    now: Now,
) -> NodeRebootStep {
    let step = NodeRebootStep::new(own, NextStep::End, reason, text);
    match own.open_attempt() {
        Some(attempt) => {
            let mut attempt = attempt.clone();
            close_attempt(&mut attempt, reason, truncate_to_micros(now.wall));
            step.with_attempt(attempt)
        }
        None => step,
    }
}

/// Why the request is not wanted any more, as far as nothing has begun.
pub(super) fn find_withdrawal(case: RebootCase<'_>) -> Option<(NodeRebootReason, String)> {
    if case.own.deleting {
        return Some((NodeRebootReason::Cancelled, "it was deleted".into()));
    }
    if case.plan.cancel {
        return Some((
            NodeRebootReason::Cancelled,
            "spec.cancel is true".to_owned(),
        ));
    }
    let deadline = waiting_deadline(case)?;
    let is_held = case.own.status.phase > NodeRebootPhase::Waiting;
    (deadline <= case.now.wall && !is_held).then(|| {
        let text = format!("nothing had begun by {deadline}");
        (NodeRebootReason::DeadlinePassed, text)
    })
}

/// The deadline, while it counts: until the first attempt has begun.
pub(super) fn waiting_deadline(case: RebootCase<'_>) -> Option<Timestamp> {
    let is_first = case.own.earlier_attempts().is_empty();
    case.plan.deadline.filter(|_| is_first)
}

/// The Node's last reboot served the attempt.
pub(super) fn take_outcome(
    case: RebootCase<'_>,
    attempt: &RebootAttemptStatus,
    last: &LastReboot,
) -> NodeRebootStep {
    // The coordinator removes what it has served. One that does not would reboot the node again.
    if withdraw_patch(case.node, case.own, &case.seen.others).is_some() {
        return following::withdraw_request(case, "takes the served request back");
    }
    let mut attempt = attempt.clone();
    attempt.boot_id_before = Some(last.old_boot_id.to_string());
    attempt.boot_id_after = Some(last.new_boot_id.to_string());
    copy_phase_times(&mut attempt, &last.began);
    match last.outcome {
        RebootOutcome::Rebooted => finish_reboot(case, attempt),
        RebootOutcome::Released => {
            let text = "the hold is over, and the node is back in service";
            end_attempt(case, attempt, NodeRebootReason::Released, text)
        }
        RebootOutcome::Aborted => {
            let text = "somebody stopped it with dogwatch abort";
            end_attempt(case, attempt, NodeRebootReason::Aborted, text)
        }
        RebootOutcome::TriggerGone => {
            let (reason, text) = find_withdrawal(case).unwrap_or_else(removed_outcome);
            end_attempt(case, attempt, reason, text)
        }
    }
}

/// The Node shows nothing of the attempt, by a fresh read. `None`: it was never asked.
pub(super) fn outcome_without_trace(
    case: RebootCase<'_>,
    attempt: &RebootAttemptStatus,
) -> Option<NodeRebootStep> {
    let boot_id = case.node.boot_id.as_ref().map(ToString::to_string);
    let was_asked = case.own.status.phase > NodeRebootPhase::Pending;
    let is_hold = attempt.method == RebootMethod::Hold;
    let is_held = case.own.status.phase > NodeRebootPhase::Waiting;
    if is_hold && is_held {
        let text = "the hold is over";
        let attempt = attempt.clone();
        return Some(end_attempt(case, attempt, NodeRebootReason::Released, text));
    }
    let is_new_boot =
        boot_id.is_some() && attempt.boot_id_before.is_some() && attempt.boot_id_before != boot_id;
    let is_served = match attempt.method {
        RebootMethod::Hold => false,
        RebootMethod::Reboot => was_asked || !is_boot_of_another(case, attempt),
        // A crash while it waited is not the power cycle that was asked for.
        RebootMethod::PowerCycle => {
            attempt.power.is_some() || case.own.status.phase > NodeRebootPhase::Waiting
        }
    };
    if is_new_boot && is_served {
        let mut attempt = attempt.clone();
        attempt.boot_id_after = boot_id;
        return Some(finish_reboot(case, attempt));
    }
    let (reason, text) = match find_withdrawal(case) {
        Some(why) => why,
        None if was_asked => removed_outcome(),
        None => return None,
    };
    Some(end_attempt(case, attempt.clone(), reason, text))
}

/// Whether the boot that the attempt began in was ended by a reboot that serves others.
fn is_boot_of_another(case: RebootCase<'_>, attempt: &RebootAttemptStatus) -> bool {
    let last = case.node.last_reboot.get();
    last.is_some_and(|last| attempt.boot_id_before.as_deref() == Some(last.old_boot_id.as_str()))
}

fn removed_outcome() -> (NodeRebootReason, String) {
    let text = "somebody removed the request from the Node before anything had begun";
    (NodeRebootReason::RequestRemoved, text.to_owned())
}

fn end_attempt(
    case: RebootCase<'_>,
    mut attempt: RebootAttemptStatus,
    reason: NodeRebootReason,
    text: impl Into<String>,
) -> NodeRebootStep {
    close_attempt(&mut attempt, reason, truncate_to_micros(case.now.wall));
    NodeRebootStep::new(case.own, NextStep::End, reason, text).with_attempt(attempt)
}

/// The node is back with a new boot: that is the success, or its conditions are awaited.
fn finish_reboot(case: RebootCase<'_>, mut attempt: RebootAttemptStatus) -> NodeRebootStep {
    let Some(success) = &case.plan.success else {
        let text = format!("Node {} was rebooted", case.plan.node);
        return end_attempt(case, attempt, NodeRebootReason::Rebooted, text);
    };
    attempt.finished_at = Some(truncate_to_micros(case.now.wall));
    let text = awaited_message(success, case.node);
    let reason = NodeRebootReason::AwaitingSuccess;
    NodeRebootStep::new(case.own, NextStep::Wait, reason, text)
        .with_phase(NodeRebootPhase::Returning)
        .with_attempt(attempt)
}

/// The node is back; the conditions of `success` are awaited.
pub(super) fn await_success(case: RebootCase<'_>, attempt: &RebootAttemptStatus) -> NodeRebootStep {
    let (Some(success), Some(finished)) = (&case.plan.success, attempt.finished_at) else {
        let text = format!("Node {} was rebooted", case.plan.node);
        return end_attempt(case, attempt.clone(), NodeRebootReason::Rebooted, text);
    };
    if missing_conditions(success, case.node).is_empty() {
        let text = "rebooted, and all conditions are met";
        let reason = NodeRebootReason::SuccessReached;
        return end_attempt(case, attempt.clone(), reason, text);
    }
    if case.own.deleting {
        let text = "rebooted, and deleted before its success was known";
        return end_attempt(case, attempt.clone(), NodeRebootReason::Rebooted, text);
    }
    let text = awaited_message(success, case.node);
    let reason = NodeRebootReason::AwaitingSuccess;
    let over = finished
        .checked_add(SignedDuration::try_from(success.within).unwrap_or(SignedDuration::MAX))
        .unwrap_or(Timestamp::MAX);
    if over > case.now.wall {
        let at = case
            .now
            .recheck_time_of(over, SCHEDULE_CLOCK_CHECK_INTERVAL);
        return NodeRebootStep::new(case.own, NextStep::Wait, reason, text)
            .with_wake(at, "the end of success.within");
    }
    if case.seen.fresh_read(case.now).is_none() {
        return NodeRebootStep::read_node(case.seen, reason, text, case.now);
    }
    fail_attempt(case, attempt, success)
}

/// The next method, or the end.
fn fail_attempt(
    case: RebootCase<'_>,
    attempt: &RebootAttemptStatus,
    success: &SuccessPlan,
) -> NodeRebootStep {
    let missing = missing_conditions(success, case.node).join(", ");
    let within = crate::duration::format_duration(success.within);
    let text = format!("rebooted, but within {within} the Node did not have {missing}");
    let reason = NodeRebootReason::SuccessNotReached;
    let attempts = case.own.status.attempts.len();
    if case.plan.cancel || case.plan.method_of_attempt(attempts).is_none() {
        return end_attempt(case, attempt.clone(), reason, text);
    }
    let mut attempt = attempt.clone();
    close_attempt(&mut attempt, reason, truncate_to_micros(case.now.wall));
    NodeRebootStep::new(
        case.own,
        NextStep::Wait,
        NodeRebootReason::AskingNode,
        format!("{text}; the next attempt follows"),
    )
    .with_phase(NodeRebootPhase::Pending)
    .with_attempt(attempt)
}

fn awaited_message(success: &SuccessPlan, node: &ObservedNode) -> String {
    let within = crate::duration::format_duration(success.within);
    match missing_conditions(success, node) {
        missing if missing.is_empty() => "rebooted; checks the conditions of success".into(),
        missing => format!("rebooted; waits up to {within} for {}", missing.join(", ")),
    }
}

/// The conditions that the Node does not have, as `TYPE=STATUS`.
fn missing_conditions(success: &SuccessPlan, node: &ObservedNode) -> Vec<String> {
    let is_met = |wanted: &&RequiredCondition| {
        let mut conditions = node.conditions.iter();
        conditions.any(|one| one.kind == wanted.kind && one.status == wanted.status)
    };
    let missing = success.conditions.iter().filter(|wanted| !is_met(wanted));
    missing
        .map(|wanted| format!("{}={}", wanted.kind, wanted.status))
        .collect()
}
