//! What a person should see: the Node's conditions and Events.
//!
//! Source: specification §2.5; the names of the conditions are those of KEP-5683.

use super::record::{Outcome, Parsed, Phase};
use super::step::Step;
use super::{Context, Decision, reason, triggers};
use crate::condition::{Observation, Status};
use crate::decision::{Event, Report, Severity};

const MAINTENANCE_PLANNED: &str = "MaintenancePlanned";
const DRAIN_IN_PROGRESS: &str = "DrainInProgress";
const DRAINED: &str = "Drained";
const MAINTENANCE_IN_PROGRESS: &str = "MaintenanceInProgress";
const SENTINEL_SURVIVED_REBOOT: &str = "SentinelSurvivedReboot";
const REBOOT_TRIGGER_UNKNOWN: &str = "RebootTriggerUnknown";

/// The host's boot id cannot be read: nothing is begun, and it is said where a person looks.
pub(super) fn boot_id_unreadable(why: &str) -> Decision {
    let step = Step::new(reason::BOOT_ID_UNREADABLE, why).warn();
    let observation = observe(
        REBOOT_TRIGGER_UNKNOWN,
        true,
        reason::BOOT_ID_UNREADABLE,
        why,
    );
    let report = Report {
        conditions: vec![observation],
        events: step.events.clone(),
    };
    step.into_decision(report)
}

/// The report that goes with a step.
pub(super) fn report(ctx: &Context<'_>, step: &Step) -> Report {
    let mut conditions = phase_conditions(ctx, step);
    conditions.push(survived(ctx));
    conditions.push(unknown(ctx));
    let mut events = step.events.clone();
    events.extend(phase_event(ctx));
    events.extend(trouble(ctx));
    Report { conditions, events }
}

/// What is true of each condition in each phase. The reason and the message of the step stand on
/// the one that a person would look at first.
fn phase_conditions(ctx: &Context<'_>, step: &Step) -> Vec<Observation> {
    let (planned, draining, drained, maintenance) = flags(ctx);
    let lead = lead(ctx);
    let one = |kind, status: bool| {
        if kind == lead {
            let reason = settled_reason(ctx, step);
            return Observation {
                heartbeat: at_work(ctx),
                ..observe(kind, status, reason, &settled_message(step))
            };
        }
        let (reason, message) = standing(ctx, kind, status);
        observe(kind, status, reason, &message)
    };
    vec![
        one(MAINTENANCE_PLANNED, planned),
        one(DRAIN_IN_PROGRESS, draining),
        one(DRAINED, drained),
        one(MAINTENANCE_IN_PROGRESS, maintenance),
    ]
}

fn flags(ctx: &Context<'_>) -> (bool, bool, bool, bool) {
    let forced = ctx.node.record.get().is_some_and(|record| record.forced);
    match ctx.node.record.get().map(|record| record.phase) {
        None => (
            matches!(ctx.node.record, Parsed::Bad { .. }),
            false,
            false,
            false,
        ),
        Some(Phase::Waiting) => (true, false, false, false),
        Some(Phase::Draining) => (true, true, false, false),
        Some(Phase::Rebooting) => (true, false, !forced, true),
        Some(Phase::Returning) => (true, false, ctx.node.unschedulable, true),
    }
}

/// From the cordon until the lock is free the healer must be able to tell this coordinator from a
/// dead one. While it waits it holds nothing, and thousands may.
fn at_work(ctx: &Context<'_>) -> bool {
    let phase = ctx.node.record.get().map(|record| record.phase);
    phase.is_some_and(|phase| phase > Phase::Waiting)
}

