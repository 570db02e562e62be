//! Confirms off by two readings after an answered power-off. Source: specification §3.2, "Off is
//! confirmed when".

use std::time::Duration;

use super::bmc::{BmcFault, CommandAnswer, FaultClass, PowerCommand, PowerReading};
use super::bmc_crosscheck::{self, BmcCrosscheck};
use super::context::PowerContext;
use super::host::PendingCommand;
use super::readings::{ReadPace, next_poll_at, next_read_at};
use super::step::PowerStep;
use super::{PowerReason, machine_change, node_liveness, power_off, retry, status_times};
use crate::condition::ConditionStatus;
use crate::decision::EventSeverity;

/// Checks whether the power-off that was answered at `at` has taken effect.
pub(super) fn confirm_off(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    at: Duration,
) {
    let level = command.level;
    // Readings count only once no command of unknown end can undo what they show.
    let since = at.max(ctx.settled_at());
    let twice = ctx.two_off_readings(level, since, ctx.config.confirm);
    if twice.is_some_and(|(first, _)| ctx.is_reading_fresh(first)) {
        if let Some(node) = ctx.living_node() {
            node_liveness::report_contradiction(ctx, step, &node);
            return step.read_level_at(ctx, level, next_poll_at(ctx, level), "the next poll");
        }
        return match ctx.crosscheck_level(level) {
            BmcCrosscheck::Agrees => record_off_confirmed(ctx, step, command),
            BmcCrosscheck::NotAsked => wait_for_crosscheck(ctx, step, command, at),
            BmcCrosscheck::CannotBeAsked => wait_for_usable_bmc(ctx, step, level),
            BmcCrosscheck::Contradicts => handle_contradicted_level(ctx, step, command, at),
        };
    }
    if !ctx.is_read_off_since(level, at) {
        return wait_for_off(ctx, step, command, at);
    }
    if ctx.now.mono < since {
        let text = format!(
            "off, but an earlier command whose result is unknown could still run until {}",
            ctx.format_time_of(since)
        );
        step.set_busy(PowerReason::CommandOfUnknownEnd, text);
        bmc_crosscheck::request_crosscheck(ctx, step, level);
        return step.read_level_at(
            ctx,
            level,
            since,
            "the end of every command whose result is unknown",
        );
    }
    let next = match ctx.newest_reading_since(level, since) {
        Some(read) => read.answered.saturating_add(ctx.config.confirm),
        None => since,
    };
    let text = format!(
        "the BMC reported off once; read again at {}",
        ctx.format_time_of(next)
    );
    step.set_busy(PowerReason::ConfirmingOff, text);
    bmc_crosscheck::request_crosscheck(ctx, step, level);
    machine_change::request_identity(ctx, step, level);
    step.read_level_at(ctx, level, next, "the second reading of off");
}

fn wait_for_crosscheck(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    at: Duration,
) {
    let level = command.level;
    let text = format!(
        "{} reported off twice; reading the BMC for a contradiction",
        power_off::level_name(level)
    );
    step.set_busy(PowerReason::ConfirmingOff, text);
    bmc_crosscheck::request_crosscheck(ctx, step, level);
    let next = next_read_at(ctx, level, at, ReadPace::Slow);
    step.read_level_at(ctx, level, next, "whether the host is still off");
}

/// An outlet proves nothing of the machine: only the BMC could contradict it.
fn wait_for_usable_bmc(ctx: &PowerContext<'_>, step: &mut PowerStep, level: usize) {
    let text = format!(
        "{} reported off twice; this proves nothing before the BMC can be asked: see condition \
         PowerControlReady",
        power_off::level_name(level)
    );
    step.set_busy(PowerReason::ConfirmingOff, text);
    bmc_crosscheck::request_crosscheck(ctx, step, level);
    step.read_level_at(
        ctx,
        level,
        next_poll_at(ctx, level),
        "whether the host is still off",
    );
}

