//! A person wants the reboot under way stopped (`dogwatch abort`): undo, release, forget. What
//! asked for it counts as served, or it would begin anew at once. Source: specification §2.4.

use super::action::{Action, NodePatch};
use super::record::{Abort, Outcome, Parsed, Phase, Record};
use super::step::{Step, set};
use super::{Context, reason, triggers, undo};

pub(super) fn step(ctx: &Context<'_>, record: &Record) -> Step {
    let text = words(&ctx.node.abort);
    // Who asked to keep it cordoned after the boot is not overruled by who is tired of waiting.
    let kept = record.phase == Phase::Returning && ctx.node.keep_cordoned;
    if record.cordoned_by_us && !kept {
        let record = Record {
            cordoned_by_us: false,
            message: text.clone(),
            ..record.clone()
        };
        let patch = NodePatch {
            unschedulable: undo::uncordon(ctx),
            ..set(ctx, record)
        };
        let step = Step::new(reason::ABORTED, text).warn();
        return undo::watch_lock(ctx, step.act(Action::PatchNode(Box::new(patch))));
    }
    if let Some(step) = undo::release_first(ctx, reason::ABORTED, &text) {
        return step;
    }
    let outcome = match record.phase {
        Phase::Returning => Outcome::Rebooted,
        Phase::Waiting | Phase::Draining | Phase::Rebooting => Outcome::Aborted,
    };
    let was_said = record.message == text;
    let record = Record {
        serves: triggers::all_served(ctx, record),
        ..record.clone()
    };
    let patch = NodePatch {
        remove_abort: true,
        remove_request: is_stopped_with_it(ctx),
        ..undo::finish(ctx, &record, outcome)
    };
    let step = Step::new(reason::ABORTED, text);
    // The same Event as with the uncordon, if that was said: an Event with another severity is another one.
    let step = if was_said { step.warn() } else { step.say() };
    step.act(Action::PatchNode(Box::new(patch)))
}

/// A request that is due would begin anew at once. One for later is no part of what is stopped.
fn is_stopped_with_it(ctx: &Context<'_>) -> bool {
    let request = ctx.node.request.get();
    request.is_some_and(|request| request.not_before.is_none_or(|at| at <= ctx.now.wall))
}

fn words(abort: &Parsed<Abort>) -> String {
    let Some(abort) = abort.get() else {
        return "stopped by annotation dogwatch.dev/abort-requested".into();
    };
    let who = match abort.requester.trim() {
        "" => "somebody",
        who => who,
    };
    let why = super::idle::one_line(&abort.reason);
    format!("stopped by {who}: {why}")
}
