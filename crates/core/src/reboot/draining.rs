//! Phase `draining`: the node is cordoned, the lock is held, pods leave. Source: specification
//! §2.3.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;

use super::action::RebootObserve;
use super::config::DrainTimeoutAction;
use super::record::RebootRecord;
use super::snapshot::ObservedDrain;
use super::step::RebootStep;
use super::undo::{self, OwnLockState};
use super::{RebootContext, RebootReason, drained, gates, triggers};
use crate::decision::EventSeverity;
use crate::drain::{BlockedPod, DrainProgress, HeldPod, PodAction, UnrolledPod};

pub(super) fn decide_draining_phase(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    if let Some(step) = find_drain_obstacle(ctx, record) {
        return undo::keep_lock_observed(ctx, step);
    }
    let step = decide_drain_progress(ctx, record);
    let step = match gates::permission_ends_at(ctx) {
        Some(at) => step.with_wake(at, "the window to close"),
        None => step,
    };
    undo::keep_lock_observed(ctx, observe_drain(ctx, record, step))
}

/// Keeps the drain running and observed.
pub(super) fn observe_drain(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    step: RebootStep,
) -> RebootStep {
    step.with_observe(RebootObserve::Drain {
        delete: record.deleting,
        rules: ctx.config.pod_rules.clone(),
    })
}

/// The drain, if its mode (evict or delete) and its rules are those that the record and the policy
/// ask for now. Progress of another mode, or by other rules, proves nothing.
pub(super) fn matching_drain<'a>(
    ctx: &RebootContext<'a>,
    record: &RebootRecord,
) -> Option<&'a ObservedDrain> {
    ctx.seen
        .drain
        .as_ref()
        .filter(|drain| drain.progress.deleting == record.deleting)
        .filter(|drain| drain.progress.rules == ctx.config.pod_rules)
}

/// Why the drain must not go on: the lock is lost, the node was uncordoned, or no trigger is left.
pub(super) fn find_drain_obstacle(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
) -> Option<RebootStep> {
    if !ctx.node.unschedulable {
        let text = "somebody uncordoned the node: that is a veto; undoing the drain".to_owned();
        return Some(undo::undo_and_back_off(
            ctx,
            record,
            RebootReason::UncordonedByOther,
            text,
        ));
    }
    if !triggers::is_still_wanted(ctx, record) {
        return Some(undo::withdraw_reboot(ctx, record));
    }
    if let Some(no) = gates::find_continue_refusal(ctx) {
        return Some(gates::undo_for_refusal(ctx, record, &no));
    }
    match undo::own_lock_state(ctx) {
        None => Some(RebootStep::new(
            RebootReason::LookingAtLock,
            "checking whether this node still holds the lock",
        )),
        Some(OwnLockState::OlderRun(lease)) => Some(undo::adopt_lease(ctx, &lease)),
        Some(OwnLockState::Lost) => {
            let text = "this node no longer holds the lock; undoing the drain".to_owned();
            Some(undo::undo_and_back_off(
                ctx,
                record,
                RebootReason::LockLost,
                text,
            ))
        }
        Some(OwnLockState::Ours) => None,
    }
}

fn decide_drain_progress(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    let unseen = ObservedDrain::default();
    let drain = matching_drain(ctx, record).unwrap_or(&unseen);
    if drain.progress.is_drained() && !drain.progress.is_incomplete() {
        return drained::decide_drained_node(ctx, record, drain);
    }
    if drain.progress.is_incomplete() {
        let text = format!(
            "the drain is incomplete: {}",
            describe_dropped_pods(&drain.progress)
        );
        return handle_failed_drain(ctx, record, RebootReason::DrainIncomplete, text);
    }
    let noted = noted_record(ctx, record, drain);
    let Some(deadline) =
        ctx.deadline_after(&noted, noted.drain_time_limit(ctx.config.drain_timeout))
    else {
        let (allowed, left) = (
            ctx.config.drain_timeout,
            describe_remaining_drain(&drain.progress),
        );
        let allowed = crate::duration::format_duration(allowed);
        let text = format!("not drained within {allowed}: {left}");
        return handle_failed_drain(ctx, record, RebootReason::DrainTimedOut, text);
    };
    let step = report_drain_under_way(drain, record.deleting, ctx.now.mono);
    let step = warn_of_tolerated_pods(step, describe_tolerated_pods(&drain.progress));
    let step = warn_of_unrolled_pods(step, &drain.progress);
    let step = step.with_wake(deadline, "the drain's deadline");
    if noted == *record {
        return step;
    }
    step.with_record_patch(ctx, noted)
}

