//! Drives a power-on, and repeats it until it takes effect. Source: specification §3.2, "A power-on
//! that did not take: sent again, and said".

use std::time::Duration;

use super::bmc::{BmcFault, PowerCommand, PowerReading};
use super::command_state::PowerCommandState;
use super::context::PowerContext;
use super::host::PendingCommand;
use super::readings::{ReadPace, next_poll_at, next_read_at};
use super::step::{NextCommand, PowerStep};
use super::{PowerReason, machine_change, node_liveness, power_off, retry};
use crate::condition::ConditionStatus;
use crate::decision::EventSeverity;
use crate::name::NodeName;

/// BMCs start within one to five minutes after they get power.
const BMC_START_PATIENCE: Duration = Duration::from_mins(10);

pub(super) fn drive_on(ctx: &PowerContext<'_>, step: &mut PowerStep, command: &PendingCommand) {
    let standing = ctx.command_state(command);
    let has_ended = !matches!(standing, PowerCommandState::UnderWay { .. });
    // A further level that is off while the Node lives is another machine's: it gets its power back.
    let is_bmc = command.level == 0;
    if let Some(node) = ctx.living_node().filter(|_| has_ended && is_bmc) {
        return handle_living_node(ctx, step, command, &node);
    }
    match standing {
        PowerCommandState::UnderWay { until } => power_off::wait_for_command(step, command, until),
        PowerCommandState::Unsent { may_go: true } => power_off::send_command(step, command),
        PowerCommandState::Unsent { may_go: false } => {
            repeat_power_on(ctx, step, command.level, PowerReason::PoweringOn);
        }
        PowerCommandState::Answered { .. }
        | PowerCommandState::Failed { .. }
        | PowerCommandState::Unknown { .. }
            if is_read_on(ctx, 0, ctx.need_seen_at(command)) =>
        {
            finish_power_on(ctx, step, command);
        }
        PowerCommandState::Answered { at } => handle_answered(ctx, step, command, at),
        PowerCommandState::Failed { at, fault } => {
            handle_failed(ctx, step, command, at, fault.as_ref());
        }
        PowerCommandState::Unknown { at, is_foreign } => {
            handle_unknown_end(ctx, step, command, at, is_foreign);
        }
    }
}

/// The BMC says off, but the Node lives: the host is not powered on again and again.
fn handle_living_node(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    node: &NodeName,
) {
    node_liveness::report_contradiction(ctx, step, node);
    let settled = ctx.settled_at();
    if ctx.now.mono < settled {
        return step.wake_at(settled, "the end of every command whose result is unknown");
    }
    step.record_done(ctx, command, PowerReason::PowerContradicted);
    step.status.power.command = None;
}

fn is_read_on(ctx: &PowerContext<'_>, level: usize, since: Duration) -> bool {
    let read = ctx.newest_reading_since(level, since);
    read.is_some_and(|read| read.result == Ok(PowerReading::On))
}

fn finish_power_on(ctx: &PowerContext<'_>, step: &mut PowerStep, command: &PendingCommand) {
    step.set_cause(ConditionStatus::True, PowerReason::PoweredOn, "powered on");
    step.read_level_at(ctx, 0, next_poll_at(ctx, 0), "the next poll");
    let settled = ctx.settled_at();
    if ctx.now.mono < settled {
        // If it were cleared now, the next leader would not know that the BMC may still run a
        // power-on.
        return step.wake_at(settled, "the end of every command whose result is unknown");
    }
    machine_change::warn_of_former_machine(ctx, step);
    step.record_done(ctx, command, PowerReason::PoweredOn);
    step.status.power.command = None;
    let tries = command.attempt;
    let text = format!(
        "powered on by {}, try {tries}",
        power_off::level_name(command.level)
    );
    step.add_event(EventSeverity::Normal, PowerReason::PoweredOn, text);
}

pub(super) fn repeat_power_on(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    level: usize,
    why: PowerReason,
) {
    step.set_busy(
        why,
        format!("PowerOn is sent to {}", power_off::level_name(level)),
    );
    let command = PowerCommand::On;
    step.set_command(ctx, &NextCommand::continue_need(command, level, why));
}

