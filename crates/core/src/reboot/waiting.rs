//! Phase `waiting`: the node bids for the lock, and counts the budget once it holds it. Source:
//! specification §2.2.

use std::time::Duration;

use super::action::{NodePatch, RebootAction, RebootObserve};
use super::record::{RebootPhase, RebootRecord};
use super::step::{RebootStep, build_record_patch};
use super::{
    RebootContext, RebootReason, fencing, gates, group, holders, method, mute, triggers, undo,
};
use crate::decision::EventSeverity;
use crate::lock::{
    self, BidDecision, BudgetVerdict, GroupBudget, LockOwnership, LockRecord, ObservedLease,
};
use crate::policy::ClusterPolicies;

pub(super) fn decide_waiting_phase(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    if let Some(step) = method::follow_request(ctx, record) {
        return observe_locks(ctx, step);
    }
    if !triggers::is_still_wanted(ctx, record) {
        return undo::finish_withdrawn_reboot(ctx, record);
    }
    if let Some(at) = record.retry_after {
        // The Leases stay observed during the pause: a bid that lands late has to be noticed.
        return observe_locks(ctx, wait_before_retry(ctx, record, at));
    }
    let step = |step| observe_locks(ctx, step);
    let Some(leases) = &ctx.seen.lock.leases else {
        return step(RebootStep::new(
            RebootReason::LookingAtLock,
            "reading the group's Leases",
        ));
    };
    step(match find_own_lease(ctx, leases) {
        Some((lease, LockOwnership::Ours)) => match find_wrong_lock_cause(ctx, record, lease) {
            Some(why) => release_lease(lease, RebootReason::ReleasingLock, &why),
            None => decide_with_lock(ctx, record, lease),
        },
        Some((lease, LockOwnership::OtherRun { .. })) => undo::adopt_lease(ctx, lease),
        Some((_, LockOwnership::NotHeld)) | None if record.lease.is_some() => {
            forget_undone_lease(ctx, record)
        }
        Some((_, LockOwnership::NotHeld)) | None => match find_start_refusal(ctx) {
            // An unknown bid is settled even now: it may land and hold up all others.
            Some(no) => undo::settle_unknown_bid(ctx, no.clone()).unwrap_or(no),
            None => warn_of_long_wait(ctx, record, decide_bid(ctx, leases)),
        },
    })
}

/// Why this node must not even bid for the lock.
fn find_start_refusal(ctx: &RebootContext<'_>) -> Option<RebootStep> {
    if ctx.node.api_lock {
        let text = "the lock API has taken this node out of service; the reboot begins after it is unlocked";
        return Some(RebootStep::new(RebootReason::LockedThroughApi, text));
    }
    fencing::refuse_if_fenced(ctx).or_else(|| gates::find_begin_refusal(ctx))
}

/// The lock is ours, but the policy may forbid the reboot by now, or a gate may be shut. Then the
/// lock is released, because the next node in line may be allowed to reboot.
fn decide_with_lock(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    lease: &ObservedLease,
) -> RebootStep {
    if let Some(release) = repeat_unanswered_release(ctx, lease) {
        return release;
    }
    let no = find_start_refusal(ctx).or_else(|| gates::find_shut_gate(ctx));
    match no {
        Some(step) if step.because.reason == RebootReason::LookingAtGates => step,
        Some(no) => release_lease(lease, no.because.reason, &no.because.message),
        None => gates::observe_start_gates(ctx, decide_by_count(ctx, record, lease)),
    }
}

/// Why a lock held in our name is not the one we need: it was won and counted for an attempt that
/// was undone (the unavailable nodes and the maximum may have changed since), the node was moved to
/// another group, or the lock was taken for a deleted Node of the same name (anybody may break such
/// a lock).
fn find_wrong_lock_cause(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    lease: &ObservedLease,
) -> Option<String> {
    if record.lease.is_some() {
        return Some("the attempt that it was taken for was undone".into());
    }
    let taken_for = lease
        .record
        .as_ref()
        .and_then(|record| record.node_uid.as_ref());
    if let Some(uid) = taken_for.filter(|uid| **uid != ctx.node.uid) {
        return Some(format!(
            "it was taken for a Node that no longer exists (UID {uid})"
        ));
    }
    let own = &ctx.rule.group;
    let elsewhere = group::group_of_lease(&lease.name).filter(|group| group != own);
    elsewhere.map(|_| format!("this node now belongs to group {own}"))
}

/// A release that may still arrive would take the lock from under the drain. Only a write that
/// changes the Lease makes sure that it does not, so the release itself is repeated. Serves S1.
fn repeat_unanswered_release(ctx: &RebootContext<'_>, lease: &ObservedLease) -> Option<RebootStep> {
    let sent = ctx.seen.lock.unanswered_release.as_ref();
    let sent = sent.filter(|sent| sent.may_still_free(lease))?;
    let text = format!(
        "releasing Lease {}: an earlier release of it was not answered, and may still arrive",
        lease.name
    );
    let release = build_release(lease, sent.over_budget);
    Some(RebootStep::new(RebootReason::ReleasingLock, text).with_action(release))
}

