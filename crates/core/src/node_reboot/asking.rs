//! Whether the Node may be asked now; begins an attempt, and asks.

use dogwatch_api::annotation;
use dogwatch_api::node_reboot::{NodeRebootPhase, RebootAttemptStatus, RebootMethod};

use super::attempt::{RebootCase, begun_record};
use super::decide::{NextStep, NodeRebootStep};
use super::ending;
use super::host_check;
use super::reason::NodeRebootReason;
use super::request::ask_patch;
use super::types::{ObservedNodeReboot, begin_attempt};
use crate::reboot::{ParsedAnnotation, RebootRequest};
use crate::time::{SCHEDULE_CLOCK_CHECK_INTERVAL, truncate_to_micros};

/// How many NodeReboots one reboot serves at most: their names are in annotations of the Node.
const MAX_JOINED: usize = 100;

/// No attempt is open.
pub(super) fn decide_next_attempt(case: RebootCase<'_>) -> NodeRebootStep {
    let (own, plan, now) = (case.own, case.plan, case.now);
    if let Some((reason, text)) = ending::find_withdrawal(case) {
        return ending::end_with(own, reason, text, now);
    }
    let Some(method) = plan.method_of_attempt(own.status.attempts.len()) else {
        let text = "no method is left";
        return ending::end_with(own, NodeRebootReason::SuccessNotReached, text, now);
    };
    if let Some(step) = check_not_before(case) {
        return step;
    }
    let check = || host_check::check_before_asking(case, method);
    if let Some(step) = host_check::check_later_attempts(case).or_else(check) {
        return wait_until_deadline(case, accept_node(case, step));
    }
    if let Some(step) = find_obstacle(case) {
        return wait_until_deadline(case, step);
    }
    let text = format!("asks Node {} for method {}", plan.node, method.as_str());
    let reason = NodeRebootReason::AskingNode;
    if own.has_finalizer && !is_node_read(case) {
        // A boot that the watch does not show yet would count as the one that was asked for.
        return NodeRebootStep::read_node(case.seen, reason, text, now);
    }
    let boot_id = case.node.boot_id.as_ref().map(ToString::to_string);
    let attempt = begin_attempt(method, truncate_to_micros(now.wall), boot_id);
    let step = NodeRebootStep::new(own, NextStep::Start, reason, text);
    let mut step = accept_node(case, step.with_phase(NodeRebootPhase::Pending));
    step.status.attempts.push(attempt);
    step
}

/// The attempt is in the status: the Node is asked, unless something has come between.
pub(super) fn ask_node(case: RebootCase<'_>, attempt: &RebootAttemptStatus) -> NodeRebootStep {
    if let Some(step) = find_obstacle(case) {
        return wait_until_deadline(case, step);
    }
    if let Some(step) = host_check::check_before_asking(case, attempt.method) {
        return wait_until_deadline(case, require_fresh_node(case, step));
    }
    let (own, plan) = (case.own, case.plan);
    let patch = ask_patch(case.node, own, plan, attempt.method);
    let method = attempt.method.as_str();
    let text = format!("asks Node {} for method {method}", plan.node);
    let reason = NodeRebootReason::AskingNode;
    NodeRebootStep::new(own, NextStep::Patch(patch), reason, text)
}

/// The watch shows nothing of the attempt, and it may be behind: an end needs a fresh read.
fn require_fresh_node(case: RebootCase<'_>, step: NodeRebootStep) -> NodeRebootStep {
    if is_node_read(case) || !matches!(step.next, NextStep::End) {
        return step;
    }
    let (reason, text) = (step.cause.reason, step.cause.message);
    NodeRebootStep::read_node(case.seen, reason, text, case.now)
}

fn is_node_read(case: RebootCase<'_>) -> bool {
    let read = case.seen.fresh_read(case.now);
    read.is_some_and(|read| read.node.is_ok())
}

/// Remembers which Node it is about.
fn accept_node(case: RebootCase<'_>, mut step: NodeRebootStep) -> NodeRebootStep {
    step.status.node_uid = Some(case.node.uid.clone());
    step
}

