//! The conditions of a request: the three of medik8s, which Cluster API's callers may read as well,
//! and ours. Source: specification §4.2; the contract of medik8s' node health check.

use super::super::RemediationReason;
use super::super::discovery::REMEDIATION_CONDITION;
use super::super::record::RemediationStep;
use super::PowerRequest;
use super::lifecycle::ended_with;
use super::{RequestStatus, StrategyType};
use crate::condition::{ConditionStatus, DesiredCondition};
use crate::decision::DecisionCause;

pub const PROCESSING: &str = "Processing";
/// The request has ended, with success or without. Absent until then, and if nothing was done.
pub const SUCCEEDED: &str = "Succeeded";
/// Whether the Node will not come back under its name. Always False.
pub const PERMANENT_NODE_DELETION: &str = "PermanentNodeDeletionExpected";

/// The desired conditions. A `False` that was never written before is written as well: `Succeeded`
/// False is what lets a health check go on to its next remediator.
pub(super) fn request_conditions(
    request: &PowerRequest,
    status: &RequestStatus,
    because: &DecisionCause<RemediationReason>,
) -> Vec<DesiredCondition> {
    let observe = |kind, status, reason: RemediationReason, message: &str| DesiredCondition {
        kind,
        status,
        reason: reason.to_string(),
        message: message.to_owned(),
        heartbeat: false,
        shows_reason: false,
    };
    let is_under_way = if is_under_way(status, because) {
        ConditionStatus::True
    } else {
        ConditionStatus::False
    };
    let (why, text) = (because.reason, because.message.as_str());
    let mut all = vec![
        observe(PROCESSING, is_under_way, why, text),
        observe(REMEDIATION_CONDITION, is_under_way, why, text),
        observe(
            PERMANENT_NODE_DELETION,
            ConditionStatus::False,
            RemediationReason::NodeComesBack,
            describe_node_return(request),
        ),
    ];
    if let Some((status, reason)) = succeeded_condition(request, status, because) {
        all.push(observe(SUCCEEDED, status, reason, text));
    }
    all
}

fn is_under_way(status: &RequestStatus, because: &DecisionCause<RemediationReason>) -> bool {
    let is_held = [
        RemediationReason::NodeHealthy,
        RemediationReason::BadRequest,
    ]
    .contains(&because.reason);
    status.ended_at.is_none() && !is_held
}

/// `Succeeded`, if it is decided.
fn succeeded_condition(
    request: &PowerRequest,
    status: &RequestStatus,
    because: &DecisionCause<RemediationReason>,
) -> Option<(ConditionStatus, RemediationReason)> {
    if because.reason == RemediationReason::BadRequest {
        return Some((ConditionStatus::False, because.reason));
    }
    let failed = if request.timed_out {
        RemediationReason::TimedOut
    } else {
        RemediationReason::AttemptsUsedUp
    };
    match ended_with(status)? {
        RemediationStep::NodeReady => Some((ConditionStatus::True, RemediationReason::Remediated)),
        RemediationStep::Withdrawn if request.deleting => None,
        RemediationStep::Withdrawn if !request.timed_out => {
            Some((ConditionStatus::False, RemediationReason::NodeHealthy))
        }
        RemediationStep::Withdrawn | RemediationStep::Failed => {
            Some((ConditionStatus::False, failed))
        }
        RemediationStep::Requested
        | RemediationStep::KeyAdded
        | RemediationStep::OffProved
        | RemediationStep::Released
        | RemediationStep::KeyRemoved
        | RemediationStep::PoweredOn => None,
    }
}

fn describe_node_return(request: &PowerRequest) -> &'static str {
    match request.strategy.as_ref().map(|strategy| strategy.kind) {
        Ok(StrategyType::DeleteNode) => "the Node is deleted, and registers again",
        Ok(StrategyType::OutOfServiceTaint) | Err(_) => "the Node stays",
    }
}
