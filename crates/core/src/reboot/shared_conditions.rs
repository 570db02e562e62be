//! The conditions that other tools write on the same Node. One that stands with a reason that is
//! not ours is left as it is. Source: specification §10.6; KEP-5683, whose types have no owner and
//! whose reasons tell the writers apart.

use dogwatch_api::condition::MAINTENANCE_PLANNED;

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

/// The condition in which the coordinator says why the node waits: `MaintenancePlanned`, whatever
/// its status. It is `True` only while the reboot is near; older coordinators set it for as long as
/// the node waits. `None`: it still tells how the last reboot ended, or another tool has set it.
pub(crate) fn find_waiting_condition(node: &ObservedNode) -> Option<&CurrentCondition> {
    let mut conditions = node.conditions.iter();
    let planned = conditions.find(|one| one.kind == MAINTENANCE_PLANNED)?;
    let reason = RebootReason::parse(&planned.reason)?;
    (!is_reason_of_idle_node(reason)).then_some(planned)
}

/// The reasons that the conditions have while no reboot is under way.
fn is_reason_of_idle_node(reason: RebootReason) -> bool {
    matches!(
        reason,
        RebootReason::NoRebootWanted
            | RebootReason::Rebooted
            | RebootReason::TriggerGone
            | RebootReason::Aborted
            | RebootReason::Released
    )
}
