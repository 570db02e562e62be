//! Conditions and Events of a `NodeReboot`.

use dogwatch_api::node_reboot::condition;

use super::decide::is_success;
use super::reason::NodeRebootReason;
use super::types::{NodeRebootState, ObservedNodeReboot};
use crate::Now;
use crate::condition::{ConditionStatus as Is, DesiredCondition, are_conditions_standing};
use crate::decision::{DecisionCause, DecisionEvent, DecisionReport, EventSeverity};
use crate::reported_events::is_recent_news;

type NodeRebootCause = DecisionCause<NodeRebootReason>;

/// A request that has had an attempt was accepted, whatever comes of the next one.
pub(super) fn build_report(
    cause: &NodeRebootCause,
    is_end: bool,
    is_begun: bool,
) -> DecisionReport {
    let (progressing, succeeded) = match is_end {
        false => (Is::True, Is::Unknown),
        true if is_success(cause.reason) => (Is::False, Is::True),
        true => (Is::False, Is::False),
    };
    let accepted = if is_end && !is_begun && is_refusal(cause.reason) {
        build_condition(condition::ACCEPTED, Is::False, cause)
    } else {
        let accepted = DecisionCause::new(NodeRebootReason::Accepted, String::new());
        build_condition(condition::ACCEPTED, Is::True, &accepted)
    };
    DecisionReport {
        conditions: vec![
            accepted,
            build_condition(condition::PROGRESSING, progressing, cause),
            build_condition(condition::SUCCEEDED, succeeded, cause),
        ],
        events: Vec::new(),
    }
}

/// The end was written; its Event follows. The conditions stay as they are.
pub(super) fn build_final_report(
    own: &ObservedNodeReboot,
    cause: &NodeRebootCause,
    now: Now,
) -> DecisionReport {
    let ended = own
        .final_condition()
        .and_then(|ended| ended.last_transition);
    let is_news = ended.is_some_and(|at| is_recent_news(at, now));
    let is_normal = is_success(cause.reason) || cause.reason == NodeRebootReason::Cancelled;
    let severity = if is_normal {
        EventSeverity::Normal
    } else {
        EventSeverity::Warning
    };
    let event = DecisionEvent {
        severity,
        reason: cause.reason.as_str(),
        message: cause.message.clone(),
    };
    DecisionReport {
        conditions: Vec::new(),
        events: is_news.then_some(event).into_iter().collect(),
    }
}

/// Reasons for which a request is refused before anything begins.
fn is_refusal(reason: NodeRebootReason) -> bool {
    matches!(
        reason,
        NodeRebootReason::InvalidSpec
            | NodeRebootReason::NodeNotFound
            | NodeRebootReason::OtherNodeUid
            | NodeRebootReason::PowerNotControlled
            | NodeRebootReason::NoHostKnown
            | NodeRebootReason::HostContradicted
            | NodeRebootReason::HostAlwaysOn
            | NodeRebootReason::OtherMachine
    )
}

fn build_condition(kind: &'static str, status: Is, cause: &NodeRebootCause) -> DesiredCondition {
    DesiredCondition {
        kind,
        status,
        reason: cause.reason.as_str().to_owned(),
        message: cause.message.clone(),
        heartbeat: false,
        shows_reason: false,
    }
}

pub(super) fn has_status_changed(
    standing: &NodeRebootState,
    wanted: &NodeRebootState,
    report: &DecisionReport,
) -> bool {
    standing != wanted || !are_conditions_standing(&standing.conditions, &report.conditions)
}
