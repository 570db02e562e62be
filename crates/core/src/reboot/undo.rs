//! How a reboot is undone, so that the node is left as it was found. Source: specification §2.3
//! (deadline, veto) and §2.4 ("undo, report").

use std::collections::BTreeMap;
use std::time::Duration;

use super::action::{NodePatch, RebootAction, RecordChange};
use super::reboot_limits::RebootLimits;
use super::record::{LastReboot, RebootOutcome, RebootPhase, RebootRecord, TriggerFingerprint};
use super::step::{RebootStep, build_record_patch};
use super::{RebootContext, RebootReason, mute, request_label, waiting};
use crate::backoff::BackoffRange;
use crate::lock::{LockOwnership, ObservedLease};
use crate::name::RunId;

const REBOOT_RETRY_PAUSES: BackoffRange =
    BackoffRange::new(Duration::from_mins(1), Duration::from_hours(24));

/// Removes our cordon and queues the node again after a pause. The lock is released after that, so
/// that the next node never drains while this one is still cordoned.
pub(super) fn undo_and_back_off(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    why: RebootReason,
    text: String,
) -> RebootStep {
    let pause = REBOOT_RETRY_PAUSES.pause_after(record.failures);
    let retry_after = ctx.now.wall_after(pause);
    return_to_waiting(
        ctx,
        record,
        why,
        text,
        Some((record.failures + 1, retry_after)),
    )
}

/// Undoes a reboot whose triggers are gone, without counting a failure.
pub(super) fn withdraw_reboot(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    let text = "the trigger of the reboot is gone; undoing the drain".to_owned();
    undo_without_backoff(ctx, record, RebootReason::TriggerGone, text)
}

/// Removes our cordon and queues the node again without a pause.
pub(super) fn undo_without_backoff(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    why: RebootReason,
    text: String,
) -> RebootStep {
    return_to_waiting(ctx, record, why, text, None)
}

fn return_to_waiting(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    why: RebootReason,
    text: String,
    failed: Option<(u32, jiff::Timestamp)>,
) -> RebootStep {
    let mute_label = mute::unmute_change(ctx, record);
    let record = RebootRecord {
        phase: RebootPhase::Waiting,
        since: ctx.now.wall,
        cordoned_by_us: false,
        muted: false,
        attempts: 0,
        soft_reboots: None,
        forced: false,
        deleting: false,
        budgets: Vec::new(),
        drain_wait_seconds: 0,
        limits: RebootLimits::default(),
        message: text.clone(),
        failures: failed.map_or(record.failures, |(failures, _)| failures),
        retry_after: failed.map(|(_, at)| at),
        ..record.clone()
    };
    let patch = NodePatch {
        unschedulable: uncordon_change(ctx),
        mute_label,
        ..build_record_patch(ctx, record)
    };
    RebootStep::new(why, text)
        .with_warning_event()
        .with_action(RebootAction::PatchNode(Box::new(patch)))
}

/// `Some(false)` if the cordon is ours and still there: nobody else's cordon is ever removed. A
/// quarantined node stays cordoned: its cordon belongs to the quarantine now.
pub(super) fn uncordon_change(ctx: &RebootContext<'_>) -> Option<bool> {
    let ours = ctx
        .node
        .record
        .get()
        .is_some_and(|record| record.cordoned_by_us);
    (ours && ctx.node.unschedulable && !ctx.node.quarantined).then_some(false)
}

/// Writes down that somebody removed our cordon: a later one is not ours (S3). A step that writes
/// already leaves that to the next one.
pub(super) fn disown_removed_cordon(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    step: RebootStep,
) -> RebootStep {
    if !record.cordoned_by_us || ctx.node.unschedulable || !step.actions.is_empty() {
        return step;
    }
    let record = RebootRecord {
        cordoned_by_us: false,
        ..record.clone()
    };
    step.with_record_patch(ctx, record)
}

/// Ends a reboot that is no longer wanted and has not touched the node: releases the lock, then
/// removes the record.
pub(super) fn finish_withdrawn_reboot(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
) -> RebootStep {
    let text = "the trigger of the reboot is gone; nothing was changed";
    if let Some(release) = release_lock_first(ctx, RebootReason::TriggerGone, text) {
        return release;
    }
    let patch = build_finish_patch(ctx, record, RebootOutcome::TriggerGone);
    RebootStep::new(RebootReason::TriggerGone, text)
        .with_normal_event()
        .with_action(RebootAction::PatchNode(Box::new(patch)))
}

