//! Phase `draining`: the node is cordoned, the lock is held, pods leave. Source: specification
//! §2.3.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::action::{NodePatch, RebootAction, RebootObserve};
use super::record::{RebootPhase, RebootRecord};
use super::snapshot::{DrainTimeoutAction, ObservedDrain};
use super::step::{RebootStep, build_record_patch};
use super::undo::{self, OwnLockState};
use super::{RebootContext, RebootReason, gates, triggers};
use crate::decision::EventSeverity;
use crate::drain::{BlockedPod, DrainProgress};

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
        exclude: ctx.config.exclude.clone(),
    })
}

/// The drain, if its mode (evict or delete) and its excluded pods are those that the record and the
/// policy ask for now. Progress of another mode, or with other excluded pods, proves nothing.
pub(super) fn matching_drain<'a>(
    ctx: &RebootContext<'a>,
    record: &RebootRecord,
) -> Option<&'a ObservedDrain> {
    ctx.seen
        .drain
        .as_ref()
        .filter(|drain| drain.progress.deleting == record.deleting)
        .filter(|drain| drain.progress.exclude == ctx.config.exclude)
}

/// Why the drain must not go on: the lock is lost, the node was uncordoned, or no trigger is left.
pub(super) fn find_drain_obstacle(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
) -> Option<RebootStep> {
    let serves: Vec<&str> = record.serves.keys().map(String::as_str).collect();
    if !ctx.node.unschedulable {
        let text = "somebody uncordoned the node: that is a veto; undoing the drain".to_owned();
        return Some(undo::undo_and_back_off(
            ctx,
            record,
            RebootReason::UncordonedByOther,
            text,
        ));
    }
    if !triggers::is_still_wanted(ctx, &serves) {
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
        return decide_drained_node(ctx, record, drain);
    }
    if drain.progress.is_incomplete() {
        let text = format!(
            "the drain is incomplete: {}",
            describe_dropped_pods(&drain.progress)
        );
        return handle_failed_drain(ctx, record, RebootReason::DrainIncomplete, text);
    }
    let Some(deadline) =
        ctx.deadline_after(record, drain_time_limit(record, ctx.config.drain_timeout))
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
    let step = step.with_wake(deadline, "the drain's deadline");
    record_budgets(ctx, record, drain, step)
}

/// Writes the budgets that cover drained pods into the record as soon as they are known. The return
/// needs them, and this process may not live until then.
fn record_budgets(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    drain: &ObservedDrain,
    step: RebootStep,
) -> RebootStep {
    let budgets = collect_budgets(record, drain);
    if budgets.len() == record.budgets.len() {
        return step;
    }
    let noted = RebootRecord {
        budgets,
        ..record.clone()
    };
    step.with_record_patch(ctx, noted)
}

/// The budgets in the record, written by this process or an earlier one, and those that this drain
/// saw.
fn collect_budgets(record: &RebootRecord, drain: &ObservedDrain) -> Vec<String> {
    let all: BTreeSet<&String> = record
        .budgets
        .iter()
        .chain(&drain.progress.covered_by)
        .collect();
    all.into_iter().cloned().collect()
}

