//! A node that is being fenced: annotation `dogwatch.dev/fencing`. Source: specification §4.4.
//!
//! The remediator writes it before it holds the host off. A coordinator whose node is dead decides
//! nothing any more; this is for one that is not: it begins nothing on a machine whose power is about
//! to be cut, and leaves cordon, record and lock as they are, for they say what the node is out for.
//! Once the annotation is gone it goes on. A node that has booted anew is on its way back, whoever
//! booted it.

use super::record::{Phase, Record};
use super::step::Step;
use super::{Context, reason, undo};

/// Why the lock is not even asked for.
pub(super) fn no_leave(ctx: &Context<'_>) -> Option<Step> {
    let text = "the remediator has this machine in hand; asks for the lock when that is over";
    ctx.node
        .fenced
        .then(|| Step::new(reason::BEING_FENCED, text))
}

/// What is left of a phase that was begun before.
pub(super) fn hold(ctx: &Context<'_>, record: &Record) -> Option<Step> {
    let text = match record.phase {
        // By `no_leave`: what was won is given back.
        Phase::Waiting | Phase::Returning => return None,
        Phase::Draining => {
            "the remediator has this machine in hand: nothing more is evicted; cordon and lock stay, \
             and the drain goes on when that is over"
        }
        Phase::Rebooting => {
            "the remediator has this machine in hand: no reboot command is started; cordon and lock \
             stay, and a new boot is waited for"
        }
    };
    let step = || Step::new(reason::BEING_FENCED, text).warn();
    ctx.node.fenced.then(|| undo::watch_lock(ctx, step()))
}
