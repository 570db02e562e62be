//! No record: nothing is under way.

use std::collections::BTreeMap;

use std::time::Duration;

use super::action::{Action, NodePatch, RecordChange};
use super::record::{Parsed, Phase, Record};
use super::step::{Step, set};
use super::{Context, reason, triggers, undo};
use crate::lock;
use crate::policy::Policies;

pub(super) fn step(ctx: &Context<'_>) -> Step {
    if ctx.node.abort != Parsed::Absent {
        return nothing_to_abort(ctx);
    }
    let wanted = triggers::wanted(ctx.seen, ctx.node, ctx.now);
    let Some((_, trigger)) = wanted.values().next() else {
        return quiet(ctx);
    };
    let record = Record {
        phase: Phase::Waiting,
        run: ctx.seen.run.id.clone(),
        since: ctx.now.wall,
        planned: ctx.now.wall,
        trigger: trigger.clone(),
        boot_id: ctx.boot.clone(),
        cordoned_by_us: false,
        lease: None,
        attempts: 0,
        message: String::new(),
        serves: wanted
            .iter()
            .map(|(source, (print, _))| (source.clone(), print.clone()))
            .collect(),
        failures: 0,
        retry_after: None,
        forced: false,
        deleting: false,
        budgets: Vec::new(),
        began: BTreeMap::new(),
    };
    let text = format!(
        "{} wants a reboot: {}",
        trigger.source,
        one_line(&trigger.reason)
    );
    let patch = NodePatch {
        waiting_label: Some(true),
        ..set(ctx, record)
    };
    // The Leases are looked at while the patch is under way: the first bid needs both.
    let step = Step::new(reason::PLANNED, text).act(Action::PatchNode(Box::new(patch)));
    super::waiting::look_at_locks(ctx, step)
}

/// Once after the start, and whenever one is in sight: a Lease that is held in our name while no record of ours stands has nobody
/// behind it, for the record is written before the bid and goes after the release.
fn sweep(ctx: &Context<'_>) -> Option<Step> {
    let known = !matches!(ctx.seen.policies, Policies::NotYet);
    let leases = ctx.seen.lock.leases.as_deref().unwrap_or_default();
    let in_sight = lock::held_by(leases, &ctx.seen.run.holder).is_some();
    if (ctx.seen.run.swept && !in_sight) || !known {
        return None;
    }
    undo::release_first(ctx, reason::IDLE, "nothing wants a reboot")
}

/// The requested time is the wall clock's, which may be set meanwhile.
const CLOCK_CHECK: Duration = Duration::from_mins(5);

fn quiet(ctx: &Context<'_>) -> Step {
    if let Some(step) = sweep(ctx) {
        return step;
    }
    if ctx.node.waiting_label {
        return unlabel(ctx);
    }
    let step = Step::new(reason::IDLE, idle_text(ctx));
    if let Some(last) = triggers::served_no_more(ctx) {
        let patch = NodePatch {
            last: Some(last),
            ..untouched(ctx)
        };
        return step.act(Action::PatchNode(Box::new(patch)));
    }
    match ctx
        .node
        .request
        .get()
        .and_then(|request| request.not_before)
    {
        Some(at) if at > ctx.now.wall => {
            let at = ctx.now.mono_at(at).min(ctx.now.mono + CLOCK_CHECK);
            step.wake(at, "the requested time")
        }
        _ => step,
    }
}

/// An abort that comes when nothing is under way is served at once; a request that has not begun
/// goes with it.
fn nothing_to_abort(ctx: &Context<'_>) -> Step {
    let patch = NodePatch {
        remove_abort: true,
        remove_request: ctx.node.request.get().is_some(),
        ..untouched(ctx)
    };
    let text = "asked to stop a reboot, but none is under way";
    Step::new(reason::ABORTED, text)
        .say()
        .act(Action::PatchNode(Box::new(patch)))
}

/// The record was taken away by hand: whoever leaves the lock must not call us.
fn unlabel(ctx: &Context<'_>) -> Step {
    let patch = NodePatch {
        waiting_label: Some(false),
        ..untouched(ctx)
    };
    Step::new(
        reason::IDLE,
        "nothing wants a reboot; removing the label of one that waits",
    )
    .act(Action::PatchNode(Box::new(patch)))
}

/// A patch of a Node without a record that changes nothing yet.
fn untouched(ctx: &Context<'_>) -> NodePatch {
    NodePatch {
        resource_version: ctx.node.resource_version.clone(),
        unschedulable: None,
        record: RecordChange::Remove,
        waiting_label: None,
        last: None,
        remove_request: false,
        remove_abort: false,
    }
}

fn idle_text(ctx: &Context<'_>) -> String {
    if let Parsed::Bad { why } = &ctx.node.request {
        return format!("annotation dogwatch.dev/reboot-requested cannot be read: {why}");
    }
    match ctx
        .node
        .request
        .get()
        .and_then(|request| request.not_before)
    {
        Some(at) if at > ctx.now.wall => format!("a reboot is requested for {at}"),
        _ => "nothing wants a reboot".into(),
    }
}

/// The first line of a reason, for messages.
pub(super) fn one_line(reason: &str) -> &str {
    match reason.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => line,
        _ => "no reason given",
    }
}
