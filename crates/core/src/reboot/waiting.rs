//! Phase `waiting`: the node asks for the lock, and counts the budget once it has it.
//! Source: specification §2.2.

use std::time::Duration;

use super::action::{Action, Look, NodePatch};
use super::record::{Phase, Record};
use super::step::{Step, set};
use super::{Context, fenced, gates, group, holders, reason, triggers, undo};
use crate::decision::Severity;
use crate::limit::Limit;
use crate::lock::{self, Bid, Budget, LeaseSeen, LockRecord, Standing, Verdict};
use crate::policy::Policies;

pub(super) fn step(ctx: &Context<'_>, record: &Record) -> Step {
    let serves: Vec<&str> = record.serves.keys().map(String::as_str).collect();
    if !triggers::still_wanted(ctx, &serves) {
        return undo::leave(ctx, record);
    }
    if let Some(at) = record.retry_after {
        // In sight all the while: a bid that lands late has to be noticed.
        return look_at_locks(ctx, back_off(ctx, record, at));
    }
    let step = |step| look_at_locks(ctx, step);
    let Some(leases) = &ctx.seen.lock.leases else {
        return step(Step::new(
            reason::LOOKING_AT_LOCK,
            "looking at the group's Leases",
        ));
    };
    step(match mine(ctx, leases) {
        Some((lease, Standing::Ours)) => match wrong(ctx, record, lease) {
            Some(why) => give_up(lease, reason::RELEASING, &why),
            None => with_lock(ctx, record, lease),
        },
        Some((lease, Standing::OtherRun { .. })) => undo::adopt(ctx, lease),
        Some((_, Standing::NotHeld)) | None if record.lease.is_some() => forget_lease(ctx, record),
        Some((_, Standing::NotHeld)) | None => match no_leave(ctx) {
            // Even then an unknown bid is settled: it may land and hold up everybody else.
            Some(no) => undo::settle(ctx, no.clone()).unwrap_or(no),
            None => long_wait(ctx, record, bid(ctx, leases)),
        },
    })
}

/// Why this node must not even ask for the lock.
fn no_leave(ctx: &Context<'_>) -> Option<Step> {
    if ctx.node.api_lock {
        let text = "the lock API has taken this node out of service; begins when it is unlocked";
        return Some(Step::new(reason::LOCKED_THROUGH_API, text));
    }
    fenced::no_leave(ctx).or_else(|| gates::no_leave(ctx))
}

/// Ours: but the policy may have changed its mind meanwhile, or a gate is shut. Then the next one
/// is called, for it may be allowed.
fn with_lock(ctx: &Context<'_>, record: &Record, lease: &LeaseSeen) -> Step {
    let no = no_leave(ctx).or_else(|| gates::shut(ctx));
    match no {
        Some(step) if step.because.reason == reason::LOOKING_AT_GATES => step,
        Some(no) => give_up(lease, no.because.reason, &no.because.message),
        None => gates::look(ctx, counted(ctx, record, lease)),
    }
}

/// Why a lock that is held in our name is not the one we need: it was won and counted for an
/// attempt that was undone (who is out, and how many may be, has changed since), the node was moved
/// to another group, or it was taken for a deleted Node of the same name (and anybody may break that
/// one).
fn wrong(ctx: &Context<'_>, record: &Record, lease: &LeaseSeen) -> Option<String> {
    if record.lease.is_some() {
        return Some("the attempt that it was taken for was undone".into());
    }
    let taken_for = lease
        .record
        .as_ref()
        .and_then(|record| record.node_uid.as_ref());
    if let Some(uid) = taken_for.filter(|uid| **uid != ctx.node.uid) {
        return Some(format!("it was taken for a Node that is gone (UID {uid})"));
    }
    let own = &ctx.rule.group;
    let elsewhere = group::group_of_lease(&lease.name).filter(|group| group != own);
    elsewhere.map(|_| format!("this node belongs to group {own} now"))
}

fn give_up(lease: &LeaseSeen, reason: &'static str, why: &str) -> Step {
    let text = format!("releasing Lease {}: {why}", lease.name);
    let lease = Box::new(lease.clone());
    Step::new(reason, text).act(Action::Release {
        lease,
        over_budget: false,
    })
}

/// The record names the Lease of an attempt that was undone; it is not held any more.
fn forget_lease(ctx: &Context<'_>, record: &Record) -> Step {
    let record = Record {
        lease: None,
        ..record.clone()
    };
    // Where the attempt was undone without blame it never paused: it is to be called again now.
    let patch = NodePatch {
        waiting_label: Some(true),
        ..set(ctx, record)
    };
    Step::new(reason::PLANNED, "queues again").act(Action::PatchNode(Box::new(patch)))
}

/// How long a wait for the lock is nothing to speak of: a few reboots of others.
const LONG_WAIT: Duration = Duration::from_hours(1);

