//! Stops the reboot under way for a person (`dogwatch abort`): undo, release, remove the record.
//! Its triggers count as served, or the reboot would begin again at once. Source: specification
//! §2.4.

use super::action::{NodePatch, RebootAction};
use super::record::{AbortRequest, ParsedAnnotation, RebootOutcome, RebootPhase, RebootRecord};
use super::step::{RebootStep, build_record_patch};
use super::{RebootContext, RebootReason, triggers, undo};

pub(super) fn decide_abort(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    let text = describe_abort(&ctx.node.abort);
    // A request to keep the node cordoned after the boot outranks the abort, and so does a
    // quarantine.
    let was_out = match record.phase {
        RebootPhase::Holding | RebootPhase::Returning => true,
        RebootPhase::Waiting | RebootPhase::Draining | RebootPhase::Rebooting => false,
    };
    let kept = ctx.node.quarantined || was_out && ctx.node.keep_cordoned;
    if record.cordoned_by_us && !kept {
        let record = RebootRecord {
            cordoned_by_us: false,
            message: text.clone(),
            ..record.clone()
        };
        let patch = NodePatch {
            unschedulable: undo::uncordon_change(ctx),
            ..build_record_patch(ctx, record)
        };
        let step = RebootStep::new(RebootReason::Aborted, text).with_warning_event();
        return undo::keep_lock_observed(
            ctx,
            step.with_action(RebootAction::PatchNode(Box::new(patch))),
        );
    }
    if let Some(step) = undo::release_lock_first(ctx, RebootReason::Aborted, &text) {
        return step;
    }
    let outcome = match record.phase {
        RebootPhase::Holding | RebootPhase::Returning => record.outcome_of_return(),
        RebootPhase::Waiting | RebootPhase::Draining | RebootPhase::Rebooting => {
            RebootOutcome::Aborted
        }
    };
    let was_said = record.message == text;
    let record = RebootRecord {
        serves: triggers::collect_served_triggers(ctx, record),
        ..record.clone()
    };
    let patch = NodePatch {
        remove_abort: true,
        remove_request: is_request_due(ctx),
        ..undo::build_finish_patch(ctx, &record, outcome)
    };
    let step = RebootStep::new(RebootReason::Aborted, text);
    // Repeats the Event of the uncordon, if there was one, with the same severity: another severity
    // would make it another Event.
    let step = if was_said {
        step.with_warning_event()
    } else {
        step.with_normal_event()
    };
    step.with_action(RebootAction::PatchNode(Box::new(patch)))
}

/// A request that is due would start a reboot again at once, so the abort removes it. A request for
/// later is not part of what was stopped.
fn is_request_due(ctx: &RebootContext<'_>) -> bool {
    let request = ctx.node.request.get();
    request.is_some_and(|request| request.not_before.is_none_or(|at| at <= ctx.now.wall))
}

fn describe_abort(abort: &ParsedAnnotation<AbortRequest>) -> String {
    let Some(abort) = abort.get() else {
        return "stopped by annotation dogwatch.dev/abort-requested".into();
    };
    let who = match abort.requester.trim() {
        "" => "somebody",
        who => who,
    };
    let why = super::idle::first_line(&abort.reason);
    format!("stopped by {who}: {why}")
}
