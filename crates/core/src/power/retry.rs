//! A power-off that came to nothing: sent again in seconds, then another level. Source: specification
//! §3.3.

use std::time::Duration;

use super::bmc::{Class, Command, Fault};
use super::config::Config;
use super::context::Context;
use super::host::Intention;
use super::off::{again, name};
use super::readings::Pace;
use super::reason;
use super::step::{Next, Step};
use crate::decision::Severity;

/// Nothing of it is on its way, or it was answered and came to nothing.
pub(super) fn failed(
    ctx: &Context<'_>,
    step: &mut Step,
    command: &Intention,
    at: Duration,
    fault: Option<&Fault>,
) {
    let is_useless = fault.is_some_and(|fault| fault.class == Class::Unsupported);
    let is_given_up =
        command.attempt >= Config::TRIES_PER_LEVEL || is_useless || !ctx.is_usable(command.level);
    if let Some(level) = next_level(ctx, command.level).filter(|_| is_given_up) {
        return change_level(ctx, step, command, level, fault);
    }
    let said = fault.map_or_else(|| "it is not off".to_owned(), ToString::to_string);
    let due = at.saturating_add(back_off(ctx, command, fault));
    let (tries, name) = (command.attempt, name(command.level));
    if ctx.now.mono < due {
        let text = format!(
            "{} to {name} came to nothing ({said}), try {tries}; the next one at {}",
            command.command,
            ctx.second(due)
        );
        step.busy(reason::BACKING_OFF, text);
        step.wake(due, "the next try of a power-off");
        let next = super::readings::due(ctx, command.level, at, Pace::Slow);
        return step.read(ctx, command.level, next, "whether it is off");
    }
    let text = format!(
        "{} to {name} is sent again: {said}, try {tries}",
        command.command
    );
    step.event(Severity::Warning, reason::POWER_OFF_RETRIED, text);
    again(ctx, step, command, reason::POWER_OFF_RETRIED);
}

/// The next level that can be spoken to; after the last one the first.
pub(super) fn next_level(ctx: &Context<'_>, level: usize) -> Option<usize> {
    let levels = ctx.seen.host.levels.len();
    (1..levels)
        .map(|further| (level + further) % levels)
        .find(|level| ctx.is_usable(*level))
}

pub(super) fn change_level(
    ctx: &Context<'_>,
    step: &mut Step,
    command: &Intention,
    level: usize,
    fault: Option<&Fault>,
) {
    let said = fault.map_or_else(|| "it is not off".to_owned(), ToString::to_string);
    let text = format!(
        "{} does not power the host off after {} tries ({said}); {} is used",
        name(command.level),
        command.attempt,
        name(level)
    );
    step.event(Severity::Warning, reason::NEXT_LEVEL, text.clone());
    step.busy(reason::NEXT_LEVEL, text);
    step.done(ctx, command, reason::GAVE_UP);
    let why = reason::NEXT_LEVEL;
    step.command(ctx, &Next::goes_on(Command::Off, level, why));
}

/// Seconds, never hours, with jitter. A wrong password is not tried so often that it locks the account.
pub(super) fn back_off(ctx: &Context<'_>, command: &Intention, fault: Option<&Fault>) -> Duration {
    let doubled = Duration::from_secs(1 << command.before.min(6));
    let pause = doubled
        .min(Config::LONGEST_BACKOFF)
        .mul_f64(1.0 - 0.25 * ctx.jitter);
    let is_locking = fault.is_some_and(|fault| fault.class == Class::WrongCredentials);
    let least = if is_locking {
        Duration::from_secs(30)
    } else {
        Duration::ZERO
    };
    pause.max(least)
}