/// The record with what this process may not live to remember: the budgets that cover drained pods,
/// which the return needs, and the waits for pods, which the deadline counts in.
fn noted_record(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    drain: &ObservedDrain,
) -> RebootRecord {
    let wait = Duration::from_secs(record.drain_wait_seconds);
    let wait = drain.progress.drain_wait(wait, ctx.phase_elapsed(record));
    RebootRecord {
        budgets: collect_budgets(record, drain),
        drain_wait_seconds: wait.as_secs(),
        ..record.clone()
    }
}

/// The budgets in the record, written by this process or an earlier one, and those that this drain
/// saw.
pub(super) fn collect_budgets(record: &RebootRecord, drain: &ObservedDrain) -> Vec<String> {
    let all: BTreeSet<&String> = record
        .budgets
        .iter()
        .chain(&drain.progress.covered_by)
        .collect();
    all.into_iter().cloned().collect()
}

fn report_drain_under_way(drain: &ObservedDrain, delete: bool, now: Duration) -> RebootStep {
    let text = describe_remaining_drain(&drain.progress);
    if delete {
        return RebootStep::new(RebootReason::DeletingRest, text);
    }
    if drain.progress.blocked.is_empty() {
        return RebootStep::new(RebootReason::Draining, text);
    }
    let step = RebootStep::new(RebootReason::DrainBlocked, text);
    let causes = list_block_causes(&drain.progress.blocked);
    causes.into_iter().fold(step, |step, (cause, since)| {
        let worth_saying = since + BLOCK_REPORT_DELAY;
        if now < worth_saying {
            return step.with_wake(worth_saying, "a blocked pod to be worth saying");
        }
        step.with_event(EventSeverity::Warning, RebootReason::DrainBlocked, cause)
    })
}

/// What blocks pods, and since when: the first pod of each cause, however many pods it blocks. Two
/// hundred pods under one budget must not become two hundred Events, and the number of causes must
/// stay well below what the Event writer remembers, or it would repeat them for ever.
fn list_block_causes(blocked: &[BlockedPod]) -> Vec<(String, Duration)> {
    let mut first: BTreeMap<String, &BlockedPod> = BTreeMap::new();
    for one in blocked {
        let known = first.entry(block_cause(one)).or_insert(one);
        if one.since < known.since {
            *known = one;
        }
    }
    let mut first: Vec<&BlockedPod> = first.into_values().collect();
    first.sort_by_key(|one| one.since);
    let said = first.iter().take(MAX_CAUSE_EVENTS);
    said.map(|one| (format!("{}: {}", one.pod, one.message), one.since))
        .collect()
}

