//! A node without a record: no reboot is under way.

use super::action::{NodePatch, RebootAction, RecordChange};
use super::record::{ParsedAnnotation, RebootRecord};
use super::step::{RebootStep, build_record_patch};
use super::{RebootContext, RebootReason, method, request_label, triggers, undo};
use crate::lock;
use crate::policy::ClusterPolicies;
use crate::time::NODE_CLOCK_CHECK_INTERVAL;

pub(super) fn decide_idle_node(ctx: &RebootContext<'_>) -> RebootStep {
    if ctx.node.abort != ParsedAnnotation::Absent {
        return nothing_to_abort(ctx);
    }
    let Some(planned) = method::plan_triggers(ctx) else {
        return decide_without_trigger(ctx);
    };
    let text = planned.describe_triggers();
    let record = RebootRecord::new_waiting(
        ctx.seen.run.id.clone(),
        planned.lead,
        planned.serves,
        ctx.boot.clone(),
        ctx.now.wall,
    );
    let patch = NodePatch {
        waiting_label: Some(true),
        ..build_record_patch(ctx, record)
    };
    // The Leases are read while the patch is under way, because the first bid needs both.
    let step = RebootStep::new(RebootReason::RebootPlanned, text)
        .with_action(RebootAction::PatchNode(Box::new(patch)));
    super::waiting::observe_locks(ctx, step)
}

/// Releases a Lease held in our name although our Node has no record. No process relies on such a
/// Lease: the record is written before the bid and removed after the release. Checked once after
/// the start, whenever such a Lease is seen, and while a bid of ours may still take one.
fn release_leftover_lock(ctx: &RebootContext<'_>) -> Option<RebootStep> {
    let known = !matches!(ctx.seen.policies, ClusterPolicies::NotYetRead);
    let leases = ctx.seen.lock.leases.as_deref().unwrap_or_default();
    let in_sight = lock::find_held_lease(leases, &ctx.seen.run.holder).is_some();
    let none_to_come = ctx.seen.run.leftover_lock_released && !is_bid_under_way(ctx);
    if (none_to_come && !in_sight) || !known {
        return None;
    }
    undo::release_lock_first(
        ctx,
        RebootReason::NoRebootWanted,
        "nothing requests a reboot",
    )
}

/// A bid that was not answered may still land, although somebody has deleted the record.
fn is_bid_under_way(ctx: &RebootContext<'_>) -> bool {
    ctx.seen.lock.unsettled_bid.is_some()
}

fn decide_without_trigger(ctx: &RebootContext<'_>) -> RebootStep {
    if let Some(step) = release_leftover_lock(ctx) {
        return step;
    }
    let step = decide_without_lock(ctx);
    if is_bid_under_way(ctx) {
        return super::waiting::observe_locks(ctx, step);
    }
    step
}

fn decide_without_lock(ctx: &RebootContext<'_>) -> RebootStep {
    if ctx.node.waiting_label {
        return remove_waiting_label(ctx);
    }
    let step = RebootStep::new(RebootReason::NoRebootWanted, idle_text(ctx));
    let forgotten = triggers::forget_served_command(ctx);
    if let Some(last) = forgotten.or_else(|| request_label::forget_removed_label(ctx)) {
        let patch = NodePatch {
            last: Some(last),
            ..empty_patch(ctx)
        };
        return step.with_action(RebootAction::PatchNode(Box::new(patch)));
    }
    match ctx
        .node
        .request
        .get()
        .and_then(|request| request.not_before)
    {
        Some(at) if at > ctx.now.wall => {
            let at = ctx.now.recheck_time_of(at, NODE_CLOCK_CHECK_INTERVAL);
            step.with_wake(at, "the requested time")
        }
        _ => step,
    }
}

/// Serves an abort at once when no reboot is under way; removes a request that has not begun, too.
fn nothing_to_abort(ctx: &RebootContext<'_>) -> RebootStep {
    let patch = NodePatch {
        remove_abort: true,
        remove_request: ctx.node.request.get().is_some(),
        ..empty_patch(ctx)
    };
    let text = "an abort was requested, but no reboot is under way";
    RebootStep::new(RebootReason::Aborted, text)
        .with_normal_event()
        .with_action(RebootAction::PatchNode(Box::new(patch)))
}

/// Removes the waiting label if somebody deleted the record by hand: a holder that releases the
/// lock must not name this node as next in line.
fn remove_waiting_label(ctx: &RebootContext<'_>) -> RebootStep {
    let patch = NodePatch {
        waiting_label: Some(false),
        ..empty_patch(ctx)
    };
    RebootStep::new(
        RebootReason::NoRebootWanted,
        "nothing requests a reboot; removing the label of a node that waits",
    )
    .with_action(RebootAction::PatchNode(Box::new(patch)))
}

/// A patch of a Node without a record that changes nothing; callers set the fields to change.
fn empty_patch(ctx: &RebootContext<'_>) -> NodePatch {
    NodePatch {
        resource_version: ctx.node.resource_version.clone(),
        unschedulable: None,
        record: RecordChange::Remove,
        waiting_label: None,
        mute_label: None,
        last: None,
        remove_labels: Vec::new(),
        remove_request: false,
        remove_abort: false,
    }
}

fn idle_text(ctx: &RebootContext<'_>) -> String {
    if let Some(why) = method::describe_unusable_request(ctx.node) {
        return format!("annotation dogwatch.dev/reboot-requested cannot be read: {why}");
    }
    match ctx
        .node
        .request
        .get()
        .and_then(|request| request.not_before)
    {
        Some(at) if at > ctx.now.wall => format!("a reboot is requested for {at}"),
        _ => "nothing requests a reboot".into(),
    }
}

pub(super) fn first_line(reason: &str) -> &str {
    match reason.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => line,
        _ => "no reason given",
    }
}
