//! Phase `holding`: the node is cordoned and drained, the lock is held, and nothing else happens
//! until the request for the hold is withdrawn. Source: specification §10.1.

use super::record::{RebootPhase, RebootRecord, RebootTrigger};
use super::snapshot::ObservedDrain;
use super::step::RebootStep;
use super::undo::{self, OwnLockState};
use super::{RebootContext, RebootReason, draining, idle, triggers};

/// Writes that the node is held; from then on somebody may work on the machine.
pub(super) fn begin_hold(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    drain: &ObservedDrain,
    text: String,
) -> RebootStep {
    let record = RebootRecord {
        phase: RebootPhase::Holding,
        since: ctx.now.wall,
        message: text,
        budgets: draining::collect_budgets(record, drain),
        ..record.clone()
    };
    held_step(ctx, &record).with_record_patch(ctx, record)
}

/// Whatever happens to cordon and lock, the hold stays: somebody may work on the machine.
pub(super) fn decide_holding_phase(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    undo::keep_lock_observed(ctx, decide_hold(ctx, record))
}

fn decide_hold(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    let lock = undo::own_lock_state(ctx);
    if let Some(OwnLockState::OlderRun(lease)) = &lock {
        return undo::adopt_lease(ctx, lease);
    }
    if !triggers::is_still_wanted(ctx, record) {
        return end_hold(ctx, record);
    }
    let text = describe_hold(&record.trigger);
    if !ctx.node.unschedulable {
        return report_uncordoned(ctx, record, &text);
    }
    if matches!(lock, Some(OwnLockState::Lost)) {
        let text =
            format!("{text}; but this node no longer holds the lock: others may go out of service");
        return RebootStep::new(RebootReason::LockLost, text).with_warning_event();
    }
    held_step(ctx, record)
}

fn held_step(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    let hold = describe_hold(&record.trigger);
    let text = format!("{hold}; to end it: dogwatch release {}", ctx.node.name);
    RebootStep::new(RebootReason::Held, text)
}

fn report_uncordoned(ctx: &RebootContext<'_>, record: &RebootRecord, text: &str) -> RebootStep {
    let text = format!(
        "{text}; but somebody uncordoned the node, so pods may run on it: cordon it again, or run \
         dogwatch release {}",
        ctx.node.name
    );
    let step = RebootStep::new(RebootReason::UncordonedByOther, text).with_warning_event();
    undo::disown_removed_cordon(ctx, record, step)
}

/// The request is gone: the node goes back into service as after a boot.
pub(super) fn end_hold(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    let text = "the hold was withdrawn; the node goes back into service";
    let record = RebootRecord {
        phase: RebootPhase::Returning,
        since: ctx.now.wall,
        message: text.into(),
        ..record.clone()
    };
    RebootStep::new(RebootReason::HoldEnded, text).with_record_patch(ctx, record)
}

/// For whom, and why: "held for ann: new memory".
pub(crate) fn describe_hold(trigger: &RebootTrigger) -> String {
    let who = match trigger.requester.as_deref().map(str::trim) {
        None | Some("") => "somebody",
        Some(who) => who,
    };
    format!("held for {who}: {}", idle::first_line(&trigger.reason))
}