/// A group that is blocked for long is an Event, once: who is in the way changes with each handover,
/// and stands on the condition.
fn long_wait(ctx: &Context<'_>, record: &Record, step: Step) -> Step {
    let passes = [reason::BIDDING, reason::SETTLING_BID, reason::NOT_OUR_TURN];
    if passes.contains(&step.because.reason) || !step.actions.is_empty() {
        return step;
    }
    if let Some(at) = ctx.due(record, LONG_WAIT) {
        return step.wake(at, "the wait to be long");
    }
    let text = "waits for the lock for more than an hour; condition MaintenancePlanned says who is in the way";
    let why = step.because.reason;
    step.event(Severity::Warning, why, text)
}

/// Asks for the group's Leases to be watched; and for its size, where the maximum is a percentage.
pub(super) fn look_at_locks(ctx: &Context<'_>, step: Step) -> Step {
    if matches!(ctx.seen.policies, Policies::NotYet) {
        // They say which group's lock it is.
        return step;
    }
    let group = group::group(ctx);
    let locks = Look::Locks {
        group: group.clone(),
        slots: max(ctx).min(lock::SLOTS),
    };
    // A lock that is in sight stays there, or one that we hold would be forgotten.
    let in_sight = ctx.seen.lock.leases.is_some();
    match (ctx.config.max_unavailable, ctx.seen.lock.group_size) {
        (Limit::Percent(_), None) if !in_sight => step.look(Look::GroupSize { group }),
        (Limit::Percent(_), _) => step.look(Look::GroupSize { group }).look(locks),
        (Limit::Count(_), _) => step.look(locks),
    }
}

/// The bidder's own maximum. A group whose size is not known yet counts as one.
fn max(ctx: &Context<'_>) -> u32 {
    max_of(ctx, ctx.seen.lock.group_size.unwrap_or(1))
}

/// Our own maximum in a group of so many.
fn max_of(ctx: &Context<'_>, members: u32) -> u32 {
    let max = ctx
        .config
        .max_unavailable
        .of(usize::try_from(members).unwrap_or(usize::MAX));
    u32::try_from(max).unwrap_or(u32::MAX)
}

/// The Lease held by us, and how we stand to it.
pub(super) fn mine<'a>(
    ctx: &Context<'_>,
    leases: &'a [LeaseSeen],
) -> Option<(&'a LeaseSeen, Standing)> {
    let lease = lock::held_by(leases, &ctx.seen.run.holder)?;
    Some((
        lease,
        lock::standing(lease, &ctx.seen.run.holder, &ctx.seen.run.id),
    ))
}

fn bid(ctx: &Context<'_>, leases: &[LeaseSeen]) -> Step {
    if let Some(lease) = undo::unsettled(ctx) {
        let text = format!(
            "the end of a bid for Lease {} is unknown; asking again",
            lease.name
        );
        return Step::new(reason::SETTLING_BID, text).act(ask(ctx, lease));
    }
    if leases.iter().any(|lease| is_elsewhere(ctx, lease)) {
        // Moved while it waited: a bid for one of those would win, and be given up, for ever.
        let text = "looking at the Leases of another group";
        return Step::new(reason::LOOKING_AT_LOCK, text);
    }
    if let Some(at) = after_others(ctx) {
        let text = "the policy allows it now; not all nodes ask at the same moment";
        return Step::new(reason::NOT_OUR_TURN, text).wake(at, "our turn to bid");
    }
    if let Some(at) = ctx.seen.run.bid_after.filter(|at| *at > ctx.now.mono) {
        let text = "gave the lock back because too many nodes are out; bids again after a pause";
        let step = Step::new(reason::OVER_BUDGET, text).wake(at, "the pause after giving back");
        // One of those who are out may be a Node that is gone and still holds: nobody else would
        // ever look, for the slot that we gave back is free. We have just found out, so at once.
        return holders::judge_holders(ctx, leases, step, ctx.now.mono);
    }
    let turn = lock::when_to_bid(
        leases,
        &ctx.seen.run.holder,
        max(ctx),
        ctx.seen.run.jitter,
        ctx.now,
    );
    // Asked only when the lock is to be had: a thousand who wait for it ask nobody.
    if let (Bid::Now { .. } | Bid::Later { .. }, Some(no)) = (&turn, gates::shut(ctx)) {
        return no;
    }
    let step = match turn {
        Bid::Now { lease } => {
            let text = format!("asking for Lease {}", lease.name);
            Step::new(reason::BIDDING, text).act(ask(ctx, &lease))
        }
        Bid::Later { at, lease } => {
            let text = format!(
                "Lease {} is free; it is another node's turn first",
                lease.name
            );
            Step::new(reason::NOT_OUR_TURN, text).wake(at, "our turn to bid")
        }
        Bid::AllHeld => return holders::held_by_others(ctx, leases),
    };
    gates::look(ctx, step)
}

