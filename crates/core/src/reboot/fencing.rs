//! A node that is being fenced: annotation `dogwatch.dev/fencing`. Source: specification §4.4.
//!
//! The remediator writes the annotation before it holds the host off. This code is for a
//! coordinator that still runs at that time. It begins nothing on a machine whose power is about to
//! be cut, and keeps cordon, record and lock, because they say why the node is out of service. When
//! the annotation is gone, the reboot goes on. A node with a new boot id continues its return,
//! whoever booted it.

use super::record::{RebootPhase, RebootRecord};
use super::step::RebootStep;
use super::{RebootContext, RebootReason, undo};

/// Why the node does not bid for the lock.
pub(super) fn refuse_if_fenced(ctx: &RebootContext<'_>) -> Option<RebootStep> {
    let text = "the remediator is fencing this machine; asks for the lock after that";
    ctx.node
        .being_fenced
        .then(|| RebootStep::new(RebootReason::BeingFenced, text))
}

/// Pauses a phase that began before the fencing.
pub(super) fn hold_while_fenced(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
) -> Option<RebootStep> {
    let text = match record.phase {
        // A waiting node does not bid: see `refuse_if_fenced`. A lock that it won is given back.
        RebootPhase::Waiting | RebootPhase::Returning => return None,
        RebootPhase::Draining => {
            "the remediator is fencing this machine: no more pods are evicted; cordon and lock \
             stay, and the drain continues after that"
        }
        RebootPhase::Holding => {
            "the remediator is fencing this machine; cordon and lock stay, and the hold continues \
             after that"
        }
        RebootPhase::Rebooting => {
            "the remediator is fencing this machine: no reboot command is started; cordon and \
             lock stay until the machine has a new boot"
        }
    };
    if !ctx.node.being_fenced {
        return None;
    }
    let step = RebootStep::new(RebootReason::BeingFenced, text).with_warning_event();
    let step = undo::disown_removed_cordon(ctx, record, step);
    Some(undo::keep_lock_observed(ctx, step))
}