fn release_lease(lease: &ObservedLease, reason: RebootReason, why: &str) -> RebootStep {
    let text = format!("releasing Lease {}: {why}", lease.name);
    RebootStep::new(reason, text).with_action(build_release(lease, false))
}

fn build_release(lease: &ObservedLease, over_budget: bool) -> RebootAction {
    RebootAction::Release {
        lease: Box::new(lease.clone()),
        over_budget,
    }
}

/// The record still names the Lease of an undone attempt, which is no longer held.
fn forget_undone_lease(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    let record = RebootRecord {
        lease: None,
        ..record.clone()
    };
    // An attempt that was undone without a failure has no pause: the node may be called again now.
    let patch = NodePatch {
        waiting_label: Some(true),
        ..build_record_patch(ctx, record)
    };
    RebootStep::new(RebootReason::RebootPlanned, "queues again")
        .with_action(RebootAction::PatchNode(Box::new(patch)))
}

/// A wait for the lock shorter than this is not reported: others need it for a few reboots.
const LONG_WAIT_THRESHOLD: Duration = Duration::from_hours(1);

/// Reports a group that is blocked for long with one Event. Who blocks it changes with each
/// handover, so `dogwatch explain` names it. Time in which the policy does not allow the reboot, as
/// outside its windows, does not count.
fn warn_of_long_wait(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    step: RebootStep,
) -> RebootStep {
    let passes = [
        RebootReason::Bidding,
        RebootReason::SettlingBid,
        RebootReason::NotOurTurn,
    ];
    if passes.contains(&step.because.reason) || !step.actions.is_empty() {
        return step;
    }
    let since_planned = ctx.deadline_after(record, LONG_WAIT_THRESHOLD);
    let run = &ctx.seen.run;
    let permitted = if run.refused {
        Some(ctx.now.mono)
    } else {
        run.permission_since
    };
    let since_permitted = permitted.map(|since| since + LONG_WAIT_THRESHOLD);
    let is_later = |at: &Duration| *at > ctx.now.mono;
    if let Some(at) = since_planned.max(since_permitted.filter(is_later)) {
        return step.with_wake(at, "the wait to be long");
    }
    let text = format!(
        "has waited in line for more than an hour; `dogwatch explain node/{}` shows for what",
        ctx.node.name
    );
    let why = step.because.reason;
    step.with_event(EventSeverity::Warning, why, text)
}

/// Observes the group's Leases; also its size, if `maxUnavailable` is a percentage.
pub(super) fn observe_locks(ctx: &RebootContext<'_>, step: RebootStep) -> RebootStep {
    if matches!(ctx.seen.policies, ClusterPolicies::NotYetRead) {
        // The policies decide which group's lock it is.
        return step;
    }
    let group = group::current_group(ctx);
    // How many slots another group has is not for this node's policy to say.
    let slots = if group == ctx.rule.group {
        max_unavailable(ctx).min(lock::MAX_SLOTS)
    } else {
        0
    };
    let locks = RebootObserve::Locks {
        group: group.clone(),
        slots,
    };
    // Leases that are observed stay observed; otherwise a lock that we hold would be dropped from
    // the snapshot.
    let in_sight = ctx.seen.lock.leases.is_some();
    if !ctx.config.max_unavailable.needs_group_size() {
        return step.with_observe(locks);
    }
    let step = step.with_observe(RebootObserve::GroupSize { group });
    if ctx.seen.lock.group_size.is_none() && !in_sight {
        return step;
    }
    step.with_observe(locks)
}

/// Our own maximum, from the current size of the group. A group of unknown size counts as one node.
fn max_unavailable(ctx: &RebootContext<'_>) -> u32 {
    max_unavailable_of(ctx, ctx.seen.lock.group_size.unwrap_or(1))
}

/// Our own maximum in a group of `members` nodes.
fn max_unavailable_of(ctx: &RebootContext<'_>, members: u32) -> u32 {
    let max = ctx
        .config
        .max_unavailable
        .allowed_nodes(usize::try_from(members).unwrap_or(usize::MAX));
    u32::try_from(max).unwrap_or(u32::MAX)
}

/// The Lease that we hold, and which run it is held by.
pub(super) fn find_own_lease<'a>(
    ctx: &RebootContext<'_>,
    leases: &'a [ObservedLease],
) -> Option<(&'a ObservedLease, LockOwnership)> {
    let lease = lock::find_held_lease(leases, &ctx.seen.run.holder)?;
    Some((
        lease,
        lock::lock_ownership(lease, &ctx.seen.run.holder, &ctx.seen.run.id),
    ))
}