fn handle_answered(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    at: Duration,
) {
    let level = command.level;
    if level > 0 && is_read_on(ctx, level, at) {
        return wait_for_first_level(ctx, step, command, at);
    }
    let said = ctx.newest_reading_since(level, at).map(|read| &read.result);
    let is_coming = matches!(said, Some(Ok(PowerReading::PoweringOn)));
    let patience = at
        + if is_coming {
            ctx.config.soft
        } else {
            ctx.config.command_effect_timeout()
        };
    if ctx.now.mono >= patience {
        return handle_failed(ctx, step, command, patience, None);
    }
    let text = format!(
        "{} accepted a power-on; its power is read until it is on",
        power_off::level_name(level)
    );
    step.set_busy(PowerReason::PoweringOn, text);
    step.wake_at(patience, "the limit for a power-on without effect");
    step.read_level_at(
        ctx,
        level,
        next_read_at(ctx, level, at, ReadPace::Steady),
        "whether it is on",
    );
}

/// The level that cut the power has restored it. Now the BMC is read; it may have to boot first.
fn wait_for_first_level(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    at: Duration,
) {
    let gave = power_off::level_name(command.level);
    if ctx.is_read_off_since(0, at) {
        machine_change::warn_of_former_machine(ctx, step);
        step.add_event(
            EventSeverity::Normal,
            PowerReason::PoweringOn,
            format!("{gave} supplies power again; the BMC reports off: the host is powered on"),
        );
        return repeat_power_on(ctx, step, 0, PowerReason::PoweringOn);
    }
    let mut text = format!("{gave} supplies power again; waiting for the BMC's answer");
    let patience = at.saturating_add(BMC_START_PATIENCE);
    if ctx.now.mono >= patience {
        text = format!(
            "{gave} supplies power again, but the BMC has not answered since {}: check whether another outlet \
             feeds it, and its address",
            ctx.format_time_of(at)
        );
        let reason = PowerReason::Unreachable;
        step.add_event(EventSeverity::Warning, reason, text.clone());
    } else {
        step.wake_at(patience, "the limit for a BMC that starts");
    }
    step.set_busy(PowerReason::PoweringOn, text);
    step.read_level_at(
        ctx,
        0,
        next_read_at(ctx, 0, at, ReadPace::Slow),
        "whether it is on",
    );
}

fn handle_failed(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    at: Duration,
    fault: Option<&BmcFault>,
) {
    let level = command.level;
    if ctx.is_read_off_since(level, at) {
        node_liveness::observe_liveness(ctx, step);
    }
    let said = fault.map_or_else(|| "it is not on".to_owned(), ToString::to_string);
    let pause = at.saturating_add(retry::backoff_duration(ctx, command, fault));
    let name = power_off::level_name(level);
    if ctx.now.mono < pause || ctx.newest_reading_since(level, at).is_none() {
        let text = format!(
            "PowerOn to {name} had no effect ({said}), try {}; the next one at {}",
            command.attempt,
            ctx.format_time_of(pause)
        );
        step.set_busy(PowerReason::BackingOff, text);
        step.wake_at(pause.max(ctx.now.mono), "the next try of a power-on");
        return step.read_level_at(
            ctx,
            level,
            next_read_at(ctx, level, at, ReadPace::Slow),
            "whether it is on",
        );
    }
    let text = format!(
        "PowerOn to {name} is sent again: {said}, try {}",
        command.attempt
    );
    step.add_event(EventSeverity::Warning, PowerReason::PowerOnRetried, text);
    machine_change::warn_of_former_machine(ctx, step);
    repeat_power_on(ctx, step, level, PowerReason::PowerOnRetried);
}

/// The BMC may still run the power-on. Pressing a power button twice turns a host off, so it is
/// sent again only once no earlier power-on can run any more and a reading shows that it had no
/// effect.
fn handle_unknown_end(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    at: Duration,
    is_foreign: bool,
) {
    let level = command.level;
    if level > 0 && is_read_on(ctx, level, at) {
        return wait_for_first_level(ctx, step, command, at);
    }
    let settled = at.saturating_add(ctx.config.settle);
    if ctx.is_read_off_since(level, settled) {
        return handle_failed(ctx, step, command, settled, None);
    }
    let reason = if is_foreign {
        PowerReason::TakingOver
    } else {
        PowerReason::CommandOfUnknownEnd
    };
    let text = format!(
        "it is unknown whether {} received PowerOn; its power is read first",
        power_off::level_name(level)
    );
    step.set_busy(reason, text);
    if ctx.now.mono < settled {
        step.wake_at(settled, "the time in which a BMC may still run a command");
        return step.read_level_at(
            ctx,
            level,
            next_read_at(ctx, level, at, ReadPace::Steady),
            "whether it is on",
        );
    }
    step.read_level_at(
        ctx,
        level,
        next_read_at(ctx, level, settled, ReadPace::Slow),
        "whether it is on",
    );
}
