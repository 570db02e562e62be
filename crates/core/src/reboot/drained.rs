//! What follows the drain, by method: the reboot, the power cycle, or the hold.

use dogwatch_api::node_reboot::RebootMethod;

use super::action::{NodePatch, RebootAction, RebootObserve};
use super::reboot_limits::RebootLimits;
use super::record::{RebootPhase, RebootRecord};
use super::snapshot::ObservedDrain;
use super::step::{RebootStep, build_record_patch};
use super::{RebootContext, RebootReason, draining, gates, holding, rebooting, triggers};
use crate::decision::EventSeverity;
use crate::drain::DrainProgress;

/// All pods are gone: waits for their volumes to detach, then writes the intention to reboot.
pub(super) fn decide_drained_node(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    drain: &ObservedDrain,
) -> RebootStep {
    let claims = drain.progress.claims.clone();
    let since = drain.drained_since.unwrap_or(ctx.now.mono);
    let deadline = since + ctx.config.volume_detach_timeout;
    if claims.is_empty() {
        return proceed_to_reboot(ctx, record, drain, "drained".into());
    }
    let look = |step: RebootStep| {
        step.with_observe(RebootObserve::Attachments {
            claims: claims.clone(),
        })
    };
    match &ctx.seen.attachments {
        // Attachments and drain stay observed: the write may fail, and dropped facts would have to
        // be awaited again.
        Some(left) if left.is_empty() => look(proceed_to_reboot(
            ctx,
            record,
            drain,
            "drained, volumes detached".into(),
        )),
        left if ctx.now.mono >= deadline => look(proceed_with_attached_volumes(
            ctx,
            record,
            drain,
            left.as_deref(),
        )),
        left => {
            let text = format!(
                "drained; waits for {} volumes to detach",
                left.as_ref().map_or(claims.len(), Vec::len)
            );
            look(
                RebootStep::new(RebootReason::DetachingVolumes, text)
                    .with_wake(deadline, "the volumes' deadline"),
            )
        }
    }
}

/// The detach deadline has passed: the reboot goes on, with a warning.
fn proceed_with_attached_volumes(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    drain: &ObservedDrain,
    left: Option<&[String]>,
) -> RebootStep {
    let names = left.map_or_else(|| "unknown".into(), |left| left.join(", "));
    let within = crate::duration::format_duration(ctx.config.volume_detach_timeout);
    let next = match record.trigger.method {
        RebootMethod::Reboot | RebootMethod::PowerCycle => "the reboot continues",
        RebootMethod::Hold => "the hold begins",
    };
    let text = format!("volumes are still attached after {within}; {next}: {names}");
    let step = proceed_to_reboot(ctx, record, drain, format!("drained; {text}"));
    if step.actions.is_empty() {
        // A power cycle asks its gates first, and may not go on.
        return step;
    }
    step.with_event(EventSeverity::Warning, RebootReason::DetachingVolumes, text)
}

/// Goes on to the reboot or the hold, and reports pods that should have gone but stay.
fn proceed_to_reboot(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    drain: &ObservedDrain,
    text: String,
) -> RebootStep {
    let tolerated = draining::describe_tolerated_pods(&drain.progress);
    let text = std::iter::once(text)
        .chain(describe_own_pods(&drain.progress))
        .chain(tolerated.clone());
    let text = text.collect::<Vec<_>>().join("; ");
    let step = begin_method(ctx, record, drain, text);
    let step = draining::warn_of_tolerated_pods(step, tolerated);
    draining::warn_of_unrolled_pods(step, &drain.progress)
}

/// Dogwatch's own pods, which the reboot stops and the kubelet starts again.
fn describe_own_pods(progress: &DrainProgress) -> Option<String> {
    let names: Vec<String> = progress.kept.iter().map(ToString::to_string).collect();
    let stay = || format!("Dogwatch's own pods stay: {}", names.join(", "));
    (!names.is_empty()).then(stay)
}

/// Nothing is undone once a power cycle is announced, so its gates are asked before that.
pub(super) fn begin_method(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    drain: &ObservedDrain,
    text: String,
) -> RebootStep {
    match record.trigger.method {
        RebootMethod::Reboot => begin_reboot_attempt(ctx, record, drain, text),
        RebootMethod::PowerCycle => rebooting::recheck_gates(ctx, record).unwrap_or_else(|| {
            let step = begin_reboot_attempt(ctx, record, drain, text);
            gates::observe_start_gates(ctx, step)
        }),
        RebootMethod::Hold => holding::begin_hold(ctx, record, drain, text),
    }
}

/// Writes the intention to reboot on the cluster before the command is started.
pub(super) fn begin_reboot_attempt(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    drain: &ObservedDrain,
    text: String,
) -> RebootStep {
    let record = RebootRecord {
        phase: RebootPhase::Rebooting,
        since: ctx.now.wall,
        attempts: record.attempts + 1,
        soft_reboots: ctx.seen.host.soft_reboots,
        limits: RebootLimits::from_config(ctx.config),
        message: text.clone(),
        serves: triggers::collect_served_triggers(ctx, record),
        budgets: draining::collect_budgets(record, drain),
        ..record.clone()
    };
    let patch: NodePatch = build_record_patch(ctx, record);
    RebootStep::new(RebootReason::Rebooting, text)
        .with_action(RebootAction::PatchNode(Box::new(patch)))
}
