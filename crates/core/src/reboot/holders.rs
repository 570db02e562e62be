//! Waiting nodes check now and then whether a holder's Node still exists, so that nobody waits for
//! ever for a lock whose holder is gone. Source: specification §2.2.

use std::time::Duration;

use super::action::{RebootAction, RebootObserve};
use super::snapshot::ObservedHolderNode;
use super::step::RebootStep;
use super::{RebootContext, RebootReason};
use crate::lock::{self, ObservedLease};

/// How long a waiting node waits before it first checks whether a holder's Node exists, and how
/// long between checks. Jitter spreads the checks of a thousand waiting nodes.
const FIRST_HOLDER_CHECK_DELAY: Duration = Duration::from_secs(30);
const HOLDER_CHECK_INTERVAL: Duration = Duration::from_mins(5);

/// How many checks a node has made that has waited for a held lock for so long. `jitter` is that of
/// its run.
pub fn count_holder_checks(waited: Duration, jitter: f64) -> u64 {
    let since_first = waited.checked_sub(spread_by(jitter, FIRST_HOLDER_CHECK_DELAY));
    let interval = spread_by(jitter, HOLDER_CHECK_INTERVAL);
    since_first.map_or(0, |since| 1 + since.as_secs() / interval.as_secs().max(1))
}

/// Up to twice as long, so that not all nodes check at the same moment.
fn spread_by(jitter: f64, delay: Duration) -> Duration {
    delay.mul_f64(1.0 + jitter)
}

/// Every slot is held by somebody else, or as many are as the smallest maximum of the holders allows
/// (`reached_max`).
pub(super) fn wait_for_held_lock(
    ctx: &RebootContext<'_>,
    leases: &[ObservedLease],
    reached_max: Option<u32>,
) -> RebootStep {
    let held = lock::list_holders(leases);
    if held.is_empty() {
        return RebootStep::new(
            RebootReason::LookingAtLock,
            "waits until the group's Leases are created",
        );
    }
    let text = match reached_max {
        None => format!("waits for the lock; held: {held}"),
        Some(max) => format!(
            "waits for the lock: at most {max} may hold it until a present holder releases it; held: {held}"
        ),
    };
    let step = RebootStep::new(RebootReason::LockHeldByOther, text);
    // `waiting_since` is not set yet: the wait begins now.
    let since = ctx.seen.run.waiting_since.unwrap_or(ctx.now.mono);
    let first = since + spread_by(ctx.seen.run.jitter, FIRST_HOLDER_CHECK_DELAY);
    check_or_break_holders(ctx, leases, step, first)
}

/// Clears a Lease whose holder is proved gone; else checks the holders, first at `first`. A process
/// that may not clear Leases leaves both to the controller.
pub(super) fn check_or_break_holders(
    ctx: &RebootContext<'_>,
    leases: &[ObservedLease],
    step: RebootStep,
    first: Duration,
) -> RebootStep {
    if ctx.seen.run.break_forbidden {
        return step;
    }
    if let Some((lease, evidence)) = find_breakable_lease(ctx, leases) {
        let text = format!("Lease {} is freed: {evidence}", lease.name);
        let lease = Box::new(lease.clone());
        return RebootStep::new(RebootReason::BreakingLock, text)
            .with_warning_event()
            .with_action(RebootAction::Break { lease, evidence });
    }
    check_holders(ctx, leases, step, first)
}

/// A Lease whose holder is proved gone by the latest reads.
fn find_breakable_lease<'a>(
    ctx: &RebootContext<'_>,
    leases: &'a [ObservedLease],
) -> Option<(&'a ObservedLease, String)> {
    let ObservedHolderNode {
        lease,
        resource_version,
        reads,
        ..
    } = ctx.seen.lock.holder.as_ref()?;
    let lease = leases
        .iter()
        .find(|l| l.name == *lease && l.resource_version == *resource_version)?;
    let evidence = lock::find_break_evidence(lease, reads)?;
    Some((lease, evidence.to_string()))
}

/// Checks one holder after the other, at long intervals: a deleted Node must not block the lock for
/// ever, and a thousand waiting nodes must not overload the API server.
fn check_holders(
    ctx: &RebootContext<'_>,
    leases: &[ObservedLease],
    step: RebootStep,
    first: Duration,
) -> RebootStep {
    let last = ctx.seen.lock.holder.as_ref();
    let due = last.map_or(first, |last| {
        last.taken + spread_by(ctx.seen.run.jitter, HOLDER_CHECK_INTERVAL)
    });
    if due > ctx.now.mono {
        return step.with_wake(due, "the next look at the holder's Node");
    }
    match next_held_lease(leases, last.map(|last| last.lease.as_str())) {
        Some(lease) => step.with_observe(RebootObserve::Holder {
            lease: Box::new(lease.clone()),
        }),
        None => step,
    }
}

/// The held Lease after the one checked last, in a circle.
fn next_held_lease<'a>(
    leases: &'a [ObservedLease],
    last: Option<&str>,
) -> Option<&'a ObservedLease> {
    let held = || {
        leases
            .iter()
            .filter(|lease| lock::holder_node_name(lease).is_some())
    };
    held()
        .find(|lease| last.is_some_and(|last| lease.name.as_str() > last))
        .or_else(|| held().next())
}