/// Whether this run holds the lock and keeps it: the drain is the next step.
pub(super) fn is_lock_ours(ctx: &RebootContext<'_>) -> bool {
    let record = ctx.node.record.get();
    let gives_back = record.is_some_and(|record| record.retry_after.is_some());
    let leases = ctx.seen.lock.leases.as_deref().unwrap_or_default();
    let own = find_own_lease(ctx, leases);
    !gives_back && own.is_some_and(|(_, ownership)| ownership == LockOwnership::Ours)
}

fn decide_bid(ctx: &RebootContext<'_>, leases: &[ObservedLease]) -> RebootStep {
    if let Some(lease) = undo::find_unsettled_lease(ctx) {
        let text = format!(
            "the result of a bid for Lease {} is unknown; bidding again",
            lease.name
        );
        return RebootStep::new(RebootReason::SettlingBid, text).with_action(build_bid(ctx, lease));
    }
    if leases.iter().any(|lease| is_other_group_lease(ctx, lease)) {
        // The node was moved to another group while it waited: a bid for a Lease of the old group
        // would win and be given up again and again.
        let text = "reading the Leases of another group";
        return RebootStep::new(RebootReason::LookingAtLock, text);
    }
    if let Some(at) = delayed_bid_time(ctx) {
        let text = "the policy allows it now; waits a random time, so that not all nodes bid at the same moment";
        return RebootStep::new(RebootReason::NotOurTurn, text)
            .with_wake(at, "this node's turn to bid");
    }
    if let Some(at) = bid_pause_end(ctx, leases).filter(|at| *at > ctx.now.mono) {
        let text =
            "released the lock because too many nodes are unavailable; bids again after a pause";
        let step = RebootStep::new(RebootReason::OverBudget, text)
            .with_wake(at, "the pause after giving back");
        // One of the unavailable nodes may be deleted while it still holds a Lease. No other node
        // would check, because the slot that we gave back is free. So check at once.
        return holders::check_or_break_holders(ctx, leases, step, ctx.now.mono);
    }
    let turn = lock::decide_bid(
        leases,
        &ctx.seen.run.holder,
        max_unavailable(ctx),
        ctx.seen.run.jitter,
        ctx.now,
    );
    // The gates are asked only when the lock can be taken, so that a thousand waiting nodes do not
    // ask them.
    if let (BidDecision::Now { .. } | BidDecision::Later { .. }, Some(no)) =
        (&turn, gates::find_shut_gate(ctx))
    {
        return no;
    }
    let wait_for_holders = |max| holders::wait_for_held_lock(ctx, leases, max);
    let step = match turn {
        BidDecision::Now { lease } => {
            let text = format!("asking for Lease {}", lease.name);
            RebootStep::new(RebootReason::Bidding, text).with_action(build_bid(ctx, &lease))
        }
        BidDecision::Later { at, lease } => {
            let text = format!(
                "Lease {} is free; it is another node's turn first",
                lease.name
            );
            RebootStep::new(RebootReason::NotOurTurn, text).with_wake(at, "this node's turn to bid")
        }
        BidDecision::AllHeld => return wait_for_holders(None),
        BidDecision::MaxReached { max } => return wait_for_holders(Some(max)),
    };
    gates::observe_start_gates(ctx, step)
}

/// When this node bids again, if it gave the lock back over budget.
fn bid_pause_end(ctx: &RebootContext<'_>, leases: &[ObservedLease]) -> Option<Duration> {
    let run = &ctx.seen.run;
    let pause = run.bid_pause?;
    Some(pause.end_for_waiter(leases, &run.holder, run.jitter))
}

/// A bid for this Lease, or the takeover of our own older one.
pub(super) fn build_bid(ctx: &RebootContext<'_>, lease: &ObservedLease) -> RebootAction {
    let group = group::group_of_lease(&lease.name).unwrap_or_else(|| ctx.rule.group.clone());
    let fresh = LockRecord {
        node: Some(ctx.node.name.clone()),
        node_uid: Some(ctx.node.uid.clone()),
        boot_id: Some(ctx.boot.clone()),
        max: match &lease.record {
            // The node has moved to another group, whose maximum says nothing about this one.
            Some(record) if group != ctx.rule.group => record.max,
            Some(_) | None => max_unavailable(ctx),
        },
        group,
        since: ctx.now.wall,
        runs: vec![ctx.seen.run.id.clone()],
    };
    let record = lock::adopt_record(lease, &ctx.seen.run.id, fresh);
    RebootAction::Bid {
        lease: Box::new(lease.clone()),
        record: Box::new(record),
    }
}

