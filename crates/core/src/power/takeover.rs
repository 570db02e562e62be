//! A power-off that a BMC may have got and may still run: ours, or an earlier leader's. Source:
//! specification §1 S5, §3.2.

use std::time::Duration;

use super::bmc::{Command, Fault, Reading};
use super::context::Context;
use super::host::Intention;
use super::off::{again, name};
use super::readings::{Pace, due};
use super::retry::{change_level, failed, next_level};
use super::step::{Next, Step};
use super::{idle, reason};
use crate::decision::Severity;

/// The BMC may have got it. It is read before anything is repeated.
pub(super) fn unknown(
    ctx: &Context<'_>,
    step: &mut Step,
    command: &Intention,
    at: Duration,
    is_foreign: bool,
) {
    let level = command.level;
    let settled = at.saturating_add(ctx.config.settle);
    let reason = if is_foreign {
        reason::TAKING_OVER
    } else {
        reason::SETTLING
    };
    let text = format!(
        "nobody knows whether {} received {}; it is read first",
        name(level),
        command.command
    );
    step.busy(reason, text);
    let Some(read) = ctx.newest_since(level, at) else {
        return step.read(
            ctx,
            level,
            due(ctx, level, at, Pace::Steady),
            "the power after a command of unknown end",
        );
    };
    match &read.said {
        Ok(Reading::Off) => prove(ctx, step, command, at, is_foreign),
        // It cannot have been a soft power-off that is under way only if the time for that is over.
        Ok(_) if command.command == Command::SoftOff => soft_unknown(ctx, step, command, settled),
        Ok(_) if ctx.newest_since(level, settled).is_some() || !is_foreign => {
            failed(ctx, step, command, at, None);
        }
        Err(_) if !is_foreign => failed(ctx, step, command, at, None),
        Err(fault) if ctx.now.mono >= settled => unreadable(ctx, step, command, fault),
        Ok(_) | Err(_) => {
            step.wake(settled, "the time in which a BMC may still run a command");
            step.read(
                ctx,
                level,
                due(ctx, level, at, Pace::Slow),
                "whether it is off",
            );
        }
    }
}

/// It is off already. What its proof lacks is a power-off that was answered; to a host that is off it
/// changes nothing.
fn prove(ctx: &Context<'_>, step: &mut Step, command: &Intention, at: Duration, is_foreign: bool) {
    if !ctx.is_proof_wanted() {
        return idle::until_settled(ctx, step, command.level);
    }
    if !is_foreign && command.command == Command::Off {
        return failed(ctx, step, command, at, None);
    }
    let text = "off already; it is proved by a power-off that is answered".to_owned();
    step.busy(reason::CONFIRMING, text);
    let (level, why) = (command.level, reason::CONFIRMING);
    step.command(ctx, &Next::goes_on(Command::Off, level, why));
}

/// The operating system may be shutting down: it is asked once more at most, its deadline stays.
fn soft_unknown(ctx: &Context<'_>, step: &mut Step, command: &Intention, settled: Duration) {
    let level = command.level;
    let still_on = ctx.newest_since(level, settled).is_some();
    if still_on && command.attempt == 1 {
        return again(ctx, step, command, reason::SOFT_POWER_OFF);
    }
    let left = ctx.config.soft.saturating_sub(ctx.spent(command));
    step.wake(
        ctx.now.mono.saturating_add(left),
        "the end of a soft power-off",
    );
    step.wake(settled, "the time in which a BMC may still run a command");
    let since = if ctx.now.mono >= settled {
        settled
    } else {
        Duration::ZERO
    };
    step.read(
        ctx,
        level,
        due(ctx, level, since, Pace::Steady),
        "whether it shut down",
    );
}

/// A command of another process is not repeated on no reading; another device is no repetition.
fn unreadable(ctx: &Context<'_>, step: &mut Step, command: &Intention, fault: &Fault) {
    if let Some(level) = next_level(ctx, command.level) {
        return change_level(ctx, step, command, level, Some(fault));
    }
    let text = format!(
        "{} may have received {} from an earlier leader and cannot be read ({fault}); next: {}",
        name(command.level),
        command.command,
        fault.class.next_step()
    );
    step.event(Severity::Warning, fault.class.reason(), text.clone());
    step.busy(reason::TAKING_OVER, text);
    step.read(
        ctx,
        command.level,
        due(ctx, command.level, Duration::ZERO, Pace::Slow),
        "whether it is off",
    );
}
