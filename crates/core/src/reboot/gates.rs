//! Leave to begin, and to go on: pause, windows, the least time between two reboots, gates.
//! Source: specification §2.6.

use std::time::Duration;

use super::action::Look;
use super::record::Record;
use super::step::Step;
use super::{Context, reason, undo};
use crate::policy::{self, Allowance, Gate, MinInterval};

/// How old an answer of the gates may be when the node is cordoned.
const FRESH_TO_BEGIN: Duration = Duration::from_mins(1);
/// How old it may be right before the reboot. They are not looked at during the drain, and what is
/// not looked at is forgotten: so it is an answer from after the drain in any case.
const FRESH_TO_REBOOT: Duration = Duration::from_secs(30);

/// Why no reboot may begin by the calendar and the policy's word; when that may end is its wake-up.
pub(super) fn no_leave(ctx: &Context<'_>) -> Option<Step> {
    let interval = MinInterval::of(ctx.node.last.get());
    let answer = policy::allowed(
        &ctx.seen.policies,
        ctx.rule.policy,
        ctx.config.drain_timeout,
        interval,
        ctx.now.wall,
    );
    refused(ctx, answer)
}

/// Why what has begun may not go on.
pub(super) fn no_leave_to_go_on(ctx: &Context<'_>) -> Option<Step> {
    let (policies, policy) = (&ctx.seen.policies, ctx.rule.policy);
    refused(ctx, policy::still_allowed(policies, policy, ctx.now.wall))
}

/// The wall clock may be set while we wait for a moment of it.
const CLOCK_CHECK: Duration = Duration::from_mins(5);

fn refused(ctx: &Context<'_>, answer: Allowance) -> Option<Step> {
    let Allowance::No {
        reason,
        message,
        until,
    } = answer
    else {
        return None;
    };
    let step = Step::new(reason, message);
    Some(match until {
        Some(at) => {
            let at = ctx.now.mono_at(at).min(ctx.now.mono + CLOCK_CHECK);
            step.wake(at, "the policy to allow it")
        }
        None => step,
    })
}

/// Until when a reboot may begin, by the window that is open now.
pub(super) fn latest_begin(ctx: &Context<'_>) -> Option<Duration> {
    Some(closes(ctx)?.saturating_sub(ctx.config.drain_timeout))
}

/// When leave that is there now ends by the clock: the next look at it.
pub(super) fn leave_ends(ctx: &Context<'_>) -> Option<Duration> {
    Some(closes(ctx)?.min(ctx.now.mono + CLOCK_CHECK))
}

/// When the window that is open now closes.
fn closes(ctx: &Context<'_>) -> Option<Duration> {
    match policy::still_allowed(&ctx.seen.policies, ctx.rule.policy, ctx.now.wall) {
        Allowance::Yes { until: Some(until) } => Some(ctx.now.mono_at(until)),
        Allowance::Yes { until: None } | Allowance::No { .. } => None,
    }
}

/// What the gates say, if they say no or nothing yet; looked at from now on.
pub(super) fn shut(ctx: &Context<'_>) -> Option<Step> {
    shut_within(ctx, FRESH_TO_BEGIN)
}

/// The same, right before the reboot.
pub(super) fn shut_now(ctx: &Context<'_>) -> Option<Step> {
    shut_within(ctx, FRESH_TO_REBOOT)
}

fn shut_within(ctx: &Context<'_>, age: Duration) -> Option<Step> {
    let asked_after = ctx.now.mono.saturating_sub(age);
    let gates = gates_of(ctx);
    if gates.is_empty() {
        return None;
    }
    let seen = ctx.seen.start_gates.as_ref();
    let seen = seen.filter(|seen| seen.gates == gates && seen.taken >= asked_after);
    let Some(seen) = seen else {
        return Some(look(
            ctx,
            Step::new(reason::LOOKING_AT_GATES, "asking the gates of the policy"),
        ));
    };
    if seen.shut.is_empty() {
        return None;
    }
    let text = format!("a gate is shut: {}", seen.shut.join("; "));
    Some(look(ctx, Step::new(reason::GATE_SHUT, text)))
}

/// Keeps the gates in sight: what is not looked at is forgotten.
pub(super) fn look(ctx: &Context<'_>, step: Step) -> Step {
    let gates = gates_of(ctx);
    if gates.is_empty() {
        return step;
    }
    step.look(Look::StartGates {
        gates: gates.to_vec(),
    })
}

fn gates_of<'a>(ctx: &Context<'a>) -> &'a [Gate] {
    ctx.rule
        .policy
        .map_or(&[], |policy| policy.gates.as_slice())
}

/// Undoes a drain that the policy does not allow any more. Nobody failed, so it queues again at
/// once, and waits for leave.
pub(super) fn undo_for(ctx: &Context<'_>, record: &Record, no: &Step) -> Step {
    let text = format!("{}; undoing", no.because.message);
    undo::without_blame(ctx, record, no.because.reason, text)
}
