//! Decides by where the request is: nowhere yet, on the Node, in its record, or in its last reboot.

use dogwatch_api::node_reboot::{NodeRebootPhase, RebootAttemptStatus, RebootMethod};
use jiff::Timestamp;

use super::asking;
use super::decide::{NextStep, NodeRebootStep};
use super::ending;
use super::following;
use super::host_release;
use super::reason::NodeRebootReason;
use super::request::{LateAskBlock, lists_reboot};
use super::snapshot::{NodeRebootSnapshot, RebootNodeRead};
use super::types::{NodeRebootPlan, ObservedNodeReboot};
use crate::Now;
use crate::reboot::{LastReboot, ObservedNode, RebootOutcome, RebootPhase, RebootRecord};
use crate::time::truncate_to_micros;

/// What a decision about an open NodeReboot is made of.
#[derive(Clone, Copy)]
pub(super) struct RebootCase<'a> {
    pub(super) seen: &'a NodeRebootSnapshot,
    pub(super) own: &'a ObservedNodeReboot,
    pub(super) plan: &'a NodeRebootPlan,
    pub(super) node: &'a ObservedNode,
    pub(super) now: Now,
}

/// What the Node shows of the open attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NodeTrace<'a> {
    Nothing,
    /// The Node is asked, and nothing has begun for it.
    Asked,
    /// The record serves it, beyond `waiting`.
    Serving(&'a RebootRecord),
    Ended(&'a LastReboot),
}

pub(super) fn decide_attempt(seen: &NodeRebootSnapshot, now: Now) -> NodeRebootStep {
    if let Some(step) = host_release::release_unwanted_host(seen, now) {
        return step;
    }
    let own = &*seen.own;
    let plan = match &own.plan {
        Ok(plan) => plan,
        Err(problems) => {
            let problems = problems.join("; ");
            return ending::refuse_request(own, NodeRebootReason::InvalidSpec, problems);
        }
    };
    let Some(node) = &seen.node else {
        return decide_without_node(seen, plan, now);
    };
    let case = RebootCase {
        seen,
        own,
        plan,
        node,
        now,
    };
    if let Some(step) = check_node_uid(case) {
        return step;
    }
    match own.open_attempt() {
        None => asking::decide_next_attempt(case),
        Some(attempt) if attempt.finished_at.is_some() => ending::await_success(case, attempt),
        Some(attempt) => decide_open_attempt(case, attempt),
    }
}

fn decide_without_node(
    seen: &NodeRebootSnapshot,
    plan: &NodeRebootPlan,
    now: Now,
) -> NodeRebootStep {
    let node = &plan.node;
    let (reason, text) = match seen.own.status.node_uid {
        None => (
            NodeRebootReason::NodeNotFound,
            format!("there is no Node {node}"),
        ),
        Some(_) => (
            NodeRebootReason::NodeGone,
            format!("Node {node} was deleted"),
        ),
    };
    match seen.fresh_read(now) {
        Some(read) if read.node == Ok(None) => ending::end_with(&seen.own, reason, text, now),
        _ => NodeRebootStep::read_node(seen, reason, text, now),
    }
}

/// The UID that the spec names, and the one that the Node had when the request was accepted.
fn check_node_uid(case: RebootCase<'_>) -> Option<NodeRebootStep> {
    let (own, plan, node) = (case.own, case.plan, case.node);
    let (reason, wanted) = match (&own.status.node_uid, &plan.node_uid) {
        (Some(uid), _) => (NodeRebootReason::NodeGone, uid),
        (None, Some(uid)) => (NodeRebootReason::OtherNodeUid, uid),
        (None, None) => return None,
    };
    if *wanted == node.uid {
        return None;
    }
    let text = format!("Node {} has UID {}, not {wanted}", node.name, node.uid);
    let is_proved = case.seen.fresh_read(case.now).is_some_and(|read| {
        let read = read.node.as_ref().ok().and_then(Option::as_ref);
        read.is_some_and(|read| read.uid == node.uid)
    });
    Some(if is_proved {
        ending::end_with(own, reason, text, case.now)
    } else {
        NodeRebootStep::read_node(case.seen, reason, text, case.now)
    })
}

fn decide_open_attempt(case: RebootCase<'_>, attempt: &RebootAttemptStatus) -> NodeRebootStep {
    match find_trace(case.own, case.node) {
        NodeTrace::Serving(record) => following::follow_record(case, attempt, record),
        NodeTrace::Asked => following::follow_waiting(case, attempt),
        NodeTrace::Ended(last) => ending::take_outcome(case, attempt, last),
        NodeTrace::Nothing => block_late_ask(case, decide_without_trace(case, attempt)),
    }
}

/// Whether the Node shows that it serves nobody who asks now: its reboot command may have been
/// started, its hold is being ended, or it has ended. The status of the NodeReboot tells it later.
pub fn is_past_joining(own: &ObservedNodeReboot, node: &ObservedNode) -> bool {
    match find_trace(own, node) {
        NodeTrace::Nothing | NodeTrace::Asked => false,
        NodeTrace::Serving(record) => {
            let is_hold = record.trigger.method == RebootMethod::Hold;
            record.phase >= RebootPhase::Rebooting || is_hold && !is_asked(own, node)
        }
        NodeTrace::Ended(_) => true,
    }
}

fn find_trace<'a>(own: &ObservedNodeReboot, node: &'a ObservedNode) -> NodeTrace<'a> {
    if let Some(record) = begun_record(node)
        && lists_reboot(&record.trigger.node_reboots, own)
    {
        return NodeTrace::Serving(record);
    }
    if let Some(last) = node.last_reboot.get()
        && lists_reboot(&last.trigger.node_reboots, own)
        && !is_of_earlier_attempt(own, last)
        && !is_of_own_withdrawal(own, node, last)
    {
        return NodeTrace::Ended(last);
    }
    if is_asked(own, node) {
        NodeTrace::Asked
    } else {
        NodeTrace::Nothing
    }
}