/// Whether this is a slot of a group to which the node no longer belongs.
fn is_other_group_lease(ctx: &RebootContext<'_>, lease: &ObservedLease) -> bool {
    group::group_of_lease(&lease.name).is_some_and(|group| group != ctx.rule.group)
}

/// A window opens, or a pause ends, for a thousand nodes at the same moment. Each bids at a random
/// time within this span; the others see who won, and do not bid.
const BID_SPREAD: Duration = Duration::from_secs(5);

fn delayed_bid_time(ctx: &RebootContext<'_>) -> Option<Duration> {
    let run = &ctx.seen.run;
    let since = if run.refused {
        ctx.now.mono
    } else {
        run.permission_since?
    };
    let at = since + BID_SPREAD.mul_f64(run.jitter.clamp(0.0, 1.0));
    // If the window is just long enough for the drain, the bid is not delayed.
    let latest = gates::latest_begin_time(ctx);
    let at = latest.map_or(at, |latest| at.min(latest));
    (at > ctx.now.mono).then_some(at)
}

/// We hold the lock: decides by the budget count whether to drain.
fn decide_by_count(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    lease: &ObservedLease,
) -> RebootStep {
    let look = |newer_than| RebootObserve::Count {
        lease: Box::new(lease.clone()),
        newer_than,
    };
    let text = format!("holds Lease {}; counting unavailable nodes", lease.name);
    let counting = RebootStep::new(RebootReason::CountingBudget, text);
    let Some(seen) = &ctx.seen.lock.count else {
        return counting.with_observe(look(Duration::ZERO));
    };
    let budget = GroupBudget {
        max: max_unavailable_of(ctx, seen.count.members),
    };
    let won = ctx.seen.lock.won_at.unwrap_or(ctx.now.mono);
    let held_for = ctx.now.mono.saturating_sub(won);
    match lock::decide_budget(budget, &seen.count, lease, held_for) {
        BudgetVerdict::StaleCount => counting.with_observe(look(Duration::ZERO)),
        // The patch may have failed for a while, and other nodes with it.
        BudgetVerdict::Go if ctx.now.mono > seen.arrived + lock::COUNT_VALIDITY => {
            counting.with_observe(look(seen.taken))
        }
        BudgetVerdict::Go => begin_drain(ctx, record, lease),
        BudgetVerdict::YieldOverBudget { why } => RebootStep::new(RebootReason::OverBudget, why)
            .with_warning_event()
            .with_action(build_release(lease, true)),
        BudgetVerdict::WaitForHigherSlot { why } => {
            let again = seen.taken + lock::RECOUNT_PAUSE;
            let step = RebootStep::new(RebootReason::CountingBudget, why);
            let due = again <= ctx.now.mono;
            if due {
                step.with_observe(look(seen.taken))
            } else {
                step.with_wake(again, "the next count")
            }
        }
    }
}

/// Writes cordon and record in one patch, so that it is always known whose cordon it is.
fn begin_drain(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    lease: &ObservedLease,
) -> RebootStep {
    let ours = !ctx.node.unschedulable;
    let muted = mute::wants_mute_label(ctx);
    let record = RebootRecord {
        phase: RebootPhase::Draining,
        since: ctx.now.wall,
        cordoned_by_us: ours,
        muted,
        lease: Some(lease.name.clone()),
        message: format!("draining with Lease {}", lease.name),
        ..record.clone()
    };
    let patch = NodePatch {
        unschedulable: ours.then_some(true),
        waiting_label: Some(false),
        mute_label: muted.then_some(true),
        ..build_record_patch(ctx, record)
    };
    RebootStep::new(
        RebootReason::Draining,
        format!("holds Lease {}; cordons and drains", lease.name),
    )
    .with_action(RebootAction::PatchNode(Box::new(patch)))
}

/// After a failed attempt: releases the lock, waits, then queues again as if new.
fn wait_before_retry(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    at: jiff::Timestamp,
) -> RebootStep {
    let text = format!("{}; tries again at {at}", record.message);
    if let Some(release) = undo::release_lock_first(ctx, RebootReason::BackingOff, &text) {
        return release;
    }
    // Both times are readings of one clock, so a clock that was set since changes nothing.
    let pause = Duration::try_from(at.duration_since(record.since)).unwrap_or(Duration::ZERO);
    if let Some(over) = ctx.deadline_after(record, pause) {
        return RebootStep::new(RebootReason::BackingOff, text)
            .with_wake(over, "the pause after a failed attempt");
    }
    let record = RebootRecord {
        retry_after: None,
        since: ctx.now.wall,
        lease: None,
        ..record.clone()
    };
    let patch = NodePatch {
        waiting_label: Some(true),
        ..build_record_patch(ctx, record)
    };
    RebootStep::new(
        RebootReason::RebootPlanned,
        "queues again after a failed attempt",
    )
    .with_action(RebootAction::PatchNode(Box::new(patch)))
}
