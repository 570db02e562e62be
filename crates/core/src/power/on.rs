//! A power-on under way: sent again until it takes. Source: specification §3.2, "A power-on that did not
//! take: sent again, and said".

use std::time::Duration;

use super::bmc::{Command, Fault, Reading};
use super::context::Context;
use super::host::Intention;
use super::readings::{Pace, due, next_poll};
use super::standing::Standing;
use super::step::{Next, Step};
use super::{life, off, reason, retry};
use crate::condition::Status;
use crate::decision::Severity;
use crate::name::NodeName;

pub(super) fn drive(ctx: &Context<'_>, step: &mut Step, command: &Intention) {
    let standing = ctx.standing(command);
    let has_ended = !matches!(standing, Standing::UnderWay { .. });
    if let Some(node) = ctx.living_node().filter(|_| has_ended) {
        return runs_already(ctx, step, command, &node);
    }
    match standing {
        Standing::UnderWay { until } => off::wait_for(step, command, until),
        Standing::Unsent { may_go: true } => off::send(step, command),
        Standing::Unsent { may_go: false } => {
            send_again(ctx, step, command.level, reason::POWERING_ON);
        }
        Standing::Answered { .. } | Standing::Failed { .. } | Standing::Unknown { .. }
            if is_on(ctx, 0, ctx.need_seen(command)) =>
        {
            finished(ctx, step, command);
        }
        Standing::Answered { at } => answered(ctx, step, command, at),
        Standing::Failed { at, fault } => failed(ctx, step, command, at, fault.as_ref()),
        Standing::Unknown { at, is_foreign } => unknown(ctx, step, command, at, is_foreign),
    }
}

/// The BMC says off, and the Node lives: it is not powered on again and again.
fn runs_already(ctx: &Context<'_>, step: &mut Step, command: &Intention, node: &NodeName) {
    life::contradicted(ctx, step, node);
    let settled = ctx.settled_at();
    if ctx.now.mono < settled {
        return step.wake(settled, "the end of every command of unknown end");
    }
    step.done(ctx, command, reason::POWER_CONTRADICTED);
    step.status.power.command = None;
}

fn is_on(ctx: &Context<'_>, level: usize, since: Duration) -> bool {
    let read = ctx.newest_since(level, since);
    read.is_some_and(|read| read.said == Ok(Reading::On))
}

fn finished(ctx: &Context<'_>, step: &mut Step, command: &Intention) {
    step.because(Status::True, reason::POWERED_ON, "powered on");
    step.read(ctx, 0, next_poll(ctx, 0), "the next poll");
    let settled = ctx.settled_at();
    if ctx.now.mono < settled {
        // Forgotten now, it would be forgotten by the next leader that a power-on may still be run.
        return step.wake(settled, "the end of every command of unknown end");
    }
    step.done(ctx, command, reason::POWERED_ON);
    step.status.power.command = None;
    let tries = command.attempt;
    let text = format!("powered on by {}, try {tries}", off::name(command.level));
    step.event(Severity::Normal, reason::POWERED_ON, text);
}

pub(super) fn send_again(ctx: &Context<'_>, step: &mut Step, level: usize, why: &'static str) {
    step.busy(why, format!("PowerOn goes to {}", off::name(level)));
    let command = Command::On;
    step.command(ctx, &Next::goes_on(command, level, why));
}

fn answered(ctx: &Context<'_>, step: &mut Step, command: &Intention, at: Duration) {
    let level = command.level;
    if level > 0 && is_on(ctx, level, at) {
        return first_level(ctx, step, command, at);
    }
    let said = ctx.newest_since(level, at).map(|read| &read.said);
    let is_coming = matches!(said, Some(Ok(Reading::PoweringOn)));
    let patience = at
        + if is_coming {
            ctx.config.soft
        } else {
            ctx.config.patience()
        };
    if ctx.now.mono >= patience {
        return failed(ctx, step, command, patience, None);
    }
    let text = format!(
        "{} took a power-on; it is read until it is on",
        off::name(level)
    );
    step.busy(reason::POWERING_ON, text);
    step.wake(patience, "a power-on that does not take");
    step.read(
        ctx,
        level,
        due(ctx, level, at, Pace::Steady),
        "whether it is on",
    );
}

/// The level that had cut the power gave it back: now the BMC is asked, which may have to boot first.
fn first_level(ctx: &Context<'_>, step: &mut Step, command: &Intention, at: Duration) {
    let gave = off::name(command.level);
    if ctx.says_off(0, at) {
        step.event(
            Severity::Normal,
            reason::POWERING_ON,
            format!("{gave} gives power again; the BMC says off: it is powered on"),
        );
        return send_again(ctx, step, 0, reason::POWERING_ON);
    }
    let text = format!("{gave} gives power again; waiting for the BMC's word");
    step.busy(reason::POWERING_ON, text);
    step.read(ctx, 0, due(ctx, 0, at, Pace::Slow), "whether it is on");
}

fn failed(
    ctx: &Context<'_>,
    step: &mut Step,
    command: &Intention,
    at: Duration,
    fault: Option<&Fault>,
) {
    let level = command.level;
    if ctx.says_off(level, at) {
        life::look(ctx, step);
    }
    let said = fault.map_or_else(|| "it is not on".to_owned(), ToString::to_string);
    let pause = at.saturating_add(retry::back_off(ctx, command, fault));
    let name = off::name(level);
    if ctx.now.mono < pause || ctx.newest_since(level, at).is_none() {
        let text = format!(
            "PowerOn to {name} came to nothing ({said}), try {}; the next one at {}",
            command.attempt,
            ctx.second(pause)
        );
        step.busy(reason::BACKING_OFF, text);
        step.wake(pause.max(ctx.now.mono), "the next try of a power-on");
        return step.read(
            ctx,
            level,
            due(ctx, level, at, Pace::Slow),
            "whether it is on",
        );
    }
    let text = format!(
        "PowerOn to {name} is sent again: {said}, try {}",
        command.attempt
    );
    step.event(Severity::Warning, reason::POWER_ON_RETRIED, text);
    send_again(ctx, step, level, reason::POWER_ON_RETRIED);
}

/// It may still be run. Pressed twice a power button turns a host off: it is sent again only when no
/// earlier one can be run any more, and a reading says that it did not take.
fn unknown(
    ctx: &Context<'_>,
    step: &mut Step,
    command: &Intention,
    at: Duration,
    is_foreign: bool,
) {
    let level = command.level;
    if level > 0 && is_on(ctx, level, at) {
        return first_level(ctx, step, command, at);
    }
    let settled = at.saturating_add(ctx.config.settle);
    if ctx.says_off(level, settled) {
        return failed(ctx, step, command, settled, None);
    }
    let reason = if is_foreign {
        reason::TAKING_OVER
    } else {
        reason::SETTLING
    };
    let text = format!(
        "nobody knows whether {} received PowerOn; it is read first",
        off::name(level)
    );
    step.busy(reason, text);
    if ctx.now.mono < settled {
        step.wake(settled, "the time in which a BMC may still run a command");
        return step.read(
            ctx,
            level,
            due(ctx, level, at, Pace::Steady),
            "whether it is on",
        );
    }
    step.read(
        ctx,
        level,
        due(ctx, level, settled, Pace::Slow),
        "whether it is on",
    );
}