/// What has to happen to the lock before the record may be removed: read the Leases, settle an
/// unknown bid, release. `None`: the lock is not ours.
pub(super) fn release_lock_first(
    ctx: &RebootContext<'_>,
    why: RebootReason,
    text: &str,
) -> Option<RebootStep> {
    let step = waiting::observe_locks(ctx, RebootStep::new(why, text));
    let Some(leases) = &ctx.seen.lock.leases else {
        return Some(step);
    };
    match waiting::find_own_lease(ctx, leases) {
        Some((lease, LockOwnership::Ours)) => {
            let lease = Box::new(lease.clone());
            Some(step.with_action(RebootAction::Release {
                lease,
                over_budget: false,
            }))
        }
        Some((lease, LockOwnership::OtherRun { replaces }))
            if may_hide_own_lock(lease, &replaces) =>
        {
            Some(step.with_action(waiting::build_bid(ctx, lease)))
        }
        Some((_, LockOwnership::NotHeld | LockOwnership::OtherRun { .. })) | None => {
            settle_unknown_bid(ctx, step)
        }
    }
}

/// Before the lock is released or bid for, writes the Node once if an earlier patch of ours may
/// still arrive. This write relies on the resourceVersion last seen, so whichever of the two comes
/// later fails. A late patch that cordons could land when the lock is gone and another node is out;
/// one that removes the record could land when the lock is ours again, and nothing would say whose
/// it is. Serves S1 and S6.
pub(super) fn block_late_patches(ctx: &RebootContext<'_>, mut step: RebootStep) -> RebootStep {
    let record = ctx.node.record.get().filter(|_| is_patch_under_way(ctx));
    if let (Some(record), Some(about)) = (record, step.actions.iter().find_map(lock_action_name)) {
        let record = RebootRecord {
            // The time makes the text differ: a write without a change makes no new
            // resourceVersion.
            message: format!("about to {about} the lock at {}", ctx.now.wall),
            ..record.clone()
        };
        step.actions = vec![RebootAction::PatchNode(Box::new(build_record_patch(
            ctx, record,
        )))];
    }
    step
}

/// Whether a patch of ours that was not answered may still arrive.
pub(super) fn is_patch_under_way(ctx: &RebootContext<'_>) -> bool {
    ctx.seen.run.unanswered_patch_version.as_ref() == Some(&ctx.node.resource_version)
}

fn lock_action_name(action: &RebootAction) -> Option<&'static str> {
    match action {
        RebootAction::Release { .. } => Some("release"),
        RebootAction::Bid { .. } => Some("ask for"),
        RebootAction::PatchNode(_)
        | RebootAction::Break { .. }
        | RebootAction::Reboot { .. }
        | RebootAction::Stop { .. } => None,
    }
}

/// Whether a Lease held in our name may still stand for this coordinator: an older run is recorded
/// on it, or its record is missing. If only requests of other processes rely on it, they free it.
fn may_hide_own_lock(lease: &ObservedLease, replaces: &[RunId]) -> bool {
    lease.record.is_none() || !replaces.is_empty()
}

/// A bid with an unknown result may still land and leave a lock that no process relies on. Bidding
/// again for the same resourceVersion either wins (the lock is then released) or proves that the
/// version has changed.
pub(super) fn settle_unknown_bid(ctx: &RebootContext<'_>, step: RebootStep) -> Option<RebootStep> {
    let lease = find_unsettled_lease(ctx)?;
    let mut step = step.with_action(waiting::build_bid(ctx, lease));
    let name = &lease.name;
    step.because = crate::DecisionCause::new(
        RebootReason::SettlingBid,
        format!("the result of a bid for Lease {name} is unknown; reading it before leaving"),
    );
    Some(step)
}

/// The free Lease that an unsettled bid of ours may still take.
pub(super) fn find_unsettled_lease<'a>(ctx: &RebootContext<'a>) -> Option<&'a ObservedLease> {
    let name = ctx.seen.lock.unsettled_bid.as_ref()?;
    let leases = ctx.seen.lock.leases.as_ref()?;
    leases
        .iter()
        .find(|lease| lease.name == *name && lease.holder.is_none())
}

