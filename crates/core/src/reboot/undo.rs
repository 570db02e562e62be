//! The ways back: leaving the node as it was found.
//! Source: specification §2.3 (deadline, veto) and §2.4 ("undo, report").

use std::collections::BTreeMap;
use std::time::Duration;

use super::action::{Action, NodePatch, RecordChange};
use super::record::{Fingerprint, LastReboot, Outcome, Phase, Record};
use super::step::{Step, set};
use super::{Context, reason, waiting};
use crate::lock::{LeaseSeen, Standing};
use crate::name::RunId;

const FIRST_PAUSE: Duration = Duration::from_mins(1);
const LONGEST_PAUSE: Duration = Duration::from_hours(24);

/// Uncordon what we cordoned and queue again after a pause; the lock is released after that, so
/// that the next node never drains while this one is still closed.
pub(super) fn undo(ctx: &Context<'_>, record: &Record, why: &'static str, text: String) -> Step {
    let pause = pause(record.failures);
    let retry_after = ctx.now.plus(pause);
    back_to_waiting(
        ctx,
        record,
        why,
        text,
        Some((record.failures + 1, retry_after)),
    )
}

/// Uncordon what we cordoned without blame: what asked for the reboot is gone.
pub(super) fn withdraw(ctx: &Context<'_>, record: &Record) -> Step {
    let text = "what asked for the reboot is gone; undoing".to_owned();
    without_blame(ctx, record, reason::TRIGGER_GONE, text)
}

/// Uncordon what we cordoned and queue again at once.
pub(super) fn without_blame(
    ctx: &Context<'_>,
    record: &Record,
    why: &'static str,
    text: String,
) -> Step {
    back_to_waiting(ctx, record, why, text, None)
}

fn back_to_waiting(
    ctx: &Context<'_>,
    record: &Record,
    why: &'static str,
    text: String,
    failed: Option<(u32, jiff::Timestamp)>,
) -> Step {
    let record = Record {
        phase: Phase::Waiting,
        since: ctx.now.wall,
        cordoned_by_us: false,
        attempts: 0,
        forced: false,
        deleting: false,
        budgets: Vec::new(),
        message: text.clone(),
        failures: failed.map_or(record.failures, |(failures, _)| failures),
        retry_after: failed.map(|(_, at)| at),
        ..record.clone()
    };
    let patch = NodePatch {
        unschedulable: uncordon(ctx),
        ..set(ctx, record)
    };
    Step::new(why, text)
        .warn()
        .act(Action::PatchNode(Box::new(patch)))
}

/// `Some(false)` where the cordon is ours and still there: nobody else's is ever removed.
pub(super) fn uncordon(ctx: &Context<'_>) -> Option<bool> {
    let ours = ctx
        .node
        .record
        .get()
        .is_some_and(|record| record.cordoned_by_us);
    (ours && ctx.node.unschedulable).then_some(false)
}

fn pause(failures: u32) -> Duration {
    FIRST_PAUSE
        .saturating_mul(2_u32.saturating_pow(failures))
        .min(LONGEST_PAUSE)
}

/// Nothing was touched and nothing wants it any more: release, then forget.
pub(super) fn leave(ctx: &Context<'_>, record: &Record) -> Step {
    let text = "what asked for the reboot is gone; nothing was touched";
    if let Some(release) = release_first(ctx, reason::TRIGGER_GONE, text) {
        return release;
    }
    let patch = finish(ctx, record, Outcome::TriggerGone);
    Step::new(reason::TRIGGER_GONE, text)
        .say()
        .act(Action::PatchNode(Box::new(patch)))
}

/// What has to happen to the lock before the node may let go of its record: look, settle an
/// unknown bid, release. `None`: the lock is not ours.
pub(super) fn release_first(ctx: &Context<'_>, why: &'static str, text: &str) -> Option<Step> {
    let step = waiting::look_at_locks(ctx, Step::new(why, text));
    let Some(leases) = &ctx.seen.lock.leases else {
        return Some(step);
    };
    match waiting::mine(ctx, leases) {
        Some((lease, Standing::Ours)) => {
            let lease = Box::new(lease.clone());
            Some(step.act(Action::Release {
                lease,
                over_budget: false,
            }))
        }
        Some((lease, Standing::OtherRun { replaces })) if hides_us(lease, &replaces) => {
            Some(step.act(waiting::ask(ctx, lease)))
        }
        Some((_, Standing::NotHeld | Standing::OtherRun { .. })) | None => settle(ctx, step),
    }
}

/// Before the lock goes or is asked for the Node is written once while a patch of ours may still arrive,
/// at the version that was seen: whichever of the two writes comes later fails. One that cordons would
/// come when the lock is gone and another node out; one that takes the record away when the lock is ours
/// again, and nothing would tell whose. Serves S1 and S6.
pub(super) fn no_late_write(ctx: &Context<'_>, mut step: Step) -> Step {
    let record = ctx.node.record.get().filter(|_| write_under_way(ctx));
    if let (Some(record), Some(about)) = (record, step.actions.iter().find_map(about_the_lock)) {
        let record = Record {
            // Another text each time: a write that changes nothing makes no new version.
            message: format!("about to {about} the lock at {}", ctx.now.wall),
            ..record.clone()
        };
        step.actions = vec![Action::PatchNode(Box::new(set(ctx, record)))];
    }
    step
}

