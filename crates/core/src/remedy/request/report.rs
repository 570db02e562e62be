//! The conditions of a request: medik8s' three, which Cluster API's callers may read as well, and ours.
//! Source: specification §4.2; the contract of medik8s' node health check.

use super::super::cases::CONDITION;
use super::super::reason;
use super::super::record::Step;
use super::PowerRequest;
use super::course::ended_with;
use super::{RequestStatus, StrategyType};
use crate::condition::{Observation, Status};
use crate::decision::Because;

/// It is being worked on.
pub const PROCESSING: &str = "Processing";
/// It is done, well or not. Absent: neither yet, or nothing was done.
pub const SUCCEEDED: &str = "Succeeded";
/// Whether the Node comes back under its name: it does.
pub const NODE_DELETION: &str = "PermanentNodeDeletionExpected";

/// How they should stand. A `False` that was never there has to be written as well: `Succeeded` False is what
/// lets a health check go on to its next remediator.
pub(super) fn conditions(
    request: &PowerRequest,
    status: &RequestStatus,
    because: &Because,
) -> Vec<Observation> {
    let observe = |kind, status, reason: &str, message: &str| Observation {
        kind,
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
        heartbeat: false,
    };
    let is_under_way = if is_under_way(status, because) {
        Status::True
    } else {
        Status::False
    };
    let (why, text) = (because.reason, because.message.as_str());
    let mut all = vec![
        observe(PROCESSING, is_under_way, why, text),
        observe(CONDITION, is_under_way, why, text),
        observe(
            NODE_DELETION,
            Status::False,
            reason::NODE_COMES_BACK,
            comes_back(request),
        ),
    ];
    if let Some((status, reason)) = outcome(request, status, because) {
        all.push(observe(SUCCEEDED, status, reason, text));
    }
    all
}

fn is_under_way(status: &RequestStatus, because: &Because) -> bool {
    let is_held = [reason::NODE_HEALTHY, reason::BAD_REQUEST].contains(&because.reason);
    status.ended_at.is_none() && !is_held
}

/// `Succeeded`, if it is decided.
fn outcome(
    request: &PowerRequest,
    status: &RequestStatus,
    because: &Because,
) -> Option<(Status, &'static str)> {
    if because.reason == reason::BAD_REQUEST {
        return Some((Status::False, because.reason));
    }
    let failed = if request.timed_out {
        reason::TIMED_OUT
    } else {
        reason::ATTEMPTS_USED_UP
    };
    match ended_with(status)? {
        Step::NodeReady => Some((Status::True, reason::REMEDIATED)),
        Step::Withdrawn if request.deleting => None,
        Step::Withdrawn if !request.timed_out => Some((Status::False, reason::NODE_HEALTHY)),
        Step::Withdrawn | Step::Failed => Some((Status::False, failed)),
        Step::Requested
        | Step::KeyAdded
        | Step::OffProved
        | Step::Released
        | Step::KeyRemoved
        | Step::PoweredOn => None,
    }
}

fn comes_back(request: &PowerRequest) -> &'static str {
    match request.strategy.as_ref().map(|strategy| strategy.kind) {
        Ok(StrategyType::DeleteNode) => "the Node is deleted, and registers again",
        Ok(StrategyType::OutOfServiceTaint) | Err(_) => "the Node stays",
    }
}
