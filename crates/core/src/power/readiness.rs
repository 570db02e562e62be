//! Checks whether power control works, before it is needed. Source: specification §3.3.

use std::time::Duration;

use super::annotations::format_names;
use super::context::PowerContext;
use super::decide::PowerObserve;
use super::refusal::{self, PowerRefusal, PowerReporting};
use super::snapshot::LevelAccess;
use super::step::PowerStep;
use super::{PowerReason, machine_change, node_liveness, power_off};
use crate::backoff::spread_pause;
use crate::condition::{ConditionStatus, DesiredCondition};

/// The pause after a failed check: a person who repairs something wants to see the result.
const RECHECK_AFTER_FAILURE: Duration = Duration::from_mins(1);

/// Checks each usable level, at a low rate. Never while a power-off needs the BMC.
pub(super) fn check_levels(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    for level in 0..ctx.seen.host.levels.len() {
        check_level(ctx, step, level);
    }
}

pub(super) fn check_level(ctx: &PowerContext<'_>, step: &mut PowerStep, level: usize) {
    if !ctx.is_level_usable(level) {
        return;
    }
    let due = next_check_at(ctx, level);
    if due <= ctx.now.mono {
        step.observe.push(PowerObserve::Check { level });
    } else {
        step.wake_at(due, "the next check of power control");
    }
}

fn next_check_at(ctx: &PowerContext<'_>, level: usize) -> Duration {
    let check = ctx.seen.memory.checks.get(level).and_then(Option::as_ref);
    let Some(check) = check else {
        return Duration::ZERO;
    };
    let every = match &check.found {
        Ok(()) => ctx.config.check,
        Err(_) => ctx.config.check.min(RECHECK_AFTER_FAILURE),
    };
    check.at.saturating_add(spread_pause(every, ctx.jitter))
}

pub(super) fn ready_condition(
    ctx: &PowerContext<'_>,
    refusal: Option<&PowerRefusal>,
) -> DesiredCondition {
    let (status, reason, message) = match refusal {
        Some(PowerRefusal {
            reporting: PowerReporting::Nothing | PowerReporting::Metal3Managed,
            reason,
            message,
        }) => (ConditionStatus::Unknown, *reason, message.clone()),
        Some(refusal) => (
            ConditionStatus::False,
            refusal.reason,
            refusal.message.clone(),
        ),
        None => readiness_of_levels(ctx),
    };
    DesiredCondition {
        kind: "PowerControlReady",
        status,
        reason: reason.to_string(),
        message,
        heartbeat: false,
        shows_reason: false,
    }
}

fn readiness_of_levels(ctx: &PowerContext<'_>) -> (ConditionStatus, PowerReason, String) {
    if ctx.seen.host.disable_power_off {
        let text = refusal::POWER_OFF_DISABLED_TEXT.to_owned();
        return (ConditionStatus::False, PowerReason::PowerOffDisabled, text);
    }
    if !ctx.seen.same_system.is_empty() {
        return (
            ConditionStatus::False,
            PowerReason::SameSystemUUID,
            describe_same_system(ctx),
        );
    }
    let command = ctx.pending_command();
    let command = command.filter(|command| command.command.is_power_off());
    let other_machine = command.and_then(|command| {
        let mut levels = [command.level, 0].into_iter();
        levels.find_map(|level| ctx.unaccepted_change(command, level))
    });
    if let Some((level, change)) = other_machine {
        let text = machine_change::describe_change(ctx, level, change);
        let reason = PowerReason::OtherMachineAnswers;
        return (ConditionStatus::False, reason, text);
    }
    if let Some(node) = ctx.living_node() {
        let text = node_liveness::contradiction_message(&node);
        return (ConditionStatus::False, PowerReason::PowerContradicted, text);
    }
    let all: Vec<_> = (0..ctx.seen.host.levels.len())
        .map(|level| readiness_of_level(ctx, level))
        .collect();
    let worst = |status| all.iter().find(|(is, _, _)| *is == status).cloned();
    worst(ConditionStatus::False)
        .or_else(|| worst(ConditionStatus::Unknown))
        .unwrap_or_else(|| {
            (
                ConditionStatus::True,
                PowerReason::Checked,
                "power control was checked and works".to_owned(),
            )
        })
}

fn describe_same_system(ctx: &PowerContext<'_>) -> String {
    let others: Vec<String> = ctx
        .seen
        .same_system
        .iter()
        .map(ToString::to_string)
        .collect();
    let others = format_names(&others);
    format!(
        "its BMC reports the same system UUID as the BMC of {others}, which reported it first: \
         Dogwatch cannot prove this host off; correct the wrong address, or the UUID"
    )
}

fn readiness_of_level(
    ctx: &PowerContext<'_>,
    level: usize,
) -> (ConditionStatus, PowerReason, String) {
    let name = power_off::level_name(level);
    let devices = &ctx.seen.host.levels[level].devices;
    if let Some(Err(bad)) = devices
        .iter()
        .map(|device| &device.address)
        .find(|address| address.is_err())
    {
        let text = format!("{bad}; correct it");
        return (ConditionStatus::False, PowerReason::InvalidBMCAddress, text);
    }
    if let Some(LevelAccess::Missing { reason, message }) = ctx.seen.access.get(level) {
        return (
            ConditionStatus::False,
            *reason,
            format!("{name}: {message}"),
        );
    }
    let check = ctx.seen.memory.checks.get(level).and_then(Option::as_ref);
    let read = ctx
        .newest_reading(level)
        .map(|read| (read.answered, read.result.as_ref().err()));
    let found = check.map(|check| (check.at, check.found.as_ref().err()));
    // A failed reading says as much as a failed check; a successful one says nothing of commands.
    let newest_failure = read
        .filter(|(at, fault)| fault.is_some() && found.is_none_or(|(checked, _)| *at > checked));
    match newest_failure.or(found) {
        None => (
            ConditionStatus::Unknown,
            PowerReason::NotCheckedYet,
            format!("{name} has not been checked yet"),
        ),
        Some((_, None)) => (ConditionStatus::True, PowerReason::Checked, String::new()),
        Some((_, Some(fault))) => {
            let text = format!("{name}: {fault}; do this: {}", fault.class.next_step());
            (ConditionStatus::False, fault.class.power_reason(), text)
        }
    }
}