/// Treats the power-off as ineffective: what is off does not feed this machine.
fn handle_contradicted_level(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    at: Duration,
) {
    let level = command.level;
    let text = format!(
        "{} is off, but the BMC reports that the machine runs; correct the outlet in spec.power.levels",
        power_off::level_name(level)
    );
    step.add_event(
        EventSeverity::Warning,
        PowerReason::LevelContradictedByBMC,
        text.clone(),
    );
    let patience = at.saturating_add(ctx.config.settle);
    if ctx.now.mono >= patience {
        let fault = BmcFault::without_effect(FaultClass::Contradiction, text);
        retry::retry_or_change_level(ctx, step, command, patience, Some(&fault));
    } else {
        step.set_busy(PowerReason::LevelContradictedByBMC, text);
        step.wake_at(patience, "the limit for a level that the BMC contradicts");
        let next = next_read_at(ctx, level, at, ReadPace::Slow);
        step.read_level_at(ctx, level, next, "whether the host is still off");
    }
    bmc_crosscheck::request_crosscheck(ctx, step, level);
}

fn wait_for_off(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    at: Duration,
) {
    let level = command.level;
    let name = power_off::level_name(level);
    if command.command == PowerCommand::SoftOff {
        let left = ctx.config.soft.saturating_sub(ctx.need_age(command));
        let end = ctx.now.mono.saturating_add(left);
        let text = format!(
            "the operating system has until {} to shut down",
            ctx.format_time_of(end)
        );
        step.set_busy(PowerReason::SoftPowerOff, text);
        step.wake_at(end, "the end of a soft power-off");
        return step.read_level_at(
            ctx,
            level,
            next_read_at(ctx, level, at, ReadPace::Steady),
            "whether the operating system has shut down",
        );
    }
    let patience = at.saturating_add(ctx.config.command_effect_timeout());
    let is_on = ctx
        .newest_reading_since(level, at)
        .is_some_and(|read| read.result == Ok(PowerReading::On));
    if is_on && was_already_off(ctx, command) {
        // The host was not off, or came on later: no command is on its way that is worth a wait.
        return retry::retry_or_change_level(ctx, step, command, at, None);
    }
    if ctx.now.mono >= patience {
        return retry::retry_or_change_level(ctx, step, command, patience, None);
    }
    step.set_busy(
        PowerReason::PoweringOff,
        format!("{name} accepted a power-off; its power is read until it is off"),
    );
    step.wake_at(patience, "the limit for a power-off without effect");
    let pace = ReadPace::Fast { since: at };
    step.read_level_at(
        ctx,
        level,
        next_read_at(ctx, level, at, pace),
        "whether the host is off",
    );
}

fn record_off_confirmed(ctx: &PowerContext<'_>, step: &mut PowerStep, command: &PendingCommand) {
    let Some(at) = status_times::next_status_time(&step.status, ctx.now) else {
        return;
    };
    step.status.power.off_confirmed_at = Some(at);
    let was_off = was_already_off(ctx, command);
    let outcome = if was_off {
        PowerReason::AlreadyOff
    } else {
        PowerReason::PoweredOff
    };
    step.record_done(ctx, command, outcome);
    let text = format!(
        "off is confirmed by {}: it accepted {} and then reported off twice, {} apart",
        power_off::level_name(command.level),
        command.command,
        crate::duration::format_duration(ctx.config.confirm)
    );
    step.add_event(
        EventSeverity::Normal,
        PowerReason::OffConfirmed,
        text.clone(),
    );
    step.set_cause(ConditionStatus::True, PowerReason::OffConfirmed, text);
    step.is_busy = true;
}

fn was_already_off(ctx: &PowerContext<'_>, command: &PendingCommand) -> bool {
    let ours = ctx.seen.memory.command.as_ref();
    ours.filter(|ours| ours.id == command.id)
        .is_some_and(|ours| matches!(ours.ended, Some((_, Ok(CommandAnswer::AlreadyThere)))))
}