/// The last patch: removes record and label, and writes the outcome.
pub(super) fn build_finish_patch(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    outcome: RebootOutcome,
) -> NodePatch {
    let last = LastReboot {
        outcome,
        planned: record.planned,
        finished: ctx.now.wall,
        old_boot_id: record.boot_id.clone(),
        new_boot_id: ctx.boot.clone(),
        soft: record.soft && outcome == RebootOutcome::Rebooted,
        trigger: record.trigger.clone(),
        began: record.began.clone(),
        fingerprints: collect_fingerprints(ctx, record, outcome),
        rebooted: match outcome {
            RebootOutcome::Rebooted => None,
            RebootOutcome::TriggerGone | RebootOutcome::Aborted | RebootOutcome::Released => {
                let before = ctx.node.last_reboot.get();
                before.and_then(LastReboot::last_rebooted_at)
            }
        },
    };
    let served = record.serves.get(super::triggers::REQUEST_SOURCE);
    let request = ctx.node.request_fingerprint.as_ref();
    NodePatch {
        resource_version: ctx.node.resource_version.clone(),
        unschedulable: None,
        record: RecordChange::Remove,
        waiting_label: Some(false),
        mute_label: mute::unmute_change(ctx, record),
        last: keep_last_reboot(ctx, last),
        remove_labels: request_label::served_labels(ctx.node, record, outcome),
        remove_request: outcome == RebootOutcome::Rebooted && served.is_some() && served == request,
        remove_abort: false,
    }
}

/// The triggers that this reboot served, and those that earlier ones served: a sentinel that
/// survived one boot must not cause another reboot after the next boot.
fn collect_fingerprints(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    outcome: RebootOutcome,
) -> BTreeMap<String, TriggerFingerprint> {
    let counts = outcome != RebootOutcome::TriggerGone;
    let before = ctx.node.last_reboot.get().filter(|_| counts);
    let survivors = before.filter(|last| last.was_served());
    let mut all = survivors
        .map(|last| last.fingerprints.clone())
        .unwrap_or_default();
    all.remove(super::triggers::REQUEST_SOURCE);
    all.extend(record.serves.clone());
    if outcome == RebootOutcome::Rebooted {
        request_label::forget_served_labels(&mut all, record);
    }
    all
}

/// A withdrawn reboot must not overwrite the fingerprints of the last real one: a sentinel that
/// survived that boot would cause another reboot.
fn keep_last_reboot(ctx: &RebootContext<'_>, last: LastReboot) -> Option<LastReboot> {
    let real_before = ctx
        .node
        .last_reboot
        .get()
        .is_some_and(LastReboot::was_served);
    (last.outcome != RebootOutcome::TriggerGone || !real_before).then_some(last)
}

/// Keeps observing the lock's Leases while a phase relies on them.
pub(super) fn keep_lock_observed(ctx: &RebootContext<'_>, step: RebootStep) -> RebootStep {
    waiting::observe_locks(ctx, step)
}

/// `None` while the Leases have not been read yet.
pub(super) fn own_lock_state(ctx: &RebootContext<'_>) -> Option<OwnLockState> {
    let leases = ctx.seen.lock.leases.as_ref()?;
    Some(match waiting::find_own_lease(ctx, leases) {
        Some((_, LockOwnership::Ours)) => OwnLockState::Ours,
        Some((lease, LockOwnership::OtherRun { .. })) => {
            OwnLockState::OlderRun(Box::new(lease.clone()))
        }
        Some((_, LockOwnership::NotHeld)) | None => OwnLockState::Lost,
    })
}

/// The state of the lock that the record says we hold.
pub(super) enum OwnLockState {
    Ours,
    /// We hold it, but an older run of this coordinator is recorded on it.
    OlderRun(Box<ObservedLease>),
    /// We no longer hold it.
    Lost,
}

/// Takes a Lease over from an older run of this coordinator.
pub(super) fn adopt_lease(ctx: &RebootContext<'_>, lease: &ObservedLease) -> RebootStep {
    let text = format!(
        "taking over Lease {} from an older run of this node",
        lease.name
    );
    RebootStep::new(RebootReason::AdoptingOlderRun, text)
        .with_action(waiting::build_bid(ctx, lease))
}
