//! Phase `returning`: a new boot was seen; back into service. Source: specification §2.5.

use std::time::Duration;

use super::action::{Action, Look, NodePatch};
use super::record::{Outcome, Phase, Record};
use super::seen::OnGateTimeout;
use super::step::{Step, set};
use super::undo::{self, Lock};
use super::{Context, reason};
use crate::decision::Severity;

/// A new boot id is the only proof of a reboot. Source: S4.
pub(super) fn begin(ctx: &Context<'_>, record: &Record) -> Step {
    let text = format!("booted anew: {} → {}", record.boot_id, ctx.boot);
    let record = Record {
        phase: Phase::Returning,
        since: ctx.now.wall,
        message: text.clone(),
        ..record.clone()
    };
    let patch = NodePatch {
        waiting_label: Some(false),
        ..set(ctx, record)
    };
    Step::new(reason::BOOTED, text).act(Action::PatchNode(Box::new(patch)))
}

pub(super) fn step(ctx: &Context<'_>, record: &Record) -> Step {
    undo::watch_lock(ctx, toward_service(ctx, record))
}

fn toward_service(ctx: &Context<'_>, record: &Record) -> Step {
    if let Some(Lock::OlderRun(lease)) = undo::lock_is_ours(ctx) {
        // Who judges the lock by the run that is written there must find a live one.
        return undo::adopt(ctx, &lease);
    }
    if record.cordoned_by_us && !ctx.node.unschedulable {
        // Somebody undid our cordon: the next one is not ours.
        return uncordon(ctx, record);
    }
    let Some(since) = ctx.seen.run.ready_since else {
        let text = "waits for the kubelet to report this boot and the Node to be Ready";
        return late(ctx, record, Step::new(reason::AWAITING_READY, text));
    };
    let settled = since + ctx.config.settle;
    if settled > ctx.now.mono {
        let text = format!("Ready; has to stay so for {:?}", ctx.config.settle);
        return Step::new(reason::SETTLING, text).wake(settled, "the node to settle");
    }
    if record.cordoned_by_us && !ctx.node.keep_cordoned {
        return uncordon(ctx, record);
    }
    gates(ctx, record, settled)
}

/// Ours, and still there: undone; undone by somebody else already: written down.
fn uncordon(ctx: &Context<'_>, record: &Record) -> Step {
    let text = "back and Ready; undoing our cordon";
    let record = Record {
        cordoned_by_us: false,
        message: text.into(),
        ..record.clone()
    };
    let patch = NodePatch {
        unschedulable: undo::uncordon(ctx),
        ..set(ctx, record)
    };
    Step::new(reason::UNCORDONING, text).act(Action::PatchNode(Box::new(patch)))
}

/// The gates stay in sight until the record is gone: what is not looked at is forgotten.
fn gates(ctx: &Context<'_>, record: &Record, opened: Duration) -> Step {
    let step = asked_gates(ctx, record, opened);
    let ignored = record.budgets.len() - record.budgets_looked_at().len();
    if ignored == 0 {
        return step;
    }
    let text = format!(
        "{ignored} budgets of the record are ignored: no names of PodDisruptionBudgets, or more than 500"
    );
    step.event(Severity::Warning, reason::BUDGETS_IGNORED, text)
}

fn asked_gates(ctx: &Context<'_>, record: &Record, opened: Duration) -> Step {
    let look = Look::Gates {
        gates: ctx.config.return_gates.clone(),
        budgets: record.budgets_looked_at(),
    };
    let shut = match &ctx.seen.gates {
        None => "looking at the return gates".to_owned(),
        Some(shut) if shut.is_empty() => return release(ctx, record, false).look(look),
        Some(shut) => shut.join("; "),
    };
    let deadline = opened + ctx.config.gate_timeout;
    if ctx.config.on_gate_timeout == OnGateTimeout::Release {
        if ctx.now.mono >= deadline {
            let text = format!("released all the same: {shut}");
            return release(ctx, record, true).look(look).event(
                Severity::Warning,
                reason::GATES_TIMED_OUT,
                text,
            );
        }
        return late(
            ctx,
            record,
            Step::new(reason::GATES_SHUT, shut)
                .look(look)
                .wake(deadline, "the gates' deadline"),
        );
    }
    late(ctx, record, Step::new(reason::GATES_SHUT, shut).look(look))
}

/// Says it loudly once the deadline has passed, and keeps saying it.
fn late(ctx: &Context<'_>, record: &Record, mut step: Step) -> Step {
    if let Some(deadline) = ctx.due(record, ctx.config.gate_timeout) {
        return step.wake(deadline, "the return's deadline");
    }
    step.because.reason = reason::GATES_TIMED_OUT;
    step.because.message = format!(
        "not back within {:?}: {}",
        ctx.config.gate_timeout, step.because.message
    );
    step.warn()
}

/// The lock goes first, the record last: a crash between the two finds the record and finishes.
fn release(ctx: &Context<'_>, record: &Record, late: bool) -> Step {
    let text = if late {
        "releasing the lock past the gates' deadline"
    } else {
        "back in service; releasing the lock"
    };
    if let Some(step) = undo::release_first(ctx, reason::RELEASING, text) {
        return step;
    }
    let patch = undo::finish(ctx, record, Outcome::Rebooted);
    let text = format!("rebooted: {} → {}", record.boot_id, ctx.boot);
    Step::new(reason::FINISHED, text)
        .say()
        .act(Action::PatchNode(Box::new(patch)))
}
