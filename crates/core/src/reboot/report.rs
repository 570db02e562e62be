//! What a person sees of a reboot: the Node's conditions and Events.
//!
//! Source: specification §2.5; the names of the conditions are those of KEP-5683.

use dogwatch_api::condition::{
    DRAIN_IN_PROGRESS, DRAINED, MAINTENANCE_IN_PROGRESS, MAINTENANCE_PLANNED,
    REBOOT_TRIGGER_UNKNOWN,
};
use dogwatch_api::node_reboot::RebootMethod;

use super::record::{ParsedAnnotation, RebootPhase};
use super::shared_conditions::is_set_by_other;
use super::step::RebootStep;
use super::trigger_conditions::{
    describe_unreadable_last_reboot, observe_survived_sentinels, observe_unknown_triggers,
    served_sentinel_reason,
};
use super::{
    RebootContext, RebootDecision, RebootReason, holding, method, request_label, triggers, waiting,
};
use crate::condition::{ConditionStatus, DesiredCondition};
use crate::decision::{DecisionEvent, DecisionReport, EventSeverity};

/// Reports that the host's boot id cannot be read, so that no reboot begins.
pub(super) fn report_unreadable_boot_id(why: &str) -> RebootDecision {
    let step = RebootStep::new(RebootReason::BootIdUnreadable, why).with_warning_event();
    let observation = build_observation(
        REBOOT_TRIGGER_UNKNOWN,
        true,
        RebootReason::BootIdUnreadable.as_str(),
        why,
    );
    let report = DecisionReport {
        conditions: vec![observation],
        events: step.events.clone(),
    };
    step.into_decision(report)
}

pub(super) fn build_report(ctx: &RebootContext<'_>, step: &RebootStep) -> DecisionReport {
    let mut conditions = phase_conditions(ctx, step);
    conditions.push(observe_survived_sentinels(ctx));
    conditions.push(observe_unknown_triggers(ctx));
    let mut events = step.events.clone();
    events.extend(build_phase_event(ctx));
    events.extend(build_problem_events(ctx));
    DecisionReport { conditions, events }
}

/// The conditions that a coordinator writes in the phases of a reboot. A change of one is its sign of
/// life, and one of them carries the reason of the step.
pub(crate) const COORDINATOR_CONDITIONS: [&str; 4] = [
    MAINTENANCE_PLANNED,
    DRAIN_IN_PROGRESS,
    DRAINED,
    MAINTENANCE_IN_PROGRESS,
];

/// The status of each condition in each phase. The leading condition carries the reason and message
/// of the step. `MaintenancePlanned` means that the reboot is near (the lock is ours, or the
/// controller expects it soon): other tools remove nodes that are to go soon, and a node may wait
/// for weeks.
fn phase_conditions(ctx: &RebootContext<'_>, step: &RebootStep) -> Vec<DesiredCondition> {
    let (planned, draining, drained, maintenance) = phase_flags(ctx);
    let lead = choose_leading_condition(ctx);
    let one = |kind, status: bool| {
        if Some(kind) == lead {
            let reason = stable_reason(ctx, step);
            return DesiredCondition {
                heartbeat: needs_heartbeat(ctx),
                shows_reason: ctx.node.record.get().is_some(),
                ..build_observation(kind, status, reason, &stable_message(ctx, step))
            };
        }
        let (reason, message) = secondary_condition(ctx, kind, status);
        build_observation(kind, status, reason, &message)
    };
    let all = [
        one(MAINTENANCE_PLANNED, planned),
        one(DRAIN_IN_PROGRESS, draining),
        one(DRAINED, drained),
        one(MAINTENANCE_IN_PROGRESS, maintenance),
    ];
    let is_ours = |kind| Some(kind) == lead || !is_set_by_other(ctx.node, kind);
    all.into_iter().filter(|one| is_ours(one.kind)).collect()
}

