//! Drives a host to a confirmed off: soft, hard, the next level, and the two readings.
//!
//! Source: specification §3.2, "Soft first with one deadline, then hard" and "Off is confirmed
//! when".

use std::time::Duration;

use super::annotations::format_names;
use super::bmc::{BmcFault, FaultClass, PowerCommand};
use super::command_state::PowerCommandState;
use super::context::PowerContext;
use super::decide::PowerAction;
use super::host::PendingCommand;
use super::machine_change::MachineChange;
use super::step::{NextCommand, PowerStep};
use super::{
    PowerReason, idle, machine_change, off_confirmation, provisioner_work, retry, takeover,
};
use crate::decision::EventSeverity;

/// For a host that must be off and has no confirmed off. `why` is the reason of a need that begins.
pub(super) fn drive_off(ctx: &PowerContext<'_>, step: &mut PowerStep, why: PowerReason) {
    match ctx.pending_command() {
        Some(command) if command.command.is_power_off() => match ctx.machine_change(command) {
            Some(change) => handle_machine_change(ctx, step, command, change, why),
            None if provisioner_work::is_command_superseded(ctx, command) => {
                restart_power_off(ctx, step, command, why);
            }
            None => continue_power_off(ctx, step, command),
        },
        Some(on) => match ctx.command_state(on) {
            PowerCommandState::UnderWay { until } => wait_for_command(step, on, until),
            PowerCommandState::Unsent { .. }
            | PowerCommandState::Answered { .. }
            | PowerCommandState::Failed { .. }
            | PowerCommandState::Unknown { .. } => {
                step.record_done(ctx, on, PowerReason::Withdrawn);
                begin_power_off(ctx, step, why);
            }
        },
        None => begin_power_off(ctx, step, why),
    }
}

/// The power-off was meant for the machine that answered before. If the one that is there now is
/// meant, a new power-off begins.
fn handle_machine_change(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    change: &MachineChange,
    why: PowerReason,
) {
    let is_under_way = matches!(
        ctx.command_state(command),
        PowerCommandState::UnderWay { .. }
    );
    if !is_under_way && !ctx.is_change_accepted(change) {
        return machine_change::refuse_other_machine(ctx, step, command.level, change);
    }
    restart_power_off(ctx, step, command, why);
}

/// Begins a new power-off in the place of one that says nothing of the host as it is now.
fn restart_power_off(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    why: PowerReason,
) {
    if let PowerCommandState::UnderWay { until } = ctx.command_state(command) {
        return wait_for_command(step, command, until);
    }
    step.record_done(ctx, command, PowerReason::Withdrawn);
    begin_power_off(ctx, step, why);
}

/// Sends the first command of a need.
pub(super) fn begin_power_off(ctx: &PowerContext<'_>, step: &mut PowerStep, why: PowerReason) {
    let level = ctx.pending_command().map_or(0, |earlier| earlier.level);
    let level = if ctx.is_level_usable(level) { level } else { 0 };
    let can = choose_shutdown(ctx, level);
    let (command, text) = match can {
        ShutdownChoice::Soft => (
            PowerCommand::SoftOff,
            "the operating system is asked to shut down".to_owned(),
        ),
        ShutdownChoice::HardWanted => (PowerCommand::Off, "the power is cut: mode hard".to_owned()),
        ShutdownChoice::Unsupported => {
            let text = format!(
                "{} does not support a soft power-off; the power is cut",
                level_name(level)
            );
            step.add_event(
                EventSeverity::Normal,
                PowerReason::SoftPowerOffUnsupported,
                text.clone(),
            );
            (PowerCommand::Off, text)
        }
    };
    let reason = if command == PowerCommand::SoftOff {
        PowerReason::SoftPowerOff
    } else {
        PowerReason::PoweringOff
    };
    step.set_busy(reason, format!("{}: {text}", describe_cause(ctx, why)));
    step.add_event(
        EventSeverity::Normal,
        reason,
        format!("{}: {text}", describe_cause(ctx, why)),
    );
    step.set_command(ctx, &NextCommand::begin_need(command, level, why));
}

enum ShutdownChoice {
    Soft,
    HardWanted,
    Unsupported,
}

fn choose_shutdown(ctx: &PowerContext<'_>, level: usize) -> ShutdownChoice {
    if ctx.is_hard_wanted() {
        return ShutdownChoice::HardWanted;
    }
    match ctx.bmc_info(level) {
        Some(about) if !about.supports_command(PowerCommand::SoftOff) => {
            ShutdownChoice::Unsupported
        }
        // A device that cuts power beside the BMC cannot ask the operating system.
        _ if level > 0 => ShutdownChoice::Unsupported,
        Some(_) | None => ShutdownChoice::Soft,
    }
}

/// Why the host must be off, as a person would say it.
pub(super) fn describe_cause(ctx: &PowerContext<'_>, why: PowerReason) -> String {
    let names: Vec<&str> = ctx
        .obeyed_annotations()
        .map(|request| request.name.as_str())
        .collect();
    if why == PowerReason::FoundOn {
        "found on although it is kept off".to_owned()
    } else if !names.is_empty() {
        format!("requested by {}", format_names(&names))
    } else if why == PowerReason::NotOnline {
        "spec.online is false".to_owned()
    } else {
        "a reboot is pending".to_owned()
    }
}

pub(super) fn level_name(level: usize) -> String {
    match level {
        0 => "the BMC".to_owned(),
        level => format!("level {level}"),
    }
}

/// No second command is sent while one is under way: the call has a deadline.
pub(super) fn wait_for_command(step: &mut PowerStep, command: &PendingCommand, until: Duration) {
    let text = format!(
        "{} is being sent to {}",
        command.command,
        level_name(command.level)
    );
    step.set_busy(reason_of_command(command), text);
    step.wake_at(until, "the end of a command");
}