fn check_not_before(case: RebootCase<'_>) -> Option<NodeRebootStep> {
    let not_before = case.plan.not_before?;
    if not_before <= case.now.wall {
        return None;
    }
    let text = format!("waits until {not_before}");
    let at = case
        .now
        .recheck_time_of(not_before, SCHEDULE_CLOCK_CHECK_INTERVAL);
    let reason = NodeRebootReason::NotBefore;
    let step = NodeRebootStep::new(case.own, NextStep::Wait, reason, text);
    Some(accept_node(case, step.with_wake(at, "notBefore")))
}

/// What keeps the Node from being asked now.
fn find_obstacle(case: RebootCase<'_>) -> Option<NodeRebootStep> {
    let wait = |reason, text: String| {
        let step = NodeRebootStep::new(case.own, NextStep::Wait, reason, text);
        Some(accept_node(case, step))
    };
    if let Some((name, why)) = unreadable_annotation(case) {
        let text = format!("annotation {name} of the Node cannot be parsed: {why}");
        return wait(NodeRebootReason::AnnotationUnreadable, text);
    }
    if begun_record(case.node).is_some() {
        let text = "another reboot of the node is under way; this one is served afterwards";
        return wait(NodeRebootReason::RebootUnderWay, text.into());
    }
    if let Some(older) = older_of_other_kind(case) {
        let text = format!("NodeReboot {} of the same node comes first", older.name);
        return wait(NodeRebootReason::OlderFirst, text);
    }
    let request = case.node.request.get()?;
    if is_hold_request(request) != case.plan.is_hold() {
        let text = format!(
            "the Node is asked for method {} already; this one is served afterwards",
            request.method.as_str()
        );
        return wait(NodeRebootReason::OlderFirst, text);
    }
    if request.node_reboots.len() >= MAX_JOINED {
        let text = format!("{MAX_JOINED} NodeReboots wait for the next reboot already");
        return wait(NodeRebootReason::RebootUnderWay, text);
    }
    let later = request.not_before.filter(|at| *at > case.now.wall)?;
    let text = format!("a request on the Node is not to be served before {later}");
    let at = case
        .now
        .recheck_time_of(later, SCHEDULE_CLOCK_CHECK_INTERVAL);
    let step = wait(NodeRebootReason::RequestForLater, text)?;
    Some(step.with_wake(at, "the time of the request on the Node"))
}

fn unreadable_annotation(case: RebootCase<'_>) -> Option<(&str, &str)> {
    if let ParsedAnnotation::Bad { why } = &case.node.record {
        return Some((annotation::REBOOT, why));
    }
    match &case.node.request {
        ParsedAnnotation::Bad { why } => Some((annotation::REBOOT_REQUESTED, why)),
        ParsedAnnotation::Absent | ParsedAnnotation::Is(_) => None,
    }
}

pub(super) fn is_hold_request(request: &RebootRequest) -> bool {
    request.method == RebootMethod::Hold
}

/// The oldest unfinished NodeReboot of the node that cannot be joined with this one and is older.
fn older_of_other_kind(case: RebootCase<'_>) -> Option<&ObservedNodeReboot> {
    let age = |one: &ObservedNodeReboot| (one.created, one.name.clone());
    let others = case.seen.others.iter().map(|other| &**other);
    let before = others.filter(|other| is_in_turn(other, case) && age(other) < age(case.own));
    before.min_by_key(|other| age(other))
}

/// Whether another NodeReboot that is not joined with this one wants the node now.
fn is_in_turn(other: &ObservedNodeReboot, case: RebootCase<'_>) -> bool {
    let Ok(plan) = &other.plan else {
        return false;
    };
    let is_open = if let Some(attempt) = other.open_attempt() {
        attempt.finished_at.is_none()
    } else {
        let is_due = plan.not_before.is_none_or(|at| at <= case.now.wall);
        is_due && !plan.cancel && !other.deleting
    };
    is_open && !other.is_final() && plan.is_hold() != case.plan.is_hold()
}

/// A wait ends at the deadline.
fn wait_until_deadline(case: RebootCase<'_>, step: NodeRebootStep) -> NodeRebootStep {
    match ending::waiting_deadline(case) {
        Some(deadline) => {
            let at = case
                .now
                .recheck_time_of(deadline, SCHEDULE_CLOCK_CHECK_INTERVAL);
            step.with_wake(at, "the deadline")
        }
        None => step,
    }
}
