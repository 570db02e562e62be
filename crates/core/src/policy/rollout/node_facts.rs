//! What a Node says about its own reboot, as a rollout counts it.

use dogwatch_api::node_reboot::RebootMethod;

use jiff::Timestamp;

use crate::name::BootId;
use crate::reboot::{
    COORDINATOR_CONDITIONS, ObservedNode, ParsedAnnotation, RebootOutcome, RebootPhase,
    RebootReason, RebootRecord,
};

/// The kubelet's condition.
const NODE_READY: &str = "Ready";

/// Reasons of a coordinator's conditions that are failures: they last until a person acts.
const FAILED_REASONS: [RebootReason; 3] = [
    RebootReason::RebootFailed,
    RebootReason::ReadyChecksTimedOut,
    RebootReason::ReturnGatesTimedOut,
];

/// A failure that stands on a Node.
pub(super) struct StandingFailure<'a> {
    pub(super) boot_id: &'a BootId,
    /// One word.
    pub(super) reason: String,
}

/// The record of a reboot. A hold boots nothing, so it is no part of a rollout.
pub(super) fn reboot_record(node: &ObservedNode) -> Option<&RebootRecord> {
    let record = node.record.get()?;
    (record.trigger.method != RebootMethod::Hold).then_some(record)
}

pub(super) fn is_waiting(node: &ObservedNode) -> bool {
    reboot_record(node).is_some_and(|record| record.phase == RebootPhase::Waiting)
}

/// Whether the node has begun and is not back yet.
pub(super) fn is_under_way(node: &ObservedNode) -> bool {
    reboot_record(node).is_some_and(|record| record.phase > RebootPhase::Waiting)
}

/// Whether nothing of the rollout is left to do for this node. One that has failed, and one that died
/// while it waited, are left to a person: for weeks, perhaps, and whether they are tried again or not,
/// they must not keep the next wave from beginning with canaries.
pub(super) fn is_at_rest(node: &ObservedNode) -> bool {
    let is_dead = is_waiting(node) && !node.ready;
    let is_left = || is_dead || find_failure(node).is_some();
    !node.api_lock && (reboot_record(node).is_none() || is_left())
}

/// Since when it is not Ready, as the Node says. `None`: it is, or the Node does not say.
pub(super) fn not_ready_since(node: &ObservedNode) -> Option<Timestamp> {
    let mut conditions = node.conditions.iter();
    let ready = conditions.find(|condition| condition.kind == NODE_READY);
    ready.filter(|_| !node.ready)?.last_transition
}

/// Whether the node's last reboot ended this boot, with success.
pub(super) fn has_left_boot(node: &ObservedNode, boot_id: &str) -> bool {
    let last = node.last_reboot.get();
    let is_over = reboot_record(node).is_none_or(|record| record.boot_id.as_str() != boot_id);
    is_over
        && last.is_some_and(|last| {
            last.outcome == RebootOutcome::Rebooted && last.old_boot_id.as_str() == boot_id
        })
}

/// Whether the reboot that is to end this boot is still wanted or under way. An unreadable record
/// may be anything, so it counts.
pub(super) fn has_open_reboot(node: &ObservedNode) -> bool {
    matches!(node.record, ParsedAnnotation::Bad { .. }) || reboot_record(node).is_some()
}

/// The failure that the node shows now.
pub(super) fn find_failure(node: &ObservedNode) -> Option<StandingFailure<'_>> {
    let record = reboot_record(node)?;
    let given_up = (record.failures > 0).then(|| "GivenUp".to_owned());
    let reason = find_condition_failure(node)
        .map(|reason| reason.as_str().to_owned())
        .or(given_up)?;
    Some(StandingFailure {
        boot_id: &record.boot_id,
        reason,
    })
}

/// Whether it has begun and is left to a person.
pub(super) fn has_condition_failure(node: &ObservedNode) -> bool {
    find_condition_failure(node).is_some()
}

/// Where another tool has set `MaintenanceInProgress`, the coordinator reports by another condition.
fn find_condition_failure(node: &ObservedNode) -> Option<RebootReason> {
    if !is_under_way(node) {
        return None;
    }
    let standing = node.conditions.iter().filter(|condition| {
        condition.status == "True" && COORDINATOR_CONDITIONS.contains(&condition.kind.as_str())
    });
    let mut reasons = standing.filter_map(|condition| RebootReason::parse(&condition.reason));
    reasons.find(|reason| FAILED_REASONS.contains(reason))
}
