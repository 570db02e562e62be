//! The Node is asked, or the coordinator has begun: mirrors the record, and takes the request back
//! if it is not wanted any more.

use dogwatch_api::node_reboot::{NodeRebootPhase, RebootAttemptStatus, RebootMethod};

use super::asking;
use super::attempt::{RebootCase, begun_record};
use super::decide::{NextStep, NodeRebootStep};
use super::ending;
use super::host_check;
use super::power_cycle;
use super::reason::NodeRebootReason;
use super::request::withdraw_patch;
use super::types::copy_phase_times;
use crate::reboot::{ObservedNode, RebootPhase, RebootRecord, find_waiting_condition};
use crate::time::SCHEDULE_CLOCK_CHECK_INTERVAL;

/// The Node is asked, and nothing has begun.
pub(super) fn follow_waiting(
    case: RebootCase<'_>,
    attempt: &RebootAttemptStatus,
) -> NodeRebootStep {
    if let Some((reason, text)) = ending::find_withdrawal(case) {
        return withdraw_request(case, &format!("takes the request back: {reason}: {text}"));
    }
    if let Some(step) = check_host(case, attempt) {
        return step;
    }
    let reason = NodeRebootReason::WaitingForLock;
    // A power cycle that was stopped begins anew with the next record.
    let attempt = RebootAttemptStatus {
        power: None,
        ..attempt.clone()
    };
    let step = NodeRebootStep::new(case.own, NextStep::Wait, reason, waiting_message(case.node))
        .with_phase(NodeRebootPhase::Waiting)
        .with_attempt(attempt);
    match ending::waiting_deadline(case) {
        Some(deadline) => {
            let now = case.now;
            let at = now.recheck_time_of(deadline, SCHEDULE_CLOCK_CHECK_INTERVAL);
            step.with_wake(at, "the deadline")
        }
        None => step,
    }
}

/// No drain begins for a host that cannot be switched: the request is taken back until it can. The
/// status says first that nothing is asked, so that a request that is gone is not taken for one
/// that somebody removed.
fn check_host(case: RebootCase<'_>, attempt: &RebootAttemptStatus) -> Option<NodeRebootStep> {
    if attempt.method != RebootMethod::PowerCycle {
        return None;
    }
    let obstacle = host_check::find_reason_to_withdraw(case)?;
    let mut step = obstacle.into_wait(case);
    if let (NextStep::Wait, Some(patch)) = (
        &step.next,
        withdraw_patch(case.node, case.own, &case.seen.others),
    ) {
        step.next = NextStep::Patch(patch);
        step = step.with_phase(NodeRebootPhase::Pending);
    }
    Some(step)
}

/// Takes the request back. While another reboot is under way, the Node is left alone.
pub(super) fn withdraw_request(case: RebootCase<'_>, text: &str) -> NodeRebootStep {
    let others = &case.seen.others;
    let reason = NodeRebootReason::Withdrawing;
    let next = match withdraw_patch(case.node, case.own, others) {
        Some(patch) if can_withdraw(case.node) => NextStep::Patch(patch),
        Some(_) | None => NextStep::Wait,
    };
    NodeRebootStep::new(case.own, next, reason, text)
}

/// Before anything has begun. Withdrawing is also how a hold ends, even while it drains.
pub(super) fn can_withdraw(node: &ObservedNode) -> bool {
    let begun = begun_record(node);
    begun.is_none_or(|record| record.trigger.method == RebootMethod::Hold)
}

/// Why the node waits, in its own words.
fn waiting_message(node: &ObservedNode) -> String {
    match find_waiting_condition(node).filter(|planned| !planned.message.is_empty()) {
        Some(planned) if node.record.get().is_some() => planned.message.clone(),
        _ => "the Node is asked; its coordinator takes it up".into(),
    }
}

/// The record serves the attempt.
pub(super) fn follow_record(
    case: RebootCase<'_>,
    attempt: &RebootAttemptStatus,
    record: &RebootRecord,
) -> NodeRebootStep {
    let (phase, reason) = mirrored_phase(record.phase);
    let mut attempt = attempt.clone();
    attempt.boot_id_before = Some(record.boot_id.to_string());
    copy_phase_times(&mut attempt, &record.began);
    let is_asked = withdraw_patch(case.node, case.own, &case.seen.others).is_some();
    let step = if attempt.method == RebootMethod::Hold {
        match ending::find_withdrawal(case) {
            Some((reason, text)) if is_asked => {
                withdraw_request(case, &format!("ends the hold: {reason}: {text}"))
            }
            // The node stays held for others, who are listed in the request.
            Some(_) if case.node.request.get().is_some_and(asking::is_hold_request) => {
                let text = "this hold is over; the node stays held for others";
                return ending::end_with(case.own, NodeRebootReason::Released, text, case.now);
            }
            Some(_) => {
                let text = "the hold is over; the node returns into service";
                let reason = NodeRebootReason::ReturningNode;
                NodeRebootStep::new(case.own, NextStep::Wait, reason, text)
            }
            None => follow_phase(case, reason, record),
        }
    } else if is_power_cycle_due(record) {
        // It keeps the power cycle's times in the attempt itself.
        return power_cycle::follow_power_cycle(case, &attempt).with_phase(phase);
    } else {
        follow_phase(case, reason, record)
    };
    step.with_phase(phase).with_attempt(attempt)
}

/// The node is drained for a power cycle.
fn is_power_cycle_due(record: &RebootRecord) -> bool {
    record.phase == RebootPhase::Rebooting && record.trigger.method == RebootMethod::PowerCycle
}

fn follow_phase(
    case: RebootCase<'_>,
    reason: NodeRebootReason,
    record: &RebootRecord,
) -> NodeRebootStep {
    let text = match record.message.as_str() {
        "" => format!("the node is in phase {}", record.phase.as_str()),
        text => text.to_owned(),
    };
    NodeRebootStep::new(case.own, NextStep::Wait, reason, text)
}

fn mirrored_phase(phase: RebootPhase) -> (NodeRebootPhase, NodeRebootReason) {
    match phase {
        RebootPhase::Waiting => (NodeRebootPhase::Waiting, NodeRebootReason::WaitingForLock),
        RebootPhase::Draining => (NodeRebootPhase::Draining, NodeRebootReason::DrainingNode),
        RebootPhase::Holding => (NodeRebootPhase::Held, NodeRebootReason::NodeHeld),
        RebootPhase::Rebooting => (NodeRebootPhase::Rebooting, NodeRebootReason::RebootingNode),
        RebootPhase::Returning => (NodeRebootPhase::Returning, NodeRebootReason::ReturningNode),
    }
}