/// Deleting the remaining pods may take `timeout` once more.
fn drain_time_limit(record: &RebootRecord, timeout: Duration) -> Duration {
    if record.deleting {
        timeout.saturating_mul(2)
    } else {
        timeout
    }
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

/// All pods are gone: waits for their volumes to detach, then writes the intention to reboot.
fn decide_drained_node(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    drain: &ObservedDrain,
) -> RebootStep {
    let claims = drain.progress.claims.clone();
    let since = drain.drained_since.unwrap_or(ctx.now.mono);
    let deadline = since + ctx.config.volume_detach_timeout;
    if claims.is_empty() {
        return proceed_to_reboot(ctx, record, drain, "drained".into());
    }
    let look = |step: RebootStep| {
        step.with_observe(RebootObserve::Attachments {
            claims: claims.clone(),
        })
    };
    match &ctx.seen.attachments {
        // Attachments and drain stay observed: the write may fail, and dropped facts would have to
        // be awaited again.
        Some(left) if left.is_empty() => look(proceed_to_reboot(
            ctx,
            record,
            drain,
            "drained, volumes detached".into(),
        )),
        left if ctx.now.mono >= deadline => {
            proceed_with_attached_volumes(ctx, record, drain, left.as_deref())
        }
        left => {
            let text = format!(
                "drained; waits for {} volumes to detach",
                left.as_ref().map_or(claims.len(), Vec::len)
            );
            look(
                RebootStep::new(RebootReason::DetachingVolumes, text)
                    .with_wake(deadline, "the volumes' deadline"),
            )
        }
    }
}

/// The detach deadline has passed: the reboot goes on, with a warning.
fn proceed_with_attached_volumes(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    drain: &ObservedDrain,
    left: Option<&[String]>,
) -> RebootStep {
    let names = left.map_or_else(|| "unknown".into(), |left| left.join(", "));
    let within = crate::duration::format_duration(ctx.config.volume_detach_timeout);
    let text = format!("volumes are still attached after {within}; the reboot continues: {names}");
    proceed_to_reboot(ctx, record, drain, format!("drained; {text}")).with_event(
        EventSeverity::Warning,
        RebootReason::DetachingVolumes,
        text,
    )
}

/// Goes on to the reboot, and reports pods that should have gone but stay.
fn proceed_to_reboot(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    drain: &ObservedDrain,
    text: String,
) -> RebootStep {
    let tolerated = describe_tolerated_pods(&drain.progress);
    let text = std::iter::once(text)
        .chain(describe_own_pods(&drain.progress))
        .chain(tolerated.clone());
    let text = text.collect::<Vec<_>>().join("; ");
    let step = begin_reboot_attempt(ctx, record, drain, text);
    warn_of_tolerated_pods(step, tolerated)
}

/// Dogwatch's own pods, which the reboot stops and the kubelet starts again.
fn describe_own_pods(progress: &DrainProgress) -> Option<String> {
    let names: Vec<String> = progress.kept.iter().map(ToString::to_string).collect();
    let stay = || format!("Dogwatch's own pods stay: {}", names.join(", "));
    (!names.is_empty()).then(stay)
}

/// The pods that their controllers keep replacing, one for each controller.
fn describe_tolerated_pods(progress: &DrainProgress) -> Vec<String> {
    let mut of_controller = BTreeMap::new();
    for one in &progress.tolerated {
        let owner = (&one.pod.namespace, &one.kind, &one.controller);
        of_controller.entry(owner).or_insert(one);
    }
    let said = of_controller.into_values().take(MAX_CAUSE_EVENTS);
    said.map(ToString::to_string).collect()
}

fn warn_of_tolerated_pods(step: RebootStep, tolerated: Vec<String>) -> RebootStep {
    let warn = |step: RebootStep, text| {
        step.with_event(EventSeverity::Warning, RebootReason::PodsComeBack, text)
    };
    tolerated.into_iter().fold(step, warn)
}

/// Writes the intention to reboot on the cluster before the command is started.
pub(super) fn begin_reboot_attempt(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    drain: &ObservedDrain,
    text: String,
) -> RebootStep {
    let record = RebootRecord {
        phase: RebootPhase::Rebooting,
        since: ctx.now.wall,
        attempts: record.attempts + 1,
        message: text.clone(),
        serves: triggers::collect_served_triggers(ctx, record),
        budgets: collect_budgets(record, drain),
        ..record.clone()
    };
    let patch: NodePatch = build_record_patch(ctx, record);
    RebootStep::new(RebootReason::Rebooting, text)
        .with_action(RebootAction::PatchNode(Box::new(patch)))
}

/// The deadline has passed, or a pod cannot be evicted for good.
fn handle_failed_drain(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    why: RebootReason,
    text: String,
) -> RebootStep {
    match ctx.config.on_drain_timeout {
        DrainTimeoutAction::Force => force_reboot(ctx, record, &text),
        DrainTimeoutAction::Delete if !record.deleting => {
            delete_remaining_pods(ctx, record, why, &text)
        }
        DrainTimeoutAction::Abort | DrainTimeoutAction::Delete => {
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
    begin_reboot_attempt(
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
    if let Some((set, why)) = progress.lookups_failed.first() {
        return format!(
            "DaemonSet {}/{} could not be read: {why}",
            set.namespace, set.name
        );
    }
    match progress.blocked.first() {
        None => format!("{} pods gone, {waiting} to go", progress.gone),
        Some(blocked) => {
            format!(
                "{} pods gone, {waiting} to go; {} is blocked by {}",
                progress.gone,
                blocked.pod,
                describe_blocker(blocked)
            )
        }
    }
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