/// A bid for this Lease, or the takeover of our own older one.
pub(super) fn ask(ctx: &Context<'_>, lease: &LeaseSeen) -> Action {
    let fresh = LockRecord {
        node: Some(ctx.node.name.clone()),
        node_uid: Some(ctx.node.uid.clone()),
        boot_id: Some(ctx.boot.clone()),
        group: group::group_of_lease(&lease.name).unwrap_or_else(|| ctx.rule.group.clone()),
        max: max(ctx),
        since: ctx.now.wall,
        runs: vec![ctx.seen.run.id.clone()],
    };
    let record = lock::adopted(lease, &ctx.seen.run.id, fresh);
    Action::Bid {
        lease: Box::new(lease.clone()),
        record: Box::new(record),
    }
}

/// Whether this is a slot of a group that the node does not belong to any more.
fn is_elsewhere(ctx: &Context<'_>, lease: &LeaseSeen) -> bool {
    group::group_of_lease(&lease.name).is_some_and(|group| group != ctx.rule.group)
}

/// A window opens, and a pause ends, for a thousand nodes in the same instant. Each asks at a moment
/// of its own after that; the first one's win is seen by the others, who then ask for nothing.
const LEAVE_SPREAD: Duration = Duration::from_secs(5);

fn after_others(ctx: &Context<'_>) -> Option<Duration> {
    let run = &ctx.seen.run;
    let since = if run.refused {
        ctx.now.mono
    } else {
        run.leave_since?
    };
    let at = since + LEAVE_SPREAD.mul_f64(run.jitter.clamp(0.0, 1.0));
    // A window that is just long enough for the drain leaves no time for good manners.
    let latest = gates::latest_begin(ctx);
    let at = latest.map_or(at, |latest| at.min(latest));
    (at > ctx.now.mono).then_some(at)
}

/// The lock is ours: may we go ahead?
fn counted(ctx: &Context<'_>, record: &Record, lease: &LeaseSeen) -> Step {
    let look = |newer_than| Look::Count {
        lease: Box::new(lease.clone()),
        newer_than,
    };
    let text = format!("holds Lease {}; counting who is out", lease.name);
    let counting = Step::new(reason::COUNTING, text);
    let Some(seen) = &ctx.seen.lock.count else {
        return counting.look(look(Duration::ZERO));
    };
    let budget = Budget {
        max: max_of(ctx, seen.count.members),
    };
    let won = ctx.seen.lock.won.unwrap_or(ctx.now.mono);
    let held_for = ctx.now.mono.saturating_sub(won);
    match lock::verdict(budget, &seen.count, lease, held_for) {
        Verdict::StaleCount => counting.look(look(Duration::ZERO)),
        Verdict::Go => go(ctx, record, lease),
        Verdict::GiveBack { why } => {
            let lease = Box::new(lease.clone());
            Step::new(reason::OVER_BUDGET, why)
                .warn()
                .act(Action::Release {
                    lease,
                    over_budget: true,
                })
        }
        Verdict::WaitForHigherSlot { why } => {
            let again = seen.taken + lock::RECOUNT_PAUSE;
            let step = Step::new(reason::COUNTING, why);
            let due = again <= ctx.now.mono;
            if due {
                step.look(look(seen.taken))
            } else {
                step.wake(again, "the next count")
            }
        }
    }
}

/// Cordon and record in one patch, so that "we cordoned it" is never a guess.
fn go(ctx: &Context<'_>, record: &Record, lease: &LeaseSeen) -> Step {
    let ours = !ctx.node.unschedulable;
    let record = Record {
        phase: Phase::Draining,
        since: ctx.now.wall,
        cordoned_by_us: ours,
        lease: Some(lease.name.clone()),
        message: format!("draining with Lease {}", lease.name),
        ..record.clone()
    };
    let patch = NodePatch {
        unschedulable: ours.then_some(true),
        waiting_label: Some(false),
        ..set(ctx, record)
    };
    Step::new(
        reason::DRAINING,
        format!("holds Lease {}; cordons and drains", lease.name),
    )
    .act(Action::PatchNode(Box::new(patch)))
}

/// After a failed attempt: release, wait, queue again as if newly come.
fn back_off(ctx: &Context<'_>, record: &Record, at: jiff::Timestamp) -> Step {
    let text = format!("{}; tries again at {at}", record.message);
    if let Some(release) = undo::release_first(ctx, reason::BACKING_OFF, &text) {
        return release;
    }
    // Both times are of one clock's reading: a clock that was set since changes nothing.
    let pause = Duration::try_from(at.duration_since(record.since)).unwrap_or(Duration::ZERO);
    if let Some(over) = ctx.due(record, pause) {
        return Step::new(reason::BACKING_OFF, text).wake(over, "the pause after a failed attempt");
    }
    let record = Record {
        retry_after: None,
        since: ctx.now.wall,
        lease: None,
        ..record.clone()
    };
    let patch = NodePatch {
        waiting_label: Some(true),
        ..set(ctx, record)
    };
    Step::new(reason::PLANNED, "queues again after a failed attempt")
        .act(Action::PatchNode(Box::new(patch)))
}
