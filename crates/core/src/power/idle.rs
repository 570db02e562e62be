//! Hosts for which nobody wants a proof and no power-on is under way.

use std::time::Duration;

use super::bmc::{BmcFault, PowerCommand, PowerReading};
use super::bmc_crosscheck::BmcCrosscheck;
use super::command_state::PowerCommandState;
use super::context::PowerContext;
use super::host::PendingCommand;
use super::node_liveness::NodeLiveness;
use super::readings::{ReadPace, next_poll_at, next_read_at, second_reading_at};
use super::step::{NextCommand, PowerStep};
use super::{PowerReason, cut_outlet, machine_change, node_liveness, off_confirmation, power_off};
use crate::condition::ConditionStatus;
use crate::decision::EventSeverity;
use crate::name::NodeName;

/// For a host without a pending command.
pub(super) fn watch_idle_host(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let Some(read) = ctx.newest_reading(0) else {
        return request_first_reading(ctx, step);
    };
    match &read.result {
        Ok(PowerReading::On) => {
            step.set_cause(
                ConditionStatus::True,
                PowerReason::AsWanted,
                "on, as spec.online requests",
            );
            step.read_level_at(ctx, 0, next_poll_at(ctx, 0), "the next poll");
        }
        Ok(PowerReading::PoweringOn | PowerReading::PoweringOff) => watch_foreign_change(ctx, step),
        Ok(PowerReading::Off) => handle_found_off(ctx, step),
        Err(fault) => report_unreadable(ctx, step, fault),
    }
}

fn request_first_reading(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    step.set_cause(
        ConditionStatus::Unknown,
        PowerReason::PowerUnknown,
        "its power has not been read yet",
    );
    step.read_level_at(ctx, 0, ctx.now.mono, "the first reading");
}

fn watch_foreign_change(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let text = "its power is changing, and Dogwatch did not command that";
    step.set_cause(ConditionStatus::Unknown, PowerReason::PowerUnknown, text);
    let next = next_read_at(ctx, 0, Duration::ZERO, ReadPace::Slow);
    step.read_level_at(ctx, 0, next, "the end of the power change");
}

fn report_unreadable(ctx: &PowerContext<'_>, step: &mut PowerStep, fault: &BmcFault) {
    let text = format!(
        "the power cannot be read: {fault}; do this: {}",
        fault.class.next_step()
    );
    step.set_cause(ConditionStatus::Unknown, PowerReason::PowerUnknown, text);
    step.read_level_at(ctx, 0, next_poll_at(ctx, 0), "the next poll");
}

/// The host reads off and Dogwatch did not cause it. A BMC that was reset reports off for a running
/// host until it has checked: only an off that lasts for the settle time counts. Then the host is
/// powered on, which changes nothing if it runs. Nobody asked for an off, so none is sent
/// (specification §3.2, "The plain rule").
fn handle_found_off(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let life = ctx.node_liveness();
    if let NodeLiveness::Lives(node) = &life {
        return handle_living_node(ctx, step, node);
    }
    node_liveness::observe_liveness(ctx, step);
    let since = ctx.settled_at();
    let twice = ctx.two_off_readings(0, since, ctx.config.settle);
    let is_twice = twice.is_some_and(|(_, second)| ctx.is_reading_fresh(second));
    if let (true, NodeLiveness::NotKnown { .. }) = (is_twice, &life) {
        return wait_for_node_silence(ctx, step);
    }
    if is_twice {
        let text = "found off, but spec.online requests on; it is powered on";
        step.add_event(EventSeverity::Warning, PowerReason::FoundOff, text);
        step.set_busy(PowerReason::FoundOff, text);
        return step.set_command(
            ctx,
            &NextCommand::begin_need(PowerCommand::On, 0, PowerReason::FoundOff),
        );
    }
    let read = ctx.newest_reading_since(0, since);
    let next = read.map_or(since, |read| read.answered + ctx.config.settle);
    let text = format!(
        "found off; it is powered on if it is still off at {}{}",
        ctx.format_time_of(next),
        describe_unread_leases(ctx)
    );
    step.set_cause(ConditionStatus::False, PowerReason::FoundOff, text);
    step.read_level_at(ctx, 0, next, "whether the host is really off");
}

