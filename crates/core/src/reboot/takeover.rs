//! The steps of a coordinator, taken by the healer when the coordinator gave no sign.
//!
//! [`crate::healer`] decides which step is taken, and when; each step writes what the coordinator
//! would write. Source: specification §2.4 and §2.5.

use super::config::RebootConfig;
use super::record::{ParsedAnnotation, RebootPhase};
use super::snapshot::{OwnNodeState, RebootSnapshot};
use super::step::RebootStep;
use super::{RebootContext, RebootDecision, RebootReason, abort, holding, returning, undo};
use crate::Now;
use crate::policy;

/// A step that the healer takes as the record's own coordinator would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TakeoverStep {
    /// Another boot was seen, or a hold has ended: bring the node back into service.
    Return,
    /// Back to waiting: remove our cordon and queue again after a pause. This write also makes a
    /// write fail that a coordinator may still have under way.
    Undo,
    /// Release the lock; the record stays.
    Release,
    /// A person asked for it: undo, release, remove the record.
    Abort,
    /// Only update conditions and Events.
    Report,
}

/// The decision that the node's coordinator would make now. `why` and `text` are used where the
/// step has no more specific reason. `None`: there is no Node, boot id or record to decide about.
pub(crate) fn decide_on_behalf(
    seen: &RebootSnapshot,
    flags: &RebootConfig,
    now: Now,
    way: &TakeoverStep,
    why: RebootReason,
    text: String,
) -> Option<RebootDecision> {
    let OwnNodeState::There(node) = &seen.node else {
        return None;
    };
    let rule = policy::resolve_policy(&seen.policies, &node.labels, flags);
    let ctx = RebootContext {
        seen,
        node,
        boot: seen.host.boot_id.as_ref().ok()?,
        config: &rule.config,
        rule: &rule,
        now,
    };
    Some(build_takeover_step(&ctx, way, why, text)?.into_reported_decision(&ctx))
}

fn build_takeover_step(
    ctx: &RebootContext<'_>,
    way: &TakeoverStep,
    why: RebootReason,
    text: String,
) -> Option<RebootStep> {
    let record = match &ctx.node.record {
        ParsedAnnotation::Is(record) => record,
        ParsedAnnotation::Absent | ParsedAnnotation::Bad { .. } => {
            return Some(RebootStep::new(why, text));
        }
    };
    Some(match way {
        TakeoverStep::Return => match record.phase {
            RebootPhase::Waiting | RebootPhase::Draining | RebootPhase::Rebooting => {
                returning::begin_return(ctx, record)
            }
            RebootPhase::Holding => holding::end_hold(ctx, record),
            RebootPhase::Returning => returning::decide_returning_phase(ctx, record),
        },
        TakeoverStep::Undo => undo::undo_and_back_off(ctx, record, why, text),
        TakeoverStep::Release => undo::release_lock_first(ctx, why, &text)?,
        TakeoverStep::Abort => abort::decide_abort(ctx, record),
        TakeoverStep::Report => RebootStep::new(why, text),
    })
}