/// The condition that carries the step's own reason, and the sign of life; `None` if another tool
/// has set it while the node waits. Once the node is cordoned, the healer needs a sign of life: then
/// another condition of this phase carries it, and if all are taken, the usual one does.
fn choose_leading_condition(ctx: &RebootContext<'_>) -> Option<&'static str> {
    let usual = leading_condition(ctx);
    if !is_set_by_other(ctx.node, usual) {
        return Some(usual);
    }
    if !needs_heartbeat(ctx) {
        return None;
    }
    let (planned, draining, drained, maintenance) = phase_flags(ctx);
    let set = [
        (MAINTENANCE_PLANNED, planned),
        (MAINTENANCE_IN_PROGRESS, maintenance),
        (DRAIN_IN_PROGRESS, draining),
        (DRAINED, drained),
    ];
    let mut free = set.into_iter().filter(|(_, is_set)| *is_set);
    let free = free.find(|(kind, _)| !is_set_by_other(ctx.node, kind));
    Some(free.map_or(usual, |(kind, _)| kind))
}

fn phase_flags(ctx: &RebootContext<'_>) -> (bool, bool, bool, bool) {
    let forced = ctx.node.record.get().is_some_and(|record| record.forced);
    match ctx.node.record.get().map(|record| record.phase) {
        None => (
            matches!(ctx.node.record, ParsedAnnotation::Bad { .. }),
            false,
            false,
            false,
        ),
        Some(RebootPhase::Waiting) => {
            let is_near = waiting::is_lock_ours(ctx) || ctx.node.is_start_near();
            (is_near, false, false, false)
        }
        Some(RebootPhase::Draining) => (true, true, false, false),
        Some(RebootPhase::Holding) => (true, false, true, true),
        Some(RebootPhase::Rebooting) => (true, false, !forced, true),
        Some(RebootPhase::Returning) => (true, false, ctx.node.unschedulable, true),
    }
}

/// From the cordon until the lock is free, the healer must be able to tell a live coordinator from
/// a dead one. A waiting node holds nothing, and thousands may wait, so it sends no heartbeat.
fn needs_heartbeat(ctx: &RebootContext<'_>) -> bool {
    let phase = ctx.node.record.get().map(|record| record.phase);
    phase.is_some_and(|phase| phase > RebootPhase::Waiting)
}

/// The condition that usually carries the step's own reason.
fn leading_condition(ctx: &RebootContext<'_>) -> &'static str {
    match ctx.node.record.get().map(|record| record.phase) {
        None | Some(RebootPhase::Waiting) => MAINTENANCE_PLANNED,
        Some(RebootPhase::Draining) => DRAIN_IN_PROGRESS,
        Some(RebootPhase::Holding | RebootPhase::Rebooting | RebootPhase::Returning) => {
            MAINTENANCE_IN_PROGRESS
        }
    }
}

/// Replaces reasons that last only milliseconds by the phase, to save a write for each.
fn stable_reason(ctx: &RebootContext<'_>, step: &RebootStep) -> &'static str {
    if !ctx.seen.observation_errors.is_empty() && !step.looks.is_empty() {
        return RebootReason::CannotLook.as_str();
    }
    let reason = step.because.reason;
    let is_planning = matches!(
        reason,
        RebootReason::LookingAtLock
            | RebootReason::LookingAtPolicies
            | RebootReason::LookingAtGates
            | RebootReason::Bidding
            | RebootReason::NotOurTurn
            | RebootReason::CountingBudget
            | RebootReason::AdoptingOlderRun
    );
    let is_returning = matches!(
        reason,
        RebootReason::Uncordoning | RebootReason::Settling | RebootReason::ReleasingLock
    );
    if is_planning {
        RebootReason::RebootPlanned.as_str()
    } else if is_returning {
        return_reason(ctx).as_str()
    } else if reason == RebootReason::NoRebootWanted {
        last_outcome_reason(ctx)
    } else {
        reason.as_str()
    }
}

/// Does not name the holder: it changes with each handover, and each waiting node would have to
/// write its condition.
pub const WAITS_FOR_LOCK_MESSAGE: &str =
    "waits for the lock; `dogwatch explain` shows who holds it";

/// The message that belongs to the reason from `stable_reason`.
fn stable_message(ctx: &RebootContext<'_>, step: &RebootStep) -> String {
    let message = &step.because.message;
    if step.because.reason == RebootReason::LockHeldByOther {
        return WAITS_FOR_LOCK_MESSAGE.to_owned();
    }
    if step.because.reason == RebootReason::Settling && return_reason(ctx) == RebootReason::NewBoot
    {
        return format!("booted again; {message}");
    }
    message.clone()
}

/// A condition other than the leading one: its reason and message stay the same throughout a phase.
fn secondary_condition(
    ctx: &RebootContext<'_>,
    kind: &'static str,
    status: bool,
) -> (&'static str, String) {
    let Some(record) = ctx.node.record.get() else {
        return (last_outcome_reason(ctx), String::new());
    };
    match (kind, status) {
        (MAINTENANCE_PLANNED, true) => (
            RebootReason::RebootPlanned.as_str(),
            format!(
                "{}: {}",
                record.trigger.source,
                super::idle::first_line(&record.trigger.reason)
            ),
        ),
        (DRAINED, true) => (
            match record.phase {
                RebootPhase::Holding => RebootReason::Held.as_str(),
                RebootPhase::Waiting
                | RebootPhase::Draining
                | RebootPhase::Rebooting
                | RebootPhase::Returning => RebootReason::Rebooting.as_str(),
            },
            drained_message(&record.message),
        ),
        (_, true) => (
            phase_reason(ctx, record.phase).as_str(),
            record.message.clone(),
        ),
        (_, false) => (phase_reason(ctx, record.phase).as_str(), String::new()),
    }
}

/// Keeps what the record says about volumes and pods that stayed.
fn drained_message(message: &str) -> String {
    let gone = "every pod that must leave is gone";
    match message.strip_prefix("drained; ") {
        None => gone.to_owned(),
        Some(but) => format!("{gone}; {but}"),
    }
}

/// The reason of every condition while no reboot is under way.
fn last_outcome_reason(ctx: &RebootContext<'_>) -> &'static str {
    ctx.node
        .last_reboot
        .get()
        .map_or(RebootReason::NoRebootWanted.as_str(), |last| {
            last.outcome.as_str()
        })
}

/// The reason of phase `returning`.
fn return_reason(ctx: &RebootContext<'_>) -> RebootReason {
    let record = ctx.node.record.get();
    if record.is_some_and(|record| record.soft) {
        return RebootReason::SoftRebooted;
    }
    match record.map(|record| record.trigger.method) {
        Some(RebootMethod::Hold) => RebootReason::HoldEnded,
        Some(RebootMethod::Reboot | RebootMethod::PowerCycle) | None => RebootReason::NewBoot,
    }
}

fn phase_reason(ctx: &RebootContext<'_>, phase: RebootPhase) -> RebootReason {
    match phase {
        RebootPhase::Waiting => RebootReason::RebootPlanned,
        RebootPhase::Draining => RebootReason::Draining,
        RebootPhase::Holding => RebootReason::Held,
        RebootPhase::Rebooting => RebootReason::Rebooting,
        RebootPhase::Returning => return_reason(ctx),
    }
}

/// Reports each transition once; the text contains `since`, which makes each transition a new
/// Event.
fn build_phase_event(ctx: &RebootContext<'_>) -> Option<DecisionEvent> {
    let record = ctx.node.record.get()?;
    let trigger = &record.trigger;
    let (reason, message) = match record.phase {
        RebootPhase::Waiting if record.retry_after.is_some() => return None,
        RebootPhase::Waiting => (
            RebootReason::RebootPlanned,
            format!(
                "{} ({}); waits for the lock",
                method::describe_wish(trigger),
                super::idle::first_line(&trigger.reason)
            ),
        ),
        RebootPhase::Draining => (RebootReason::Draining, record.message.clone()),
        RebootPhase::Rebooting => (
            RebootReason::Rebooting,
            format!("attempt {}: {}", record.attempts, record.message),
        ),
        RebootPhase::Holding => (RebootReason::Held, holding::describe_hold(trigger)),
        RebootPhase::Returning if trigger.method == RebootMethod::Hold => {
            (RebootReason::HoldEnded, record.message.clone())
        }
        RebootPhase::Returning if record.soft => (
            RebootReason::SoftRebooted,
            format!(
                "a soft reboot, which the policy accepts; boot {} goes on",
                ctx.boot
            ),
        ),
        RebootPhase::Returning => (
            RebootReason::NewBoot,
            format!("booted again: {} → {}", record.boot_id, ctx.boot),
        ),
    };
    Some(DecisionEvent {
        severity: EventSeverity::Normal,
        reason: reason.as_str(),
        message,
    })
}

fn build_problem_events(ctx: &RebootContext<'_>) -> Vec<DecisionEvent> {
    let warning = |reason: RebootReason, message| DecisionEvent {
        severity: EventSeverity::Warning,
        reason: reason.as_str(),
        message,
    };
    let mut events: Vec<DecisionEvent> = triggers::list_unreadable_sentinels(ctx)
        .into_iter()
        .map(|text| warning(RebootReason::TriggerUnknown, text))
        .collect();
    if let Some(why) = method::describe_unusable_request(ctx.node) {
        events.push(warning(
            RebootReason::RequestUnreadable,
            format!("annotation dogwatch.dev/reboot-requested is not removed: {why}"),
        ));
    }
    events.extend(
        describe_unreadable_last_reboot(ctx)
            .map(|text| warning(RebootReason::TriggerUnknown, text)),
    );
    events.extend(
        ctx.seen
            .observation_errors
            .iter()
            .map(|(what, why)| warning(RebootReason::CannotLook, format!("{what}: {why}"))),
    );
    let stopped = request_label::describe_unserved_label(ctx);
    events.extend(stopped.map(|text| warning(RebootReason::Aborted, text)));
    let (reason, why) = served_sentinel_reason(ctx);
    let survivors = triggers::list_surviving_sentinels(ctx).into_iter();
    events.extend(survivors.map(|source| warning(reason, format!("{source} {why}"))));
    events
}

pub(super) fn build_observation(
    kind: &'static str,
    status: bool,
    reason: &str,
    message: &str,
) -> DesiredCondition {
    DesiredCondition {
        kind,
        status: if status {
            ConditionStatus::True
        } else {
            ConditionStatus::False
        },
        reason: reason.to_owned(),
        message: message.to_owned(),
        heartbeat: false,
        shows_reason: false,
    }
}
