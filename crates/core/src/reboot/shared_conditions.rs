//! The conditions that other tools write on the same Node. One that stands with a reason that is
//! not ours is left as it is. Source: specification §10.6; KEP-5683, whose types have no owner and
//! whose reasons tell the writers apart.

use crate::condition::CurrentCondition;

use super::RebootReason;
use super::snapshot::ObservedNode;

/// Whether somebody else has set the condition. One that is `False` is cleared: anybody may use it.
pub(crate) fn is_condition_of_other(condition: &CurrentCondition) -> bool {
    condition.status == "True" && RebootReason::parse(&condition.reason).is_none()
}

pub(super) fn is_set_by_other(node: &ObservedNode, kind: &str) -> bool {
    let mut conditions = node.conditions.iter();
    conditions.any(|one| one.kind == kind && is_condition_of_other(one))
}
