//! The way to a confirmed "off": soft, hard, the next level, and the two readings.
//!
//! Source: specification §3.2, "Soft first with one deadline, then hard" and "Off is confirmed when".

use std::time::Duration;

use super::annotations::listed;
use super::bmc::{Class, Command, Fault};
use super::context::Context;
use super::decide::Action;
use super::host::Intention;
use super::standing::Standing;
use super::step::{Next, Step};
use super::{confirm, idle, reason, retry, takeover};
use crate::decision::Severity;

/// The host must be off, and that is not confirmed. `why` is the need's reason, should it begin now.
pub(super) fn drive(ctx: &Context<'_>, step: &mut Step, why: &'static str) {
    match ctx.command() {
        Some(command) if command.command.is_off() => go_on(ctx, step, command),
        Some(on) => match ctx.standing(on) {
            Standing::UnderWay { until } => wait_for(step, on, until),
            Standing::Unsent { .. }
            | Standing::Answered { .. }
            | Standing::Failed { .. }
            | Standing::Unknown { .. } => {
                step.done(ctx, on, reason::WITHDRAWN);
                begin(ctx, step, why);
            }
        },
        None => begin(ctx, step, why),
    }
}

/// The first command of a need.
pub(super) fn begin(ctx: &Context<'_>, step: &mut Step, why: &'static str) {
    let level = ctx.command().map_or(0, |earlier| earlier.level);
    let level = if ctx.is_usable(level) { level } else { 0 };
    let can = softness(ctx, level);
    let (command, text) = match can {
        Softness::Soft => (
            Command::SoftOff,
            "the operating system is asked to shut down".to_owned(),
        ),
        Softness::HardWanted => (Command::Off, "the power is cut: mode hard".to_owned()),
        Softness::Unsupported => {
            let text = format!("{} knows no soft power-off; the power is cut", name(level));
            step.event(Severity::Normal, reason::SOFT_UNSUPPORTED, text.clone());
            (Command::Off, text)
        }
    };
    let reason = if command == Command::SoftOff {
        reason::SOFT_POWER_OFF
    } else {
        reason::POWERING_OFF
    };
    step.busy(reason, format!("{}: {text}", cause(ctx, why)));
    step.event(
        Severity::Normal,
        reason,
        format!("{}: {text}", cause(ctx, why)),
    );
    step.command(ctx, &Next::begins(command, level, why));
}

enum Softness {
    Soft,
    HardWanted,
    Unsupported,
}

fn softness(ctx: &Context<'_>, level: usize) -> Softness {
    if ctx.is_hard() {
        return Softness::HardWanted;
    }
    match ctx.about(level) {
        Some(about) if !about.can(Command::SoftOff) => Softness::Unsupported,
        // What cuts the power beside the BMC speaks to no operating system.
        _ if level > 0 => Softness::Unsupported,
        Some(_) | None => Softness::Soft,
    }
}

/// Why it must be off, as a person would say it.
pub(super) fn cause(ctx: &Context<'_>, why: &str) -> String {
    let names: Vec<&str> = ctx.obeyed().map(|request| request.name.as_str()).collect();
    match why {
        reason::FOUND_ON => "found on while it is held off".to_owned(),
        _ if !names.is_empty() => format!("asked for by {}", listed(&names)),
        reason::NOT_ONLINE => "spec.online is false".to_owned(),
        _ => "a reboot is pending".to_owned(),
    }
}

pub(super) fn name(level: usize) -> String {
    match level {
        0 => "the BMC".to_owned(),
        level => format!("level {level}"),
    }
}

/// A command is never joined by a second one: its end, which has a deadline, is waited for.
pub(super) fn wait_for(step: &mut Step, command: &Intention, until: Duration) {
    let text = format!(
        "{} is being sent to {}",
        command.command,
        name(command.level)
    );
    step.busy(reason_of(command), text);
    step.wake(until, "the end of a command");
}

fn reason_of(command: &Intention) -> &'static str {
    match command.command {
        Command::On => reason::POWERING_ON,
        Command::SoftOff => reason::SOFT_POWER_OFF,
        Command::Off => reason::POWERING_OFF,
    }
}

