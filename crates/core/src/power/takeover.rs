//! Handles a power-off that a BMC may have received and may still run: this process' own, or an
//! earlier leader's. Source: specification §1 S5, §3.2.

use std::time::Duration;

use super::bmc::{BmcFault, PowerCommand, PowerReading};
use super::context::PowerContext;
use super::host::PendingCommand;
use super::power_off::{level_name, repeat_command};
use super::readings::{ReadPace, next_read_at};
use super::retry::{change_level, next_usable_level, retry_or_change_level};
use super::step::{NextCommand, PowerStep};
use super::{PowerReason, idle};
use crate::decision::EventSeverity;

/// The BMC may have received the command. It is read before anything is repeated.
pub(super) fn handle_unknown_off(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    at: Duration,
    is_foreign: bool,
) {
    let level = command.level;
    let settled = at.saturating_add(ctx.config.settle);
    let reason = if is_foreign {
        PowerReason::TakingOver
    } else {
        PowerReason::CommandOfUnknownEnd
    };
    let text = format!(
        "it is unknown whether {} received {}; its power is read first",
        level_name(level),
        command.command
    );
    step.set_busy(reason, text);
    let Some(read) = ctx.newest_reading_since(level, at) else {
        return step.read_level_at(
            ctx,
            level,
            next_read_at(ctx, level, at, ReadPace::Steady),
            "the power after a command whose result is unknown",
        );
    };
    match &read.result {
        Ok(PowerReading::Off) => prove_by_new_command(ctx, step, command, at, is_foreign),
        // Until its deadline, a soft power-off may still be under way on a host that is not off.
        Ok(_) if command.command == PowerCommand::SoftOff => {
            handle_unknown_soft_off(ctx, step, command, settled);
        }
        Ok(_) if ctx.newest_reading_since(level, settled).is_some() || !is_foreign => {
            retry_or_change_level(ctx, step, command, at, None);
        }
        Err(_) if !is_foreign => retry_or_change_level(ctx, step, command, at, None),
        Err(fault) if ctx.now.mono >= settled => handle_unreadable(ctx, step, command, fault),
        Ok(_) | Err(_) => {
            step.wake_at(settled, "the time in which a BMC may still run a command");
            step.read_level_at(
                ctx,
                level,
                next_read_at(ctx, level, at, ReadPace::Slow),
                "whether the host is off",
            );
        }
    }
}

/// The host is off already. The proof still needs an answered power-off, which changes nothing on a
/// host that is off. Where nobody wants a proof, a command to the BMC is closed once it has settled
/// ([`super::power_off`]); one to a further level is not, and is sent again.
fn prove_by_new_command(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    at: Duration,
    is_foreign: bool,
) {
    let is_settled = ctx.now.mono >= ctx.settled_at();
    if !ctx.is_proof_wanted() && (command.level == 0 || !is_settled) {
        return idle::wait_until_settled(ctx, step, command.level);
    }
    if !is_foreign && command.command == PowerCommand::Off {
        return retry_or_change_level(ctx, step, command, at, None);
    }
    let text = "already off; Dogwatch sends a power-off to prove it".to_owned();
    step.set_busy(PowerReason::ConfirmingOff, text);
    let (level, why) = (command.level, PowerReason::ConfirmingOff);
    step.set_command(
        ctx,
        &NextCommand::continue_need(PowerCommand::Off, level, why),
    );
}

/// The operating system may be shutting down: it is asked at most once more, and its deadline
/// stays.
fn handle_unknown_soft_off(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    settled: Duration,
) {
    let level = command.level;
    let still_on = ctx.newest_reading_since(level, settled).is_some();
    if still_on && command.attempt == 1 {
        return repeat_command(ctx, step, command, PowerReason::SoftPowerOff);
    }
    let left = ctx.config.soft.saturating_sub(ctx.need_age(command));
    step.wake_at(
        ctx.now.mono.saturating_add(left),
        "the end of a soft power-off",
    );
    step.wake_at(settled, "the time in which a BMC may still run a command");
    let since = if ctx.now.mono >= settled {
        settled
    } else {
        Duration::ZERO
    };
    step.read_level_at(
        ctx,
        level,
        next_read_at(ctx, level, since, ReadPace::Steady),
        "whether the operating system has shut down",
    );
}

/// A command of another process is not repeated without a reading. Another level's device may get a
/// command: that repeats nothing.
fn handle_unreadable(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    fault: &BmcFault,
) {
    if let Some(level) = next_usable_level(ctx, command.level) {
        return change_level(ctx, step, command, level, Some(fault));
    }
    let text = format!(
        "{} may have received {} from an earlier leader and cannot be read ({fault}); do this: {}",
        level_name(command.level),
        command.command,
        fault.class.next_step()
    );
    step.add_event(
        EventSeverity::Warning,
        fault.class.power_reason(),
        text.clone(),
    );
    step.set_busy(PowerReason::TakingOver, text);
    step.read_level_at(
        ctx,
        command.level,
        next_read_at(ctx, command.level, Duration::ZERO, ReadPace::Slow),
        "whether the host is off",
    );
}
