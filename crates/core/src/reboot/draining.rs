//! Phase `draining`: cordoned, the lock held, pods leaving. Source: specification §2.3.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::action::{Action, Look, NodePatch};
use super::record::{Phase, Record};
use super::seen::{DrainSeen, OnTimeout};
use super::step::{Step, set};
use super::undo::{self, Lock};
use super::{Context, gates, reason, triggers};
use crate::decision::Severity;
use crate::drain::{Blocked, Progress};

pub(super) fn step(ctx: &Context<'_>, record: &Record) -> Step {
    if let Some(step) = obstacle(ctx, record) {
        return undo::watch_lock(ctx, step);
    }
    let step = progress(ctx, record);
    let step = match gates::leave_ends(ctx) {
        Some(at) => step.wake(at, "the window to close"),
        None => step,
    };
    undo::watch_lock(ctx, look(ctx, record, step))
}

/// Keeps the drain in sight, and at work.
pub(super) fn look(ctx: &Context<'_>, record: &Record, step: Step) -> Step {
    step.look(Look::Drain {
        delete: record.deleting,
        exclude: ctx.config.exclude.clone(),
    })
}

/// The drain, if it goes the way of this record and of the policy: what it said while it evicted is
/// no news of deleting, nor what it said while other pods were to stay.
pub(super) fn drain_of<'a>(ctx: &Context<'a>, record: &Record) -> Option<&'a DrainSeen> {
    ctx.seen
        .drain
        .as_ref()
        .filter(|drain| drain.progress.deleting == record.deleting)
        .filter(|drain| drain.progress.exclude == ctx.config.exclude)
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
    if let Some(no) = gates::no_leave_to_go_on(ctx) {
        return Some(gates::undo_for(ctx, record, &no));
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
    let step = under_way(drain, record.deleting, ctx.now.mono);
    let step = warn_of_tolerated(step, tolerated(&drain.progress));
    let step = step.wake(deadline, "the drain's deadline");
    note_budgets(ctx, record, drain, step)
}

/// The return needs the budgets of every pod that left, and the process that saw it leave may not
/// live to tell: so they are written down as soon as they are known.
fn note_budgets(ctx: &Context<'_>, record: &Record, drain: &DrainSeen, step: Step) -> Step {
    let budgets = all_budgets(record, drain);
    if budgets.len() == record.budgets.len() {
        return step;
    }
    let noted = Record {
        budgets,
        ..record.clone()
    };
    step.patch(ctx, noted)
}

/// Those that were written down, by this process or one before, and those that this drain saw.
fn all_budgets(record: &Record, drain: &DrainSeen) -> Vec<String> {
    let all: BTreeSet<&String> = record
        .budgets
        .iter()
        .chain(&drain.progress.covered_by)
        .collect();
    all.into_iter().cloned().collect()
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
    let causes = causes(&drain.progress.blocked);
    causes.into_iter().fold(step, |step, (cause, since)| {
        let worth_saying = since + BLOCK_WORTH_SAYING;
        if now < worth_saying {
            return step.wake(worth_saying, "a blocked pod to be worth saying");
        }
        step.event(Severity::Warning, reason::DRAIN_BLOCKED, cause)
    })
}

/// What holds pods up, and since when: the first pod for each budget, however many it covers. Two
/// hundred pods of one budget are no two hundred Events; and what stands at a time must stay well
/// below what the writer of Events remembers, or it would say it again for ever.
fn causes(blocked: &[Blocked]) -> Vec<(String, Duration)> {
    let mut first: BTreeMap<String, &Blocked> = BTreeMap::new();
    for one in blocked {
        let known = first.entry(cause(one)).or_insert(one);
        if one.since < known.since {
            *known = one;
        }
    }
    let mut first: Vec<&Blocked> = first.into_values().collect();
    first.sort_by_key(|one| one.since);
    let said = first.iter().take(CAUSES_SAID);
    said.map(|one| (format!("{}: {}", one.pod, one.message), one.since))
        .collect()
}

/// What makes it the same: the budgets, or who refuses; where none is known, the server's words.
fn cause(blocked: &Blocked) -> String {
    if let Some(refused) = &blocked.refused {
        return refused.by.to_string();
    }
    let names: Vec<String> = blocked
        .budgets
        .iter()
        .map(crate::drain::BudgetNumbers::full_name)
        .collect();
    if names.is_empty() {
        blocked.message.clone()
    } else {
        names.join(", ")
    }
}

/// How many causes are Events of their own; the condition names one and the number of pods.
const CAUSES_SAID: usize = 10;

/// A budget that frees within this time is no news.
const BLOCK_WORTH_SAYING: Duration = Duration::from_secs(10);