/// Keeps reading the BMC: its answer may become true, or the Node may fall silent.
fn handle_living_node(ctx: &PowerContext<'_>, step: &mut PowerStep, node: &NodeName) {
    node_liveness::report_contradiction(ctx, step, node);
    step.read_level_at(ctx, 0, next_poll_at(ctx, 0), "the next poll");
}

fn wait_for_node_silence(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let text = match node_liveness::format_node_names(ctx) {
        none if none.is_empty() => "found off; reading which Node runs on it".to_owned(),
        nodes => format!("found off; checking {nodes}, which runs on it, for heartbeats"),
    };
    step.set_cause(ConditionStatus::False, PowerReason::FoundOff, text);
    let next = second_reading_at(ctx, 0).max(ctx.now.mono + ctx.config.confirm);
    step.wake_at(next, "whether its Node sends heartbeats");
}

fn describe_unread_leases(ctx: &PowerContext<'_>) -> String {
    let why = ctx.unread_leases_reason();
    why.map_or_else(String::new, |why| {
        format!("; the heartbeats of its Node cannot be read: {why}")
    })
}

/// `spec.online` is false, and nobody asked for a proof: a host that reads off gets no command.
pub(super) fn keep_offline(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    earlier: Option<&PendingCommand>,
) {
    let settled = ctx.settled_at();
    if let Some(command) = earlier
        && let PowerCommandState::UnderWay { until } = ctx.command_state(command)
    {
        return power_off::wait_for_command(step, command, until);
    }
    match ctx.newest_reading(0).map(|read| &read.result) {
        None => request_first_reading(ctx, step),
        Some(Ok(PowerReading::On)) => power_off::drive_off(ctx, step, PowerReason::NotOnline),
        Some(Ok(PowerReading::PoweringOn | PowerReading::PoweringOff)) => {
            watch_foreign_change(ctx, step);
        }
        Some(Ok(PowerReading::Off)) if earlier.is_some() => {
            let Some(command) = earlier.filter(|_| ctx.is_read_off_since(0, settled)) else {
                return wait_until_settled(ctx, step, 0);
            };
            close_command(ctx, step, command);
        }
        Some(Ok(PowerReading::Off)) => confirm_off_as_wanted(ctx, step),
        Some(Err(fault)) => report_unreadable(ctx, step, fault),
    }
}

fn confirm_off_as_wanted(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let life = ctx.node_liveness();
    if let NodeLiveness::Lives(node) = &life {
        return handle_living_node(ctx, step, node);
    }
    node_liveness::observe_liveness(ctx, step);
    if let (true, NodeLiveness::NotKnown { .. }) = (ctx.current_off_readings(0).is_some(), &life) {
        let text = "the BMC reported off twice; checking the Node that runs on it for heartbeats";
        step.set_cause(ConditionStatus::Unknown, PowerReason::ConfirmingOff, text);
        return step.read_level_at(ctx, 0, next_poll_at(ctx, 0), "the next poll");
    }
    if ctx.current_off_readings(0).is_some() {
        let text = "off, as spec.online is false; no command was needed";
        step.set_cause(ConditionStatus::True, PowerReason::AsWanted, text);
        return step.read_level_at(ctx, 0, next_poll_at(ctx, 0), "the next poll");
    }
    let next = second_reading_at(ctx, 0);
    let text = format!(
        "the BMC reported off once; read again at {}",
        ctx.format_time_of(next)
    );
    step.set_cause(ConditionStatus::Unknown, PowerReason::ConfirmingOff, text);
    step.read_level_at(ctx, 0, next, "the second reading of off");
}

/// The BMC may still run a command of unknown end: readings before the settle time decide nothing.
pub(super) fn wait_until_settled(ctx: &PowerContext<'_>, step: &mut PowerStep, level: usize) {
    let settled = ctx.settled_at();
    let text = format!(
        "{} reports off; a command whose result is unknown could still run until {}",
        power_off::level_name(level),
        ctx.format_time_of(settled)
    );
    step.set_cause(
        ConditionStatus::False,
        PowerReason::CommandOfUnknownEnd,
        text,
    );
    let next = next_read_at(ctx, level, settled, ReadPace::Slow);
    step.read_level_at(
        ctx,
        level,
        next,
        "the end of every command whose result is unknown",
    );
}

