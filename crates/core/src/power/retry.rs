//! Retries a power-off without effect: again within seconds, then on another level. Source:
//! specification §3.3.

use std::time::Duration;

use super::PowerReason;
use super::bmc::{BmcFault, FaultClass, PowerCommand, PowerReading};
use super::bmc_crosscheck::BmcCrosscheck;
use super::config::PowerConfig;
use super::context::PowerContext;
use super::host::PendingCommand;
use super::power_off::{level_name, repeat_command};
use super::readings::ReadPace;
use super::step::{NextCommand, PowerStep};
use crate::decision::EventSeverity;

/// For a power-off that certainly failed, or that was answered and had no effect.
pub(super) fn retry_or_change_level(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    at: Duration,
    fault: Option<&BmcFault>,
) {
    let is_useless = fault.is_some_and(|fault| fault.class == FaultClass::Unsupported);
    let is_given_up = command.attempt >= PowerConfig::TRIES_PER_LEVEL
        || is_useless
        || !ctx.is_level_usable(command.level);
    // A further level that may have cut the power is kept where nobody waits for a proof: nothing
    // else would switch it on again.
    let is_kept = command.level > 0 && is_read_off(ctx, command.level) && !ctx.is_proof_wanted();
    let next = next_usable_level(ctx, command.level).filter(|_| is_given_up && !is_kept);
    if let Some(level) = next {
        return change_level(ctx, step, command, level, fault);
    }
    let said = describe_failed_off(ctx, command.level, fault);
    let due = at.saturating_add(backoff_duration(ctx, command, fault));
    let (tries, name) = (command.attempt, level_name(command.level));
    if ctx.now.mono < due {
        let text = format!(
            "{} to {name} had no effect ({said}), try {tries}; the next one at {}",
            command.command,
            ctx.format_time_of(due)
        );
        step.set_busy(PowerReason::BackingOff, text);
        step.wake_at(due, "the next try of a power-off");
        let next = super::readings::next_read_at(ctx, command.level, at, ReadPace::Slow);
        return step.read_level_at(ctx, command.level, next, "whether the host is off");
    }
    let text = format!(
        "{} to {name} is sent again: {said}, try {tries}",
        command.command
    );
    step.add_event(EventSeverity::Warning, PowerReason::PowerOffRetried, text);
    repeat_command(ctx, step, command, PowerReason::PowerOffRetried);
}

fn is_read_off(ctx: &PowerContext<'_>, level: usize) -> bool {
    let read = ctx.newest_reading(level);
    read.is_some_and(|read| read.result == Ok(PowerReading::Off))
}

fn describe_failed_off(ctx: &PowerContext<'_>, level: usize, fault: Option<&BmcFault>) -> String {
    match fault {
        Some(fault) => fault.to_string(),
        None if is_read_off(ctx, level) => {
            "it reads off, but the power-off was not answered".to_owned()
        }
        None => "it is not off".to_owned(),
    }
}

/// The next usable level; after the last one the first.
pub(super) fn next_usable_level(ctx: &PowerContext<'_>, level: usize) -> Option<usize> {
    let levels = ctx.seen.host.levels.len();
    (1..levels)
        .map(|further| (level + further) % levels)
        .find(|level| ctx.is_level_usable(*level))
}

pub(super) fn change_level(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    level: usize,
    fault: Option<&BmcFault>,
) {
    let said = describe_failed_off(ctx, command.level, fault);
    let text = format!(
        "{} did not power the host off in {} tries ({said}); now {} is used{}",
        level_name(command.level),
        command.attempt,
        level_name(level),
        describe_outlet_left_off(ctx, command.level)
    );
    step.add_event(EventSeverity::Warning, PowerReason::NextLevel, text.clone());
    step.set_busy(PowerReason::NextLevel, text);
    step.record_done(ctx, command, PowerReason::GaveUp);
    let why = PowerReason::NextLevel;
    step.set_command(
        ctx,
        &NextCommand::continue_need(PowerCommand::Off, level, why),
    );
}

/// Nothing switches a contradicted level on again once another one is used.
fn describe_outlet_left_off(ctx: &PowerContext<'_>, level: usize) -> String {
    if ctx.crosscheck_level(level) != BmcCrosscheck::Contradicts {
        return String::new();
    }
    let name = level_name(level);
    format!("; Dogwatch has switched {name} off and leaves it off: switch it on yourself")
}

/// Seconds, never hours, with jitter. A wrong password is tried less often, so that the BMC does
/// not lock the account.
pub(super) fn backoff_duration(
    ctx: &PowerContext<'_>,
    command: &PendingCommand,
    fault: Option<&BmcFault>,
) -> Duration {
    let pause = PowerConfig::COMMAND_BACKOFF
        .pause_after(command.before)
        .mul_f64(1.0 - 0.25 * ctx.jitter);
    let is_locking = fault.is_some_and(|fault| fault.class == FaultClass::WrongCredentials);
    let least = if is_locking {
        Duration::from_secs(30)
    } else {
        Duration::ZERO
    };
    pause.max(least)
}
