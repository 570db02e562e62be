//! Phase `returning`: a new boot was seen; the node goes back into service. Source: specification
//! §2.5.

use std::time::Duration;

use super::action::{NodePatch, RebootAction, RebootObserve};
use super::config::GateTimeoutAction;
use super::readiness::{NodeReadiness, check_node_readiness, has_ready_checks};
use super::record::{RebootOutcome, RebootPhase, RebootRecord};
use super::step::{RebootStep, build_record_patch};
use super::undo::{self, OwnLockState};
use super::{RebootContext, RebootReason};
use crate::decision::EventSeverity;

/// A new boot id is the only proof of a reboot. Source: S4.
pub(super) fn begin_return(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    let text = format!("booted again: {} → {}", record.boot_id, ctx.boot);
    let record = RebootRecord {
        phase: RebootPhase::Returning,
        since: ctx.now.wall,
        message: text.clone(),
        usable: None,
        ..record.clone()
    };
    let patch = NodePatch {
        waiting_label: Some(false),
        ..build_record_patch(ctx, record)
    };
    RebootStep::new(RebootReason::NewBoot, text)
        .with_action(RebootAction::PatchNode(Box::new(patch)))
}

pub(super) fn decide_returning_phase(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    undo::keep_lock_observed(ctx, restore_service(ctx, record))
}

fn restore_service(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    if let Some(OwnLockState::OlderRun(lease)) = undo::own_lock_state(ctx) {
        // The run recorded on the Lease must be a live one, because others judge the lock by it.
        return undo::adopt_lease(ctx, &lease);
    }
    if record.cordoned_by_us && !ctx.node.unschedulable {
        // Somebody removed our cordon: a later cordon is not ours.
        return uncordon_node(ctx, record);
    }
    let Some(since) = ctx.seen.run.ready_since else {
        let text = "waits for the kubelet to report this boot and the Node to be Ready";
        return report_late_return(
            ctx,
            record,
            RebootStep::new(RebootReason::AwaitingReady, text),
        );
    };
    let settled = since + ctx.config.settle;
    if settled > ctx.now.mono {
        let text = format!(
            "the Node is Ready; it must stay Ready for {}",
            crate::duration::format_duration(ctx.config.settle)
        );
        return RebootStep::new(RebootReason::Settling, text)
            .with_wake(settled, "the node to settle");
    }
    match check_node_readiness(ctx, record, settled) {
        NodeReadiness::Usable => leave_cordon(ctx, record, settled),
        NodeReadiness::Unusable(step) => step,
        NodeReadiness::Overruled(why) => {
            let reason = RebootReason::ReadyChecksTimedOut;
            leave_cordon(ctx, record, settled).with_event(EventSeverity::Warning, reason, why)
        }
    }
}

fn leave_cordon(ctx: &RebootContext<'_>, record: &RebootRecord, settled: Duration) -> RebootStep {
    if record.cordoned_by_us && !ctx.node.stays_cordoned() {
        return uncordon_node(ctx, record);
    }
    check_return_gates(ctx, record, settled)
}

/// Removes our cordon; if somebody else has removed it already, only writes that down.
fn uncordon_node(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    let text = "back and Ready; removing Dogwatch's cordon";
    let record = RebootRecord {
        cordoned_by_us: false,
        message: text.into(),
        usable: has_ready_checks(ctx).then_some(ctx.now.wall),
        ..record.clone()
    };
    let patch = NodePatch {
        unschedulable: undo::uncordon_change(ctx),
        ..build_record_patch(ctx, record)
    };
    RebootStep::new(RebootReason::Uncordoning, text)
        .with_action(RebootAction::PatchNode(Box::new(patch)))
}

/// Observes the gates until the record is gone: facts that no step requests are dropped.
fn check_return_gates(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    opened: Duration,
) -> RebootStep {
    let step = decide_return_gates(ctx, record, opened);
    let ignored = record.budgets.len() - record.budgets_to_check().len();
    if ignored == 0 {
        return step;
    }
    let text = format!(
        "{ignored} PodDisruptionBudgets of the record are ignored: their names are invalid, or there are more than 500"
    );
    step.with_event(EventSeverity::Warning, RebootReason::BudgetsIgnored, text)
}

fn decide_return_gates(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    opened: Duration,
) -> RebootStep {
    let look = RebootObserve::Gates {
        gates: ctx.config.return_gates.clone(),
        budgets: record.budgets_to_check(),
    };
    let shut = match &ctx.seen.gates {
        None => "checking the return gates".to_owned(),
        Some(shut) if shut.is_empty() => {
            return release_and_finish(ctx, record, false).with_observe(look);
        }
        Some(shut) => shut.join("; "),
    };
    let opened = ctx.usable_elapsed(record).map_or(opened, |elapsed| {
        opened.max(ctx.now.mono.saturating_sub(elapsed))
    });
    let deadline = opened + ctx.config.gate_timeout;
    if ctx.config.on_gate_timeout == GateTimeoutAction::Release {
        if ctx.now.mono >= deadline {
            let text = format!("released although return gates are closed: {shut}");
            return release_and_finish(ctx, record, true)
                .with_observe(look)
                .with_event(
                    EventSeverity::Warning,
                    RebootReason::ReturnGatesTimedOut,
                    text,
                );
        }
        return report_late_return(
            ctx,
            record,
            RebootStep::new(RebootReason::ReturnGatesShut, shut)
                .with_observe(look)
                .with_wake(deadline, "the gates' deadline"),
        );
    }
    report_late_return(
        ctx,
        record,
        RebootStep::new(RebootReason::ReturnGatesShut, shut).with_observe(look),
    )
}

/// Warns from the deadline on, for as long as the gates are shut.
fn report_late_return(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    mut step: RebootStep,
) -> RebootStep {
    let allowed = ctx.config.gate_timeout;
    let deadline = match ctx.usable_elapsed(record) {
        None => ctx.deadline_after(record, allowed),
        Some(elapsed) => {
            let left = allowed.saturating_sub(elapsed);
            (!left.is_zero()).then(|| ctx.now.mono + left)
        }
    };
    if let Some(deadline) = deadline {
        return step.with_wake(deadline, "the return's deadline");
    }
    step.because.reason = RebootReason::ReturnGatesTimedOut;
    step.because.message = format!(
        "not back within {}: {}",
        crate::duration::format_duration(ctx.config.gate_timeout),
        step.because.message
    );
    step.with_warning_event()
}

/// The lock is released first and the record removed last: after a crash between the two, the next
/// run finds the record and finishes.
fn release_and_finish(ctx: &RebootContext<'_>, record: &RebootRecord, late: bool) -> RebootStep {
    let text = if late {
        "releasing the lock past the gates' deadline"
    } else {
        "back in service; releasing the lock"
    };
    if let Some(step) = undo::release_lock_first(ctx, RebootReason::ReleasingLock, text) {
        return step;
    }
    let outcome = record.outcome_of_return();
    let patch = undo::build_finish_patch(ctx, record, outcome);
    let step = match outcome {
        RebootOutcome::Released => RebootStep::new(
            RebootReason::Released,
            "the node was held, and is back in service",
        ),
        RebootOutcome::Rebooted | RebootOutcome::TriggerGone | RebootOutcome::Aborted => {
            let text = if record.soft {
                format!("soft-rebooted; boot {} goes on", ctx.boot)
            } else {
                format!("rebooted: {} → {}", record.boot_id, ctx.boot)
            };
            RebootStep::new(RebootReason::Rebooted, text)
        }
    };
    step.with_normal_event()
        .with_action(RebootAction::PatchNode(Box::new(patch)))
}
