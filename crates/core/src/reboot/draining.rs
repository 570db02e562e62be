//! Phase `draining`: cordoned, the lock held, pods leaving. Source: specification §2.3.

use std::time::Duration;

use super::action::{Action, Look, NodePatch};
use super::record::{Phase, Record};
use super::seen::{DrainSeen, OnTimeout};
use super::step::{Step, set};
use super::undo::{self, Lock};
use super::{Context, reason, triggers};
use crate::decision::Severity;
use crate::drain::Progress;

pub(super) fn step(ctx: &Context<'_>, record: &Record) -> Step {
    if let Some(step) = obstacle(ctx, record) {
        return undo::watch_lock(ctx, step);
    }
    let step = progress(ctx, record);
    undo::watch_lock(
        ctx,
        step.look(Look::Drain {
            delete: record.deleting,
        }),
    )
}

/// The drain, if it goes the way of this record: what it said while it evicted is no news of
/// deleting.
pub(super) fn drain_of<'a>(ctx: &Context<'a>, record: &Record) -> Option<&'a DrainSeen> {
    ctx.seen
        .drain
        .as_ref()
        .filter(|drain| drain.progress.deleting == record.deleting)
}

/// What forbids to go on: the lock lost, the cordon undone, nothing left that wants it.
pub(super) fn obstacle(ctx: &Context<'_>, record: &Record) -> Option<Step> {
    let serves: Vec<&str> = record.serves.keys().map(String::as_str).collect();
    if !ctx.node.unschedulable {
        let text = "somebody uncordoned the node: that is a veto; undoing".to_owned();
        return Some(undo::undo(ctx, record, reason::VETOED, text));
    }
    if !triggers::still_wanted(ctx, &serves) {
        return Some(undo::withdraw(ctx, record));
    }
    match undo::lock_is_ours(ctx) {
        None => Some(Step::new(
            reason::LOOKING_AT_LOCK,
            "looking whether the lock is still ours",
        )),
        Some(Lock::OlderRun(lease)) => Some(undo::adopt(ctx, &lease)),
        Some(Lock::Lost) => {
            let text = "the lock is not ours any more; undoing".to_owned();
            Some(undo::undo(ctx, record, reason::LOCK_LOST, text))
        }
        Some(Lock::Ours) => None,
    }
}

fn progress(ctx: &Context<'_>, record: &Record) -> Step {
    let unseen = DrainSeen::default();
    let drain = drain_of(ctx, record).unwrap_or(&unseen);
    if drain.progress.drained() && !drain.progress.incomplete() {
        return drained(ctx, record, drain);
    }
    if drain.progress.incomplete() {
        let text = format!("the drain is incomplete: {}", dropped(&drain.progress));
        return past(ctx, record, reason::DRAIN_INCOMPLETE, text);
    }
    let Some(deadline) = ctx.due(record, allowed(record, ctx.config.drain_timeout)) else {
        let (allowed, left) = (ctx.config.drain_timeout, left(&drain.progress));
        let text = format!("not drained within {allowed:?}: {left}");
        return past(ctx, record, reason::DRAIN_TIMED_OUT, text);
    };
    under_way(drain, record.deleting, ctx.now.mono).wake(deadline, "the drain's deadline")
}

/// Deleting the rest has as long again.
fn allowed(record: &Record, timeout: Duration) -> Duration {
    if record.deleting {
        timeout.saturating_mul(2)
    } else {
        timeout
    }
}

fn under_way(drain: &DrainSeen, delete: bool, now: Duration) -> Step {
    let text = left(&drain.progress);
    if delete {
        return Step::new(reason::DELETING_REST, text);
    }
    if drain.progress.blocked.is_empty() {
        return Step::new(reason::DRAINING, text);
    }
    let step = Step::new(reason::DRAIN_BLOCKED, text);
    drain.progress.blocked.iter().fold(step, |step, blocked| {
        let worth_saying = blocked.since + BLOCK_WORTH_SAYING;
        if now < worth_saying {
            return step.wake(worth_saying, "a blocked pod to be worth saying");
        }
        let message = format!("{}: {}", blocked.pod, blocked.message);
        step.event(Severity::Warning, reason::DRAIN_BLOCKED, message)
    })
}

/// A budget that frees within this time is no news.
const BLOCK_WORTH_SAYING: Duration = Duration::from_secs(10);