/// The power-off is not wanted any more, so it is not sent again. If the BMC answered it, readings
/// prove the off; any other host that reads off is powered on again.
pub(super) fn withdraw_power_off(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
) {
    let level = command.level;
    let standing = ctx.command_state(command);
    let since = match standing {
        PowerCommandState::UnderWay { until } => {
            return power_off::wait_for_command(step, command, until);
        }
        PowerCommandState::Unsent { .. } if command.before == 0 => {
            return close_command(ctx, step, command);
        }
        PowerCommandState::Answered { at } | PowerCommandState::Failed { at, .. } => at,
        PowerCommandState::Unsent { .. } | PowerCommandState::Unknown { .. } => ctx.settled_at(),
    };
    let text = format!(
        "{} is no longer needed; its result is being read",
        command.command
    );
    step.set_cause(ConditionStatus::False, PowerReason::Withdrawn, text);
    machine_change::warn_of_former_machine(ctx, step);
    let Some(read) = ctx.newest_reading_since(level, since) else {
        let next = next_read_at(ctx, level, since, ReadPace::Slow);
        return step.read_level_at(ctx, level, next, "whether it is on");
    };
    if read.is_off() {
        return handle_withdrawn_off(ctx, step, command, &standing);
    }
    // If it were cleared earlier, the next leader would not know that the BMC may still run it.
    let is_settled = ctx.now.mono >= ctx.settled_at();
    if is_settled && is_command_over(ctx, command, &standing) && read.result == Ok(PowerReading::On)
    {
        return close_command(ctx, step, command);
    }
    let next = next_read_at(ctx, level, since, ReadPace::Slow);
    step.read_level_at(ctx, level, next, "whether it stays on");
}

/// The withdrawn power-off took effect, or the host was off before.
fn handle_withdrawn_off(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    standing: &PowerCommandState,
) {
    let level = command.level;
    let can_be_proved = match ctx.crosscheck_level(level) {
        BmcCrosscheck::Agrees | BmcCrosscheck::NotAsked => true,
        BmcCrosscheck::CannotBeAsked | BmcCrosscheck::Contradicts => false,
    };
    if let PowerCommandState::Answered { at } = *standing
        && can_be_proved
    {
        return off_confirmation::confirm_off(ctx, step, command, at);
    }
    if ctx.now.mono < ctx.settled_at() {
        return wait_until_settled(ctx, step, level);
    }
    if level == 0 {
        return close_command(ctx, step, command);
    }
    restore_level(ctx, step, level);
}

/// Gives a further level that is off its power back: only the level that cut it can do that.
pub(super) fn restore_level(ctx: &PowerContext<'_>, step: &mut PowerStep, level: usize) {
    let text = format!("{} is off and should be on", power_off::level_name(level));
    step.add_event(EventSeverity::Warning, PowerReason::FoundOff, text.clone());
    step.set_busy(PowerReason::FoundOff, text);
    step.set_command(
        ctx,
        &NextCommand::begin_need(PowerCommand::On, level, PowerReason::FoundOff),
    );
}

/// Whether the power-off can have no effect any more.
fn is_command_over(
    ctx: &PowerContext<'_>,
    command: &PendingCommand,
    standing: &PowerCommandState,
) -> bool {
    match standing {
        PowerCommandState::Answered { .. } if command.command == PowerCommand::SoftOff => {
            ctx.need_age(command) >= ctx.config.soft
        }
        PowerCommandState::Answered { at } => ctx.now.mono >= at.saturating_add(ctx.config.settle),
        PowerCommandState::Unsent { .. }
        | PowerCommandState::Failed { .. }
        | PowerCommandState::Unknown { .. } => true,
        PowerCommandState::UnderWay { .. } => false,
    }
}

pub(super) fn close_command(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
) {
    step.record_done(ctx, command, PowerReason::Withdrawn);
    cut_outlet::report_changed_outlet(ctx, step, command);
    step.status.power.command = None;
    step.status.power.confirmed_for.clear();
    let is_outlet_gone = ctx.is_cut_outlet_gone(command);
    let effect = if is_outlet_gone {
        ""
    } else {
        " and had no effect"
    };
    let text = format!("{} is no longer needed{effect}", command.command);
    step.add_event(EventSeverity::Normal, PowerReason::Withdrawn, text.clone());
    step.set_cause(ConditionStatus::Unknown, PowerReason::Withdrawn, text);
    step.read_level_at(ctx, 0, next_poll_at(ctx, 0), "the next poll");
}