/// Everything is off the node: wait for its volumes, then write the intention to reboot.
fn drained(ctx: &Context<'_>, record: &Record, drain: &DrainSeen) -> Step {
    let claims = drain.progress.claims.clone();
    let since = drain.drained_since.unwrap_or(ctx.now.mono);
    let deadline = since + ctx.config.volume_detach_timeout;
    if claims.is_empty() {
        return goes_on(ctx, record, drain, "drained".into());
    }
    let look = |step: Step| {
        step.look(Look::Attachments {
            claims: claims.clone(),
        })
    };
    match &ctx.seen.attachments {
        // Kept in sight: the write may fail, and what was forgotten is waited for anew.
        Some(left) if left.is_empty() => look(goes_on(
            ctx,
            record,
            drain,
            "drained, volumes detached".into(),
        )),
        left if ctx.now.mono >= deadline => still_attached(ctx, record, drain, left.as_deref()),
        left => {
            let text = format!(
                "drained; waits for {} volumes to detach",
                left.as_ref().map_or(claims.len(), Vec::len)
            );
            look(Step::new(reason::DETACHING, text).wake(deadline, "the volumes' deadline"))
        }
    }
}

/// The volumes' deadline has passed: the reboot goes on, and it is said.
fn still_attached(
    ctx: &Context<'_>,
    record: &Record,
    drain: &DrainSeen,
    left: Option<&[String]>,
) -> Step {
    let names = left.map_or_else(|| "unknown".into(), |left| left.join(", "));
    let within = crate::duration::format(ctx.config.volume_detach_timeout);
    let text = format!("volumes still attached after {within}, going on: {names}");
    goes_on(ctx, record, drain, format!("drained; {text}")).event(
        Severity::Warning,
        reason::DETACHING,
        text,
    )
}

/// To the reboot; what stays although it should go is said.
fn goes_on(ctx: &Context<'_>, record: &Record, drain: &DrainSeen, text: String) -> Step {
    let tolerated = tolerated(&drain.progress);
    let text = std::iter::once(text)
        .chain(kept(&drain.progress))
        .chain(tolerated.clone());
    let text = text.collect::<Vec<_>>().join("; ");
    let step = rebooting(ctx, record, drain, text);
    warn_of_tolerated(step, tolerated)
}

/// Dogwatch's own pods, which the reboot stops and the kubelet starts again.
fn kept(progress: &Progress) -> Option<String> {
    let names: Vec<String> = progress.kept.iter().map(ToString::to_string).collect();
    let stay = || format!("Dogwatch's own pods stay: {}", names.join(", "));
    (!names.is_empty()).then(stay)
}

/// The pods that their controllers put back for ever, one for each controller.
fn tolerated(progress: &Progress) -> Vec<String> {
    let mut of_controller = BTreeMap::new();
    for one in &progress.tolerated {
        let owner = (&one.pod.namespace, &one.kind, &one.controller);
        of_controller.entry(owner).or_insert(one);
    }
    let said = of_controller.into_values().take(CAUSES_SAID);
    said.map(ToString::to_string).collect()
}

fn warn_of_tolerated(step: Step, tolerated: Vec<String>) -> Step {
    let warn = |step: Step, text| step.event(Severity::Warning, reason::PODS_COME_BACK, text);
    tolerated.into_iter().fold(step, warn)
}

/// The intention to reboot, on the cluster before the command.
pub(super) fn rebooting(
    ctx: &Context<'_>,
    record: &Record,
    drain: &DrainSeen,
    text: String,
) -> Step {
    let record = Record {
        phase: Phase::Rebooting,
        since: ctx.now.wall,
        attempts: record.attempts + 1,
        message: text.clone(),
        serves: triggers::all_served(ctx, record),
        budgets: all_budgets(record, drain),
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

/// What is left of a drain under way, in words.
pub fn left(progress: &Progress) -> String {
    let left = std::iter::once(pods_left(progress)).chain(tolerated(progress));
    let left = left.collect::<Vec<_>>().join("; ");
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
            format!(
                "{} pods gone, {waiting} to go; {} is held up by {}",
                progress.gone,
                blocked.pod,
                held_by(blocked)
            )
        }
    }
}

/// What holds a pod up, in words.
fn held_by(blocked: &Blocked) -> String {
    if let Some(refused) = &blocked.refused {
        return format!("{}: {}", refused.by, refused.said);
    }
    let budgets: Vec<String> = blocked.budgets.iter().map(budget).collect();
    if budgets.is_empty() {
        blocked.message.clone()
    } else {
        budgets.join(", ")
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

/// The pods that a drain gave up on, each with the answer.
pub fn dropped(progress: &Progress) -> String {
    let each = progress
        .dropped
        .iter()
        .map(|dropped| format!("{}: {}", dropped.pod, dropped.answer));
    each.collect::<Vec<_>>().join("; ")
}