fn is_asked(own: &ObservedNodeReboot, node: &ObservedNode) -> bool {
    let request = node.request.get();
    request.is_some_and(|request| lists_reboot(&request.node_reboots, own))
}

/// The record of a reboot that has begun. While it waits, only the request counts: the patch that
/// begins takes over what the request says at that moment.
pub fn begun_record(node: &ObservedNode) -> Option<&RebootRecord> {
    let record = node.record.get();
    record.filter(|record| record.phase != RebootPhase::Waiting)
}

/// The request for a power cycle was taken back until the host can be switched, which the status
/// says since before; or it is asked for again since.
fn is_of_own_withdrawal(own: &ObservedNodeReboot, node: &ObservedNode, last: &LastReboot) -> bool {
    let method = own.open_attempt().map(|attempt| attempt.method);
    last.outcome == RebootOutcome::TriggerGone
        && method == Some(RebootMethod::PowerCycle)
        && (is_asked(own, node) || own.status.phase == NodeRebootPhase::Pending)
}

/// Boot ids are never used twice; of soft reboots in one boot, the time tells them apart.
fn is_of_earlier_attempt(own: &ObservedNodeReboot, last: &LastReboot) -> bool {
    own.earlier_attempts().iter().any(|earlier| {
        earlier.boot_id_before.as_deref() == Some(last.old_boot_id.as_str())
            && earlier.boot_id_after.as_deref() == Some(last.new_boot_id.as_str())
            && (!last.soft || earlier.rebooted_at.map(truncate_to_micros) == soft_rebooted_at(last))
    })
}

fn soft_rebooted_at(last: &LastReboot) -> Option<Timestamp> {
    let at = last.began.get(&RebootPhase::Returning);
    at.copied().map(truncate_to_micros)
}

/// The Node shows nothing: it was never asked, or the trace was overwritten or removed.
fn decide_without_trace(case: RebootCase<'_>, attempt: &RebootAttemptStatus) -> NodeRebootStep {
    if begun_record(case.node).is_some() {
        let text = "another reboot of the node is under way; this one is served afterwards";
        let reason = NodeRebootReason::RebootUnderWay;
        return NodeRebootStep::new(case.own, NextStep::Wait, reason, text);
    }
    let Some(end) = ending::outcome_without_trace(case, attempt) else {
        // The patch relies on the Node's version, so a stale view cannot ask twice.
        return asking::ask_node(case, attempt);
    };
    if let Some(RebootNodeRead { node: Ok(_), .. }) = case.seen.fresh_read(case.now) {
        return end;
    }
    let (reason, text) = (end.cause.reason, end.cause.message);
    NodeRebootStep::read_node(case.seen, reason, text, case.now)
}

/// Before an attempt ends of which the Node shows nothing, makes a request fail that may still be on its
/// way: it would be served although its NodeReboot has ended, or is gone.
fn block_late_ask(case: RebootCase<'_>, step: NodeRebootStep) -> NodeRebootStep {
    let attempt = step.status.attempts.last();
    let is_over = attempt.is_some_and(|attempt| attempt.finished_at.is_some());
    let was_asked = case.own.status.phase > NodeRebootPhase::Pending;
    if !is_over || was_asked || !case.seen.late_ask.may_reach(case.node) {
        return step;
    }
    let block = LateAskBlock::new(case.node, case.own, case.now.wall);
    let text = "makes sure that a request which the Node has not answered does not reach it later";
    let reason = NodeRebootReason::Withdrawing;
    NodeRebootStep::new(case.own, NextStep::BlockLateAsk(block), reason, text)
}