fn reason_of_command(command: &PendingCommand) -> PowerReason {
    match command.command {
        PowerCommand::On => PowerReason::PoweringOn,
        PowerCommand::SoftOff => PowerReason::SoftPowerOff,
        PowerCommand::Off => PowerReason::PoweringOff,
    }
}

fn continue_power_off(ctx: &PowerContext<'_>, step: &mut PowerStep, command: &PendingCommand) {
    if is_command_unneeded(ctx, command) {
        return idle::close_command(ctx, step, command);
    }
    if let Some((why, fault)) = hard_off_reason(ctx, command) {
        return switch_to_hard_off(ctx, step, command, why, fault.as_ref());
    }
    match ctx.command_state(command) {
        PowerCommandState::UnderWay { until } => wait_for_command(step, command, until),
        PowerCommandState::Unsent { may_go: true } => send_command(step, command),
        PowerCommandState::Unsent { may_go: false } => {
            repeat_command(ctx, step, command, reason_of_command(command));
        }
        PowerCommandState::Answered { at } => off_confirmation::confirm_off(ctx, step, command, at),
        PowerCommandState::Failed { at, fault } => {
            retry::retry_or_change_level(ctx, step, command, at, fault.as_ref());
        }
        PowerCommandState::Unknown { at, is_foreign } => {
            takeover::handle_unknown_off(ctx, step, command, at, is_foreign);
        }
    }
}

/// The host reads off, nobody wants a proof, and no command is under way.
fn is_command_unneeded(ctx: &PowerContext<'_>, command: &PendingCommand) -> bool {
    let has_ended = match ctx.command_state(command) {
        PowerCommandState::UnderWay { .. } | PowerCommandState::Answered { .. } => false,
        PowerCommandState::Unsent { .. }
        | PowerCommandState::Failed { .. }
        | PowerCommandState::Unknown { .. } => true,
    };
    let settled = ctx.settled_at();
    let is_off = command.level == 0 && ctx.now.mono >= settled && ctx.is_read_off_since(0, settled);
    has_ended && is_off && !ctx.is_proof_wanted()
}

pub(super) fn send_command(step: &mut PowerStep, command: &PendingCommand) {
    let text = format!(
        "{} is sent to {}, try {}",
        command.command,
        level_name(command.level),
        command.attempt
    );
    step.set_busy(reason_of_command(command), text);
    step.action = Some(PowerAction::Send(command.clone()));
}

/// Why a soft power-off must become a hard one now. `None`: it need not.
fn hard_off_reason(
    ctx: &PowerContext<'_>,
    command: &PendingCommand,
) -> Option<(PowerReason, Option<BmcFault>)> {
    if command.command != PowerCommand::SoftOff {
        return None;
    }
    let standing = ctx.command_state(command);
    let fault = match &standing {
        PowerCommandState::UnderWay { .. } => return None,
        PowerCommandState::Failed { fault, .. } => fault.clone(),
        PowerCommandState::Unsent { .. }
        | PowerCommandState::Answered { .. }
        | PowerCommandState::Unknown { .. } => None,
    };
    let is_off = matches!(standing, PowerCommandState::Answered { at } if ctx.is_read_off_since(command.level, at));
    let is_unsupported = fault
        .as_ref()
        .is_some_and(|fault| fault.class == FaultClass::Unsupported);
    if is_unsupported {
        return Some((PowerReason::SoftPowerOffUnsupported, fault));
    }
    if ctx.is_hard_wanted() && !is_off {
        return Some((PowerReason::HardPowerOffRequested, None));
    }
    // One definite failure may be chance; after the second the soft way is given up.
    let has_failed = matches!(standing, PowerCommandState::Failed { .. }) && command.attempt > 1;
    if has_failed {
        return Some((PowerReason::SoftPowerOffFailed, fault));
    }
    let is_late = ctx.need_age(command) >= ctx.config.soft && !is_off;
    is_late.then_some((PowerReason::SoftPowerOffTimedOut, fault))
}

fn switch_to_hard_off(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    why: PowerReason,
    fault: Option<&BmcFault>,
) {
    let said = fault.map_or(String::new(), |fault| format!(" ({fault})"));
    let text = if why == PowerReason::SoftPowerOffUnsupported {
        format!("no soft power-off{said}; the power is cut")
    } else if why == PowerReason::HardPowerOffRequested {
        "mode hard is requested now; the power is cut".to_owned()
    } else if why == PowerReason::SoftPowerOffFailed {
        format!("a soft power-off failed twice{said}; the power is cut")
    } else {
        let soft = crate::duration::format_duration(ctx.config.soft);
        format!("a soft power-off did not shut the host down within {soft}{said}; the power is cut")
    };
    let is_trouble = [
        PowerReason::SoftPowerOffTimedOut,
        PowerReason::SoftPowerOffFailed,
    ]
    .contains(&why);
    let severity = if is_trouble {
        EventSeverity::Warning
    } else {
        EventSeverity::Normal
    };
    step.add_event(severity, why, text.clone());
    step.set_busy(why, text);
    if !matches!(ctx.command_state(command), PowerCommandState::Unsent { .. }) {
        step.record_done(ctx, command, why);
    }
    let level = command.level;
    step.set_command(
        ctx,
        &NextCommand::continue_need(PowerCommand::Off, level, why),
    );
}

/// Sends the same command once more, without a pause.
pub(super) fn repeat_command(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    why: PowerReason,
) {
    let text = format!("{} to {} again", command.command, level_name(command.level));
    step.set_busy(why, text);
    let (command, level) = (command.command, command.level);
    step.set_command(ctx, &NextCommand::continue_need(command, level, why));
}