/// Everything is off the node: wait for its volumes, then write the intention to reboot.
fn drained(ctx: &Context<'_>, record: &Record, drain: &DrainSeen) -> Step {
    let claims = drain.progress.claims.clone();
    let since = drain.drained_since.unwrap_or(ctx.now.mono);
    let deadline = since + ctx.config.volume_detach_timeout;
    if claims.is_empty() {
        return rebooting(ctx, record, drain, "drained".into());
    }
    let look = |step: Step| {
        step.look(Look::Attachments {
            claims: claims.clone(),
        })
    };
    match &ctx.seen.attachments {
        Some(left) if left.is_empty() => {
            rebooting(ctx, record, drain, "drained, volumes detached".into())
        }
        left if ctx.now.mono >= deadline => {
            let names = left
                .as_ref()
                .map_or_else(|| "unknown".into(), |left| left.join(", "));
            rebooting(
                ctx,
                record,
                drain,
                format!("drained; volumes still attached, going on: {names}"),
            )
        }
        left => {
            let text = format!(
                "drained; waits for {} volumes to detach",
                left.as_ref().map_or(claims.len(), Vec::len)
            );
            look(Step::new(reason::DETACHING, text).wake(deadline, "the volumes' deadline"))
        }
    }
}

/// The intention to reboot, on the cluster before the command.
pub(super) fn rebooting(
    ctx: &Context<'_>,
    record: &Record,
    drain: &DrainSeen,
    text: String,
) -> Step {
    let wanted = triggers::wanted(ctx.seen, ctx.node, ctx.now);
    let mut serves = record.serves.clone();
    serves.extend(
        wanted
            .into_iter()
            .map(|(source, (print, _))| (source, print)),
    );
    let record = Record {
        phase: Phase::Rebooting,
        since: ctx.now.wall,
        attempts: record.attempts + 1,
        message: text.clone(),
        serves,
        budgets: drain.progress.covered_by.clone(),
        ..record.clone()
    };
    let patch: NodePatch = set(ctx, record);
    Step::new(reason::REBOOTING, text).act(Action::PatchNode(Box::new(patch)))
}

/// The deadline has passed, or a pod cannot be evicted for good.
fn past(ctx: &Context<'_>, record: &Record, why: &'static str, text: String) -> Step {
    match ctx.config.on_drain_timeout {
        OnTimeout::Force => force(ctx, record, &text),
        OnTimeout::Delete if !record.deleting => delete_rest(ctx, record, why, &text),
        OnTimeout::Abort | OnTimeout::Delete => undo::undo(ctx, record, why, text),
    }
}

/// Written first, as every step is: the next run deletes as well.
fn delete_rest(ctx: &Context<'_>, record: &Record, why: &'static str, text: &str) -> Step {
    let text = format!("{text}; deletes the rest, as configured");
    let record = Record {
        deleting: true,
        message: text.clone(),
        ..record.clone()
    };
    Step::new(why, text).warn().patch(ctx, record)
}

fn force(ctx: &Context<'_>, record: &Record, text: &str) -> Step {
    let forced = Record {
        forced: true,
        ..record.clone()
    };
    let drain = drain_of(ctx, record).cloned().unwrap_or_default();
    rebooting(
        ctx,
        &forced,
        &drain,
        format!("{text}; reboots anyway, as configured"),
    )
    .warn()
}

fn left(progress: &Progress) -> String {
    let left = pods_left(progress);
    match progress.trouble.as_slice() {
        [] => left,
        trouble => format!("{left}; trouble: {}", trouble.join("; ")),
    }
}

fn pods_left(progress: &Progress) -> String {
    if !progress.listed {
        return "listing the node's pods".into();
    }
    let waiting = progress.waiting.len();
    if let Some((set, why)) = progress.lookups_failed.first() {
        return format!(
            "DaemonSet {}/{} could not be looked up: {why}",
            set.namespace, set.name
        );
    }
    match progress.blocked.first() {
        None => format!("{} pods gone, {waiting} to go", progress.gone),
        Some(blocked) => {
            let budgets: Vec<String> = blocked.budgets.iter().map(budget).collect();
            let by = if budgets.is_empty() {
                blocked.message.clone()
            } else {
                budgets.join(", ")
            };
            format!(
                "{} pods gone, {waiting} to go; {} is held up by {by}",
                progress.gone, blocked.pod
            )
        }
    }
}

fn budget(numbers: &crate::drain::BudgetNumbers) -> String {
    format!(
        "PodDisruptionBudget {}/{} ({} healthy of {} desired, {} disruptions allowed)",
        numbers.namespace,
        numbers.name,
        numbers.current_healthy,
        numbers.desired_healthy,
        numbers.disruptions_allowed
    )
}

fn dropped(progress: &Progress) -> String {
    let each = progress
        .dropped
        .iter()
        .map(|dropped| format!("{}: {}", dropped.pod, dropped.answer));
    each.collect::<Vec<_>>().join("; ")
}