/// Groups blocked pods: by their budgets, or by who refuses; if neither is known, by the server's
/// message.
fn block_cause(blocked: &BlockedPod) -> String {
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

/// The most causes that get an Event each; the condition names one cause and the number of pods.
const MAX_CAUSE_EVENTS: usize = 10;

/// A pod that a budget blocks for less than this is not reported.
const BLOCK_REPORT_DELAY: Duration = Duration::from_secs(10);

/// The pods that their controllers keep replacing, one for each controller.
pub(super) fn describe_tolerated_pods(progress: &DrainProgress) -> Vec<String> {
    let mut of_controller = BTreeMap::new();
    for one in &progress.tolerated {
        let owner = (&one.pod.namespace, &one.kind, &one.controller);
        of_controller.entry(owner).or_insert(one);
    }
    let said = of_controller.into_values().take(MAX_CAUSE_EVENTS);
    said.map(ToString::to_string).collect()
}

pub(super) fn warn_of_tolerated_pods(step: RebootStep, tolerated: Vec<String>) -> RebootStep {
    let warn = |step: RebootStep, text| {
        step.with_event(EventSeverity::Warning, RebootReason::PodsComeBack, text)
    };
    tolerated.into_iter().fold(step, warn)
}

/// The pods that are evicted although a rule wanted a rollout to replace them first.
pub(super) fn warn_of_unrolled_pods(step: RebootStep, progress: &DrainProgress) -> RebootStep {
    let warn = |step: RebootStep, pod: &UnrolledPod| {
        let text = pod.to_string();
        step.with_event(EventSeverity::Warning, RebootReason::NotRolledFirst, text)
    };
    let said = progress.unrolled.iter().take(MAX_CAUSE_EVENTS);
    said.fold(step, warn)
}

/// The deadline has passed, or a pod cannot be evicted for good.
fn handle_failed_drain(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    why: RebootReason,
    text: String,
) -> RebootStep {
    match ctx.config.on_drain_timeout {
        DrainTimeoutAction::Force if record.trigger.method != RebootMethod::Hold => {
            force_reboot(ctx, record, &text)
        }
        DrainTimeoutAction::Delete if !record.deleting => {
            delete_remaining_pods(ctx, record, why, &text)
        }
        // Who works on a held machine relies on its being drained.
        DrainTimeoutAction::Abort | DrainTimeoutAction::Delete | DrainTimeoutAction::Force => {
            undo::undo_and_back_off(ctx, record, why, text)
        }
    }
}

/// Writes `deleting` into the record first, so that a later run deletes as well.
fn delete_remaining_pods(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    why: RebootReason,
    text: &str,
) -> RebootStep {
    let text = format!("{text}; deletes the remaining pods, as configured");
    let record = RebootRecord {
        deleting: true,
        message: text.clone(),
        ..record.clone()
    };
    RebootStep::new(why, text)
        .with_warning_event()
        .with_record_patch(ctx, record)
}

fn force_reboot(ctx: &RebootContext<'_>, record: &RebootRecord, text: &str) -> RebootStep {
    let forced = RebootRecord {
        forced: true,
        ..record.clone()
    };
    let drain = matching_drain(ctx, record).cloned().unwrap_or_default();
    drained::begin_method(
        ctx,
        &forced,
        &drain,
        format!("{text}; reboots anyway, as configured"),
    )
    .with_warning_event()
}

/// The remaining pods of a drain under way, as text.
pub fn describe_remaining_drain(progress: &DrainProgress) -> String {
    let left =
        std::iter::once(describe_remaining_pods(progress)).chain(describe_tolerated_pods(progress));
    let left = left.collect::<Vec<_>>().join("; ");
    match progress.observation_errors.as_slice() {
        [] => left,
        trouble => format!("{left}; trouble: {}", trouble.join("; ")),
    }
}

fn describe_remaining_pods(progress: &DrainProgress) -> String {
    if !progress.listed {
        return "listing the node's pods".into();
    }
    let waiting = progress.waiting.len();
    if let Some((lookup, why)) = progress.lookups_failed.first() {
        return format!("{lookup} could not be read: {why}");
    }
    let blocked = progress.blocked.first();
    let blocked = blocked.map(|one| format!("{} is blocked by {}", one.pod, describe_blocker(one)));
    let left = std::iter::once(format!("{} pods gone, {waiting} to go", progress.gone))
        .chain(blocked)
        .chain(describe_pods_that_may_end(progress))
        .chain(describe_rolled_pods(progress))
        .chain(describe_unrolled_pods(progress));
    left.collect::<Vec<_>>().join("; ")
}

/// The first pod that may end by itself, with the rule or mark that lets it, and how many more.
fn describe_pods_that_may_end(progress: &DrainProgress) -> Option<String> {
    let waits = |held: &&HeldPod| matches!(held.plan.action, PodAction::WaitCompleted(_));
    let held = progress.held.iter().filter(waits);
    describe_first(held.map(|held| format!("{} may end by itself ({})", held.pod, held.plan.why)))
}

/// The first pod that a rollout replaces, and how many more.
fn describe_rolled_pods(progress: &DrainProgress) -> Option<String> {
    let rolled = |held: &HeldPod| {
        let rollout = held.rollout.as_ref()?;
        let text = format!("{} goes after a rollout: {rollout}", held.pod);
        Some(format!("{text} ({})", held.plan.why))
    };
    describe_first(progress.held.iter().filter_map(rolled))
}

/// The first pod that is still there and is evicted before its replacement is ready.
fn describe_unrolled_pods(progress: &DrainProgress) -> Option<String> {
    let unrolled = progress.unrolled.iter();
    let unrolled = unrolled.filter(|unrolled| progress.waiting.contains(&unrolled.pod));
    describe_first(unrolled.map(ToString::to_string))
}

/// The first text, and how many more there are.
fn describe_first(mut texts: impl Iterator<Item = String>) -> Option<String> {
    let first = texts.next()?;
    Some(match texts.count() {
        0 => first,
        more => format!("{first}, and {more} more"),
    })
}

fn describe_blocker(blocked: &BlockedPod) -> String {
    if let Some(refused) = &blocked.refused {
        return format!("{}: {}", refused.by, refused.said);
    }
    let budgets: Vec<String> = blocked.budgets.iter().map(describe_budget).collect();
    if budgets.is_empty() {
        blocked.message.clone()
    } else {
        budgets.join(", ")
    }
}

fn describe_budget(numbers: &crate::drain::BudgetNumbers) -> String {
    format!(
        "PodDisruptionBudget {}/{} ({} healthy of {} desired, {} disruptions allowed)",
        numbers.namespace,
        numbers.name,
        numbers.current_healthy,
        numbers.desired_healthy,
        numbers.disruptions_allowed
    )
}

/// The pods that the drain gave up on, each with the server's answer.
pub fn describe_dropped_pods(progress: &DrainProgress) -> String {
    let each = progress
        .dropped
        .iter()
        .map(|dropped| format!("{}: {}", dropped.pod, dropped.answer));
    each.collect::<Vec<_>>().join("; ")
}