/// Whether a patch of ours that nobody answered may still arrive.
pub(super) fn write_under_way(ctx: &Context<'_>) -> bool {
    ctx.seen.run.unanswered.as_ref() == Some(&ctx.node.resource_version)
}

fn about_the_lock(action: &Action) -> Option<&'static str> {
    match action {
        Action::Release { .. } => Some("release"),
        Action::Bid { .. } => Some("ask for"),
        Action::PatchNode(_)
        | Action::Break { .. }
        | Action::Reboot { .. }
        | Action::Stop { .. } => None,
    }
}

/// Whether a Lease held in our name may still stand for this coordinator: an older run is written
/// there, or nobody can tell who is. If only requests of others are, it is theirs to free.
fn hides_us(lease: &LeaseSeen, replaces: &[RunId]) -> bool {
    lease.record.is_none() || !replaces.is_empty()
}

/// A bid whose end is unknown may still land and leave a lock with nobody behind it. Bidding once
/// more for the same version either wins (and is then released) or proves that the version moved.
pub(super) fn settle(ctx: &Context<'_>, step: Step) -> Option<Step> {
    let lease = unsettled(ctx)?;
    let mut step = step.act(waiting::ask(ctx, lease));
    let name = &lease.name;
    step.because = crate::Because::new(
        reason::SETTLING_BID,
        format!("the end of a bid for Lease {name} is unknown; settling it before leaving"),
    );
    Some(step)
}

/// The free Lease that a bid of ours may still take.
pub(super) fn unsettled<'a>(ctx: &Context<'a>) -> Option<&'a LeaseSeen> {
    let name = ctx.seen.lock.unsettled.as_ref()?;
    let leases = ctx.seen.lock.leases.as_ref()?;
    leases
        .iter()
        .find(|lease| lease.name == *name && lease.holder.is_none())
}

/// The last patch: record and label go, the outcome stays.
pub(super) fn finish(ctx: &Context<'_>, record: &Record, outcome: Outcome) -> NodePatch {
    let last = LastReboot {
        outcome,
        planned: record.planned,
        finished: ctx.now.wall,
        old_boot_id: record.boot_id.clone(),
        new_boot_id: ctx.boot.clone(),
        trigger: record.trigger.clone(),
        began: record.began.clone(),
        fingerprints: fingerprints(ctx, record, outcome),
        rebooted: match outcome {
            Outcome::Rebooted => None,
            Outcome::TriggerGone | Outcome::Aborted => {
                let before = ctx.node.last.get();
                before.and_then(LastReboot::last_rebooted)
            }
        },
    };
    let served = record.serves.get(super::triggers::REQUEST);
    let request = ctx.node.request_fingerprint.as_ref();
    NodePatch {
        resource_version: ctx.node.resource_version.clone(),
        unschedulable: None,
        record: RecordChange::Remove,
        waiting_label: Some(false),
        last: keep_last(ctx, last),
        remove_request: outcome == Outcome::Rebooted && served.is_some() && served == request,
        remove_abort: false,
    }
}

/// What this reboot served; and what earlier ones did, for a sentinel that survived one boot must
/// not cause another after the next.
fn fingerprints(
    ctx: &Context<'_>,
    record: &Record,
    outcome: Outcome,
) -> BTreeMap<String, Fingerprint> {
    let counts = outcome != Outcome::TriggerGone;
    let before = ctx.node.last.get().filter(|_| counts);
    let survivors = before.filter(|last| last.served());
    let mut all = survivors
        .map(|last| last.fingerprints.clone())
        .unwrap_or_default();
    all.remove(super::triggers::REQUEST);
    all.extend(record.serves.clone());
    all
}

/// A withdrawn reboot must not wipe the fingerprints of the last real one: what survived that boot
/// would cause another.
fn keep_last(ctx: &Context<'_>, last: LastReboot) -> Option<LastReboot> {
    let real_before = ctx.node.last.get().is_some_and(LastReboot::served);
    (last.outcome != Outcome::TriggerGone || !real_before).then_some(last)
}

/// Keeps the lock's Leases in sight while a phase relies on them.
pub(super) fn watch_lock(ctx: &Context<'_>, step: Step) -> Step {
    waiting::look_at_locks(ctx, step)
}

/// Whether the lock is still ours: `None` while the Leases were not looked at yet.
pub(super) fn lock_is_ours(ctx: &Context<'_>) -> Option<Lock> {
    let leases = ctx.seen.lock.leases.as_ref()?;
    Some(match waiting::mine(ctx, leases) {
        Some((_, Standing::Ours)) => Lock::Ours,
        Some((lease, Standing::OtherRun { .. })) => Lock::OlderRun(Box::new(lease.clone())),
        Some((_, Standing::NotHeld)) | None => Lock::Lost,
    })
}

/// How we stand to the lock that the record says we hold.
pub(super) enum Lock {
    /// It is ours.
    Ours,
    /// It is ours, but an older run stands on it.
    OlderRun(Box<LeaseSeen>),
    /// It is not ours any more.
    Lost,
}

/// Takes a Lease over from an older run of ourselves.
pub(super) fn adopt(ctx: &Context<'_>, lease: &LeaseSeen) -> Step {
    let text = format!(
        "taking over Lease {} from an older run of this node",
        lease.name
    );
    Step::new(reason::ADOPTING, text).act(waiting::ask(ctx, lease))
}