fn go_on(ctx: &Context<'_>, step: &mut Step, command: &Intention) {
    if is_moot(ctx, command) {
        return idle::close(ctx, step, command);
    }
    if let Some((why, fault)) = harder(ctx, command) {
        return harden(ctx, step, command, why, fault.as_ref());
    }
    match ctx.standing(command) {
        Standing::UnderWay { until } => wait_for(step, command, until),
        Standing::Unsent { may_go: true } => send(step, command),
        Standing::Unsent { may_go: false } => again(ctx, step, command, reason_of(command)),
        Standing::Answered { at } => confirm::look(ctx, step, command, at),
        Standing::Failed { at, fault } => retry::failed(ctx, step, command, at, fault.as_ref()),
        Standing::Unknown { at, is_foreign } => {
            takeover::unknown(ctx, step, command, at, is_foreign);
        }
    }
}

/// The host reads off, nobody wants it proved, and nothing that was sent is on its way.
fn is_moot(ctx: &Context<'_>, command: &Intention) -> bool {
    let has_ended = match ctx.standing(command) {
        Standing::UnderWay { .. } | Standing::Answered { .. } => false,
        Standing::Unsent { .. } | Standing::Failed { .. } | Standing::Unknown { .. } => true,
    };
    let settled = ctx.settled_at();
    let is_off = command.level == 0 && ctx.now.mono >= settled && ctx.says_off(0, settled);
    has_ended && is_off && !ctx.is_proof_wanted()
}

pub(super) fn send(step: &mut Step, command: &Intention) {
    let text = format!(
        "{} goes to {}, try {}",
        command.command,
        name(command.level),
        command.attempt
    );
    step.busy(reason_of(command), text);
    step.action = Some(Action::Send(command.clone()));
}

/// Whether a soft power-off must become a hard one now, and why.
fn harder(ctx: &Context<'_>, command: &Intention) -> Option<(&'static str, Option<Fault>)> {
    if command.command != Command::SoftOff {
        return None;
    }
    let standing = ctx.standing(command);
    let fault = match &standing {
        Standing::UnderWay { .. } => return None,
        Standing::Failed { fault, .. } => fault.clone(),
        Standing::Unsent { .. } | Standing::Answered { .. } | Standing::Unknown { .. } => None,
    };
    let is_off = matches!(standing, Standing::Answered { at } if ctx.says_off(command.level, at));
    let is_unsupported = fault
        .as_ref()
        .is_some_and(|fault| fault.class == Class::Unsupported);
    if is_unsupported {
        return Some((reason::SOFT_UNSUPPORTED, fault));
    }
    if ctx.is_hard() && !is_off {
        return Some((reason::HARD_REQUESTED, None));
    }
    // One definite failure may be chance; after the second the soft way is none.
    let has_failed = matches!(standing, Standing::Failed { .. }) && command.attempt > 1;
    if has_failed {
        return Some((reason::SOFT_FAILED, fault));
    }
    let is_late = ctx.spent(command) >= ctx.config.soft && !is_off;
    is_late.then_some((reason::SOFT_TIMED_OUT, fault))
}

fn harden(
    ctx: &Context<'_>,
    step: &mut Step,
    command: &Intention,
    why: &'static str,
    fault: Option<&Fault>,
) {
    let said = fault.map_or(String::new(), |fault| format!(" ({fault})"));
    let text = match why {
        reason::SOFT_UNSUPPORTED => format!("no soft power-off{said}; the power is cut"),
        reason::HARD_REQUESTED => "mode hard is asked for by now; the power is cut".to_owned(),
        reason::SOFT_FAILED => format!("a soft power-off failed twice{said}; the power is cut"),
        _ => format!(
            "not shut down by a soft power-off within {:?}{said}; the power is cut",
            ctx.config.soft
        ),
    };
    let is_trouble = [reason::SOFT_TIMED_OUT, reason::SOFT_FAILED].contains(&why);
    let severity = if is_trouble {
        Severity::Warning
    } else {
        Severity::Normal
    };
    step.event(severity, why, text.clone());
    step.busy(why, text);
    if !matches!(ctx.standing(command), Standing::Unsent { .. }) {
        step.done(ctx, command, why);
    }
    let level = command.level;
    step.command(ctx, &Next::goes_on(Command::Off, level, why));
}

/// The same command once more, at once.
pub(super) fn again(ctx: &Context<'_>, step: &mut Step, command: &Intention, why: &'static str) {
    let text = format!("{} to {} again", command.command, name(command.level));
    step.busy(why, text);
    let (command, level) = (command.command, command.level);
    step.command(ctx, &Next::goes_on(command, level, why));
}
