//! The same steps, taken by the healer in the place of a coordinator that gave no sign.
//!
//! Which of them, and when, is decided in [`crate::heal`]; what each one writes is what the
//! coordinator would write. Source: specification §2.4 and §2.5.

use super::record::{Parsed, Phase};
use super::seen::{Config, NodeFact, Seen};
use super::step::Step;
use super::{Context, Decision, abort, returning, undo};
use crate::Now;
use crate::policy;

/// A way on that the record's own coordinator would take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Instead {
    /// Another boot was seen: back into service.
    Return,
    /// Back to waiting: uncordon what is ours, queue again after a pause. It also is what makes a
    /// write fail that a coordinator may still have under way.
    Undo,
    /// The lock goes, the record stays.
    Release,
    /// A person's word: undo, release, forget.
    Abort,
    /// Nothing; only what a person should see.
    Tell,
}

/// The decision that its coordinator would make now, for `why` and with `text` where the step has
/// no better words. `None`: there is no Node, boot id or record to decide about.
pub(crate) fn decide_instead(
    seen: &Seen,
    flags: &Config,
    now: Now,
    way: &Instead,
    why: &'static str,
    text: String,
) -> Option<Decision> {
    let NodeFact::There(node) = &seen.node else {
        return None;
    };
    let rule = policy::rule(&seen.policies, &node.labels, flags);
    let ctx = Context {
        seen,
        node,
        boot: seen.host.boot_id.as_ref().ok()?,
        config: &rule.config,
        rule: &rule,
        now,
    };
    Some(step_of(&ctx, way, why, text)?.finish(&ctx))
}

fn step_of(ctx: &Context<'_>, way: &Instead, why: &'static str, text: String) -> Option<Step> {
    let record = match &ctx.node.record {
        Parsed::Is(record) => record,
        Parsed::Absent | Parsed::Bad { .. } => return Some(Step::new(why, text)),
    };
    Some(match way {
        Instead::Return if record.phase < Phase::Returning => returning::begin(ctx, record),
        Instead::Return => returning::step(ctx, record),
        Instead::Undo => undo::undo(ctx, record, why, text),
        Instead::Release => undo::release_first(ctx, why, &text)?,
        Instead::Abort => abort::step(ctx, record),
        Instead::Tell => Step::new(why, text),
    })
}
