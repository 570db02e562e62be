//! Everybody who waits looks, now and then, whether a holder's Node is still there: nobody is left
//! behind a lock that has nobody behind it. Source: specification §2.2.

use std::time::Duration;

use super::action::{Action, Look};
use super::seen::HolderSeen;
use super::step::Step;
use super::{Context, reason};
use crate::lock::{self, LeaseSeen};

/// How long somebody is let hold a lock before a waiter first looks whether its Node still exists,
/// and how long between looks. Jitter spreads a thousand waiters over it.
const FIRST_HOLDER_CHECK: Duration = Duration::from_secs(30);
const HOLDER_CHECK_EVERY: Duration = Duration::from_mins(5);

/// Every slot is held by somebody else.
pub(super) fn held_by_others(ctx: &Context<'_>, leases: &[LeaseSeen]) -> Step {
    let names: Vec<String> = leases
        .iter()
        .filter_map(|lease| Some(format!("{} by {}", lease.name, lease.holder.as_ref()?)))
        .collect();
    if names.is_empty() {
        return Step::new(
            reason::LOOKING_AT_LOCK,
            "waits for the group's Leases to be made",
        );
    }
    let text = format!("waits for the lock; held: {}", names.join(", "));
    let step = Step::new(reason::LOCK_HELD, text);
    // Not noticed yet: then the wait begins now.
    let since = ctx.seen.run.waiting_since.unwrap_or(ctx.now.mono);
    let spread = 1.0 + ctx.seen.run.jitter;
    judge_holders(
        ctx,
        leases,
        step,
        since + FIRST_HOLDER_CHECK.mul_f64(spread),
    )
}

/// Clears a Lease whose holder is proved gone; else looks, the first time at `first`. Who was refused the
/// right to clear one leaves both to the controller: it has nothing to do but to bid.
pub(super) fn judge_holders(
    ctx: &Context<'_>,
    leases: &[LeaseSeen],
    step: Step,
    first: Duration,
) -> Step {
    if ctx.seen.run.may_not_break {
        return step;
    }
    if let Some((lease, evidence)) = broken(ctx, leases) {
        let text = format!("Lease {} is cleared: {evidence}", lease.name);
        let lease = Box::new(lease.clone());
        return Step::new(reason::BREAKING_LOCK, text)
            .warn()
            .act(Action::Break { lease, evidence });
    }
    check_holders(ctx, leases, step, first)
}

/// A Lease whose holder is proved gone by the newest reads.
fn broken<'a>(ctx: &Context<'_>, leases: &'a [LeaseSeen]) -> Option<(&'a LeaseSeen, String)> {
    let HolderSeen {
        lease,
        resource_version,
        reads,
        ..
    } = ctx.seen.lock.holder.as_ref()?;
    let lease = leases
        .iter()
        .find(|l| l.name == *lease && l.resource_version == *resource_version)?;
    let evidence = lock::broken_by(lease, reads)?;
    Some((lease, evidence.to_string()))
}

/// Looks at the holders one after the other, seldom: a deleted Node must not block for ever, and a
/// thousand waiters must not ask all the time.
fn check_holders(ctx: &Context<'_>, leases: &[LeaseSeen], step: Step, first: Duration) -> Step {
    let spread = 1.0 + ctx.seen.run.jitter;
    let last = ctx.seen.lock.holder.as_ref();
    let due = last.map_or(first, |last| {
        last.taken + HOLDER_CHECK_EVERY.mul_f64(spread)
    });
    if due > ctx.now.mono {
        return step.wake(due, "the next look at the holder's Node");
    }
    match after(leases, last.map(|last| last.lease.as_str())) {
        Some(lease) => step.look(Look::Holder {
            lease: Box::new(lease.clone()),
        }),
        None => step,
    }
}

/// The held Lease that comes after the one looked at last, around the circle.
fn after<'a>(leases: &'a [LeaseSeen], last: Option<&str>) -> Option<&'a LeaseSeen> {
    let held = || {
        leases
            .iter()
            .filter(|lease| lock::holder_node_name(lease).is_some())
    };
    held()
        .find(|lease| last.is_some_and(|last| lease.name.as_str() > last))
        .or_else(|| held().next())
}