/// The condition that carries the step's own reason.
fn lead(ctx: &Context<'_>) -> &'static str {
    match ctx.node.record.get().map(|record| record.phase) {
        None | Some(Phase::Waiting) => MAINTENANCE_PLANNED,
        Some(Phase::Draining) => DRAIN_IN_PROGRESS,
        Some(Phase::Rebooting | Phase::Returning) => MAINTENANCE_IN_PROGRESS,
    }
}

/// Reasons that pass within milliseconds are not worth a write each: they stand as the phase.
fn settled_reason(ctx: &Context<'_>, step: &Step) -> &'static str {
    if !ctx.seen.trouble.is_empty() && !step.looks.is_empty() {
        return reason::TROUBLE;
    }
    match step.because.reason {
        reason::LOOKING_AT_LOCK
        | reason::LOOKING_AT_POLICIES
        | reason::LOOKING_AT_GATES
        | reason::BIDDING
        | reason::NOT_OUR_TURN
        | reason::COUNTING
        | reason::ADOPTING => reason::PLANNED,
        reason::UNCORDONING | reason::SETTLING | reason::RELEASING => reason::BOOTED,
        reason::IDLE => outcome(ctx),
        other => other,
    }
}

/// Who holds the lock changes with each handover: named in a condition, it would cost a write of each waiter.
pub const WAITS_FOR_LOCK: &str = "waits for the lock; `dogwatch explain` tells who holds it";

/// A sentence that belongs to the reason it is written with.
fn settled_message(step: &Step) -> String {
    let message = &step.because.message;
    match step.because.reason {
        reason::LOCK_HELD => WAITS_FOR_LOCK.to_owned(),
        reason::SETTLING => format!("booted anew; {message}"),
        _ => message.clone(),
    }
}

/// The reason of a condition that is not the leading one: short, and the same all through a phase.
fn standing(ctx: &Context<'_>, kind: &'static str, status: bool) -> (&'static str, String) {
    let Some(record) = ctx.node.record.get() else {
        return (outcome(ctx), String::new());
    };
    match (kind, status) {
        (MAINTENANCE_PLANNED, true) => (
            reason::PLANNED,
            format!(
                "{}: {}",
                record.trigger.source,
                super::idle::one_line(&record.trigger.reason)
            ),
        ),
        (DRAINED, true) => (reason::REBOOTING, all_gone(&record.message)),
        (_, true) => (record_reason(record.phase), record.message.clone()),
        (_, false) => (record_reason(record.phase), String::new()),
    }
}

/// With what the record says of volumes and pods that stayed.
fn all_gone(message: &str) -> String {
    let gone = "every pod that has to go is gone";
    match message.strip_prefix("drained; ") {
        None => gone.to_owned(),
        Some(but) => format!("{gone}; {but}"),
    }
}

/// The reason of every condition while nothing is under way.
fn outcome(ctx: &Context<'_>) -> &'static str {
    ctx.node
        .last
        .get()
        .map_or(reason::IDLE, |last| last.outcome.as_str())
}

fn record_reason(phase: Phase) -> &'static str {
    match phase {
        Phase::Waiting => reason::PLANNED,
        Phase::Draining => reason::DRAINING,
        Phase::Rebooting => reason::REBOOTING,
        Phase::Returning => reason::BOOTED,
    }
}

fn survived(ctx: &Context<'_>) -> Observation {
    let survivors = triggers::survivors(ctx);
    if survivors.is_empty() {
        return observe(SENTINEL_SURVIVED_REBOOT, false, reason::IDLE, "");
    }
    let (reason, why) = why_served(ctx);
    let message = format!(
        "{} {why}: remove it, or touch it anew for another reboot",
        survivors.join(", ")
    );
    observe(SENTINEL_SURVIVED_REBOOT, true, reason, &message)
}

/// Why a sentinel that is there causes nothing.
fn why_served(ctx: &Context<'_>) -> (&'static str, &'static str) {
    let last = ctx.node.last.get();
    if last.is_some_and(|last| last.outcome == Outcome::Aborted) {
        let why = "is still there, unchanged, but a person stopped the reboot that it asked for";
        return (reason::ABORTED, why);
    }
    let why = "is still there, unchanged, after the boot it caused";
    (reason::SENTINEL_SURVIVED, why)
}

fn unknown(ctx: &Context<'_>) -> Observation {
    let mut unknowns = triggers::unknowns(ctx);
    if let Parsed::Bad { why } = &ctx.node.request {
        unknowns.push(format!("annotation dogwatch.dev/reboot-requested: {why}"));
    }
    unknowns.extend(last_unreadable(ctx));
    let there = !unknowns.is_empty();
    observe(
        REBOOT_TRIGGER_UNKNOWN,
        there,
        if there {
            reason::TRIGGER_UNKNOWN
        } else {
            reason::IDLE
        },
        &unknowns.join("; "),
    )
}

/// Which sentinels were served is written there: without it none is believed.
fn last_unreadable(ctx: &Context<'_>) -> Option<String> {
    let Parsed::Bad { why } = &ctx.node.last else {
        return None;
    };
    Some(format!(
        "annotation dogwatch.dev/last-reboot cannot be read, so no sentinel is believed: mend or remove it ({why})"
    ))
}

/// Says each transition once, from what stands: `since` makes it a new sentence each time.
fn phase_event(ctx: &Context<'_>) -> Option<Event> {
    let record = ctx.node.record.get()?;
    let trigger = &record.trigger;
    let (reason, message) = match record.phase {
        Phase::Waiting if record.retry_after.is_some() => return None,
        Phase::Waiting => (
            reason::PLANNED,
            format!(
                "{} wants a reboot ({}); waits for the lock",
                trigger.source,
                super::idle::one_line(&trigger.reason)
            ),
        ),
        Phase::Draining => (reason::DRAINING, record.message.clone()),
        Phase::Rebooting => (
            reason::REBOOTING,
            format!("attempt {}: {}", record.attempts, record.message),
        ),
        Phase::Returning => (
            reason::BOOTED,
            format!("booted anew: {} → {}", record.boot_id, ctx.boot),
        ),
    };
    Some(Event {
        severity: Severity::Normal,
        reason,
        message,
    })
}

fn trouble(ctx: &Context<'_>) -> Vec<Event> {
    let warning = |reason, message| Event {
        severity: Severity::Warning,
        reason,
        message,
    };
    let mut events: Vec<Event> = triggers::unknowns(ctx)
        .into_iter()
        .map(|text| warning(reason::TRIGGER_UNKNOWN, text))
        .collect();
    if let Parsed::Bad { why } = &ctx.node.request {
        events.push(warning(
            reason::REQUEST_UNREADABLE,
            format!("annotation dogwatch.dev/reboot-requested is left alone: {why}"),
        ));
    }
    events.extend(last_unreadable(ctx).map(|text| warning(reason::TRIGGER_UNKNOWN, text)));
    events.extend(
        ctx.seen
            .trouble
            .iter()
            .map(|(what, why)| warning(reason::TROUBLE, format!("{what}: {why}"))),
    );
    let (reason, why) = why_served(ctx);
    let survivors = triggers::survivors(ctx).into_iter();
    events.extend(survivors.map(|source| warning(reason, format!("{source} {why}"))));
    events
}

fn observe(kind: &'static str, status: bool, reason: &str, message: &str) -> Observation {
    Observation {
        kind,
        status: if status { Status::True } else { Status::False },
        reason: reason.to_owned(),
        message: message.to_owned(),
        heartbeat: false,
    }
}
