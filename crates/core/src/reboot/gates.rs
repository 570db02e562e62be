//! Whether a reboot may begin and go on: pause, windows, `minInterval`, gates. Source:
//! specification §2.6.

use std::time::Duration;

use super::action::RebootObserve;
use super::record::RebootRecord;
use super::step::RebootStep;
use super::{RebootContext, RebootReason, undo};
use crate::policy::{self, MinInterval, PolicyGate, RebootAllowance};
use crate::time::NODE_CLOCK_CHECK_INTERVAL;

/// The oldest gate answer with which a node may be cordoned.
const MAX_GATES_AGE_TO_BEGIN: Duration = Duration::from_mins(1);
/// The oldest gate answer with which the reboot command may start. Gates are not asked during the
/// drain, and answers that no step requests are dropped, so the answer is always from after the
/// drain.
const MAX_GATES_AGE_TO_REBOOT: Duration = Duration::from_secs(30);

/// Why the policy (calendar, pause, `minInterval`) does not let a reboot begin; wakes when that may
/// end.
pub(super) fn find_begin_refusal(ctx: &RebootContext<'_>) -> Option<RebootStep> {
    let last = ctx.node.last_reboot.get();
    // A hold is no reboot.
    let last = last.filter(|_| !ctx.node.is_to_be_held());
    let interval = MinInterval::since_last_reboot(last);
    let answer = policy::may_reboot_begin(
        &ctx.seen.policies,
        ctx.rule.policy,
        ctx.config.longest_drain(),
        interval,
        ctx.node.rollout_candidate(),
        ctx.now.wall,
    );
    refusal_step(ctx, answer)
}

/// Why the policy does not let a reboot under way go on.
pub(super) fn find_continue_refusal(ctx: &RebootContext<'_>) -> Option<RebootStep> {
    let (policies, policy) = (&ctx.seen.policies, ctx.rule.policy);
    refusal_step(
        ctx,
        policy::may_reboot_continue(policies, policy, ctx.now.wall),
    )
}

fn refusal_step(ctx: &RebootContext<'_>, answer: RebootAllowance) -> Option<RebootStep> {
    let RebootAllowance::No {
        reason,
        message,
        until,
    } = answer
    else {
        return None;
    };
    let step = RebootStep::new(reason, message);
    Some(match until {
        Some(at) => {
            let at = ctx.now.recheck_time_of(at, NODE_CLOCK_CHECK_INTERVAL);
            step.with_wake(at, "the policy to allow it")
        }
        None => step,
    })
}

/// The latest time at which a drain still fits into the window that is open now.
pub(super) fn latest_begin_time(ctx: &RebootContext<'_>) -> Option<Duration> {
    Some(window_closes_at(ctx)?.saturating_sub(ctx.config.longest_drain()))
}

/// When the permission that the policy gives now has to be checked again: the window closes, or the
/// wall clock may have been set.
pub(super) fn permission_ends_at(ctx: &RebootContext<'_>) -> Option<Duration> {
    Some(window_closes_at(ctx)?.min(ctx.now.mono + NODE_CLOCK_CHECK_INTERVAL))
}

fn window_closes_at(ctx: &RebootContext<'_>) -> Option<Duration> {
    match policy::may_reboot_continue(&ctx.seen.policies, ctx.rule.policy, ctx.now.wall) {
        RebootAllowance::Yes { until: Some(until) } => Some(ctx.now.mono_time_of(until)),
        RebootAllowance::Yes { until: None } | RebootAllowance::No { .. } => None,
    }
}

/// A step that waits for the gates, if one is shut or not answered yet; it requests their answers.
pub(super) fn find_shut_gate(ctx: &RebootContext<'_>) -> Option<RebootStep> {
    find_shut_gate_within(ctx, MAX_GATES_AGE_TO_BEGIN)
}

/// Like [`find_shut_gate`], right before the reboot command.
pub(super) fn find_shut_gate_before_reboot(ctx: &RebootContext<'_>) -> Option<RebootStep> {
    find_shut_gate_within(ctx, MAX_GATES_AGE_TO_REBOOT)
}

fn find_shut_gate_within(ctx: &RebootContext<'_>, age: Duration) -> Option<RebootStep> {
    let asked_after = ctx.now.mono.saturating_sub(age);
    let gates = start_gates_of(ctx);
    if gates.is_empty() {
        return None;
    }
    let seen = ctx.seen.start_gates.as_ref();
    let seen = seen.filter(|seen| seen.gates == gates && seen.taken >= asked_after);
    let Some(seen) = seen else {
        return Some(observe_start_gates(
            ctx,
            RebootStep::new(
                RebootReason::LookingAtGates,
                "checking the gates of the policy",
            ),
        ));
    };
    if seen.shut.is_empty() {
        return None;
    }
    let text = format!("a gate is closed: {}", seen.shut.join("; "));
    Some(observe_start_gates(
        ctx,
        RebootStep::new(RebootReason::GateShut, text),
    ))
}

/// Keeps requesting the gates: answers that no step requests are dropped.
pub(super) fn observe_start_gates(ctx: &RebootContext<'_>, step: RebootStep) -> RebootStep {
    let gates = start_gates_of(ctx);
    if gates.is_empty() {
        return step;
    }
    step.with_observe(RebootObserve::StartGates {
        gates: gates.to_vec(),
    })
}

fn start_gates_of<'a>(ctx: &RebootContext<'a>) -> &'a [PolicyGate] {
    ctx.rule
        .policy
        .map_or(&[], |policy| policy.gates.as_slice())
}

/// Undoes a drain that the policy does not allow any more. Nothing failed, so the node queues again
/// without a pause and waits until the policy allows a reboot.
pub(super) fn undo_for_refusal(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    no: &RebootStep,
) -> RebootStep {
    let text = format!("{}; undoing the drain", no.because.message);
    undo::undo_without_backoff(ctx, record, no.because.reason, text)
}
