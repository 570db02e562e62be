//! Off, proved by two readings after an answered power-off. Source: specification §3.2, "Off is
//! confirmed when".

use std::time::Duration;

use super::bmc::{Answer, Class, Command, Fault, Reading};
use super::context::Context;
use super::host::Intention;
use super::readings::{Pace, due, next_poll};
use super::step::Step;
use super::witness::{self, Witness};
use super::{life, off, reason, retry, times};
use crate::condition::Status;
use crate::decision::Severity;

/// The power-off was answered at `at`: is it off?
pub(super) fn look(ctx: &Context<'_>, step: &mut Step, command: &Intention, at: Duration) {
    let level = command.level;
    // A command of unknown end may undo what was read before it can be run no more.
    let since = at.max(ctx.settled_at());
    let twice = ctx.off_twice(level, since, ctx.config.confirm);
    if twice.is_some_and(|(first, _)| ctx.is_fresh(first)) {
        if let Some(node) = ctx.living_node() {
            life::contradicted(ctx, step, &node);
            return step.read(ctx, level, next_poll(ctx, level), "the next poll");
        }
        return match ctx.witness(level) {
            Witness::Agrees => confirmed(ctx, step, command),
            Witness::NotAsked => not_asked(ctx, step, command, at),
            Witness::Contradicts => contradicted(ctx, step, command, at),
        };
    }
    if !ctx.says_off(level, at) {
        return not_off(ctx, step, command, at);
    }
    if ctx.now.mono < since {
        let text = format!(
            "off, but an earlier command of unknown end could still be run until {}",
            ctx.second(since)
        );
        step.busy(reason::SETTLING, text);
        witness::ask(ctx, step, level);
        return step.read(ctx, level, since, "the end of every command of unknown end");
    }
    let next = match ctx.newest_since(level, since) {
        Some(read) => read.answered.saturating_add(ctx.config.confirm),
        None => since,
    };
    let text = format!("off was read once; read again at {}", ctx.second(next));
    step.busy(reason::CONFIRMING, text);
    witness::ask(ctx, step, level);
    step.read(ctx, level, next, "the second reading of off");
}

fn not_asked(ctx: &Context<'_>, step: &mut Step, command: &Intention, at: Duration) {
    let level = command.level;
    let text = format!(
        "{} was read off twice; the BMC is asked whether it says anything else",
        off::name(level)
    );
    step.busy(reason::CONFIRMING, text);
    witness::ask(ctx, step, level);
    let next = due(ctx, level, at, Pace::Slow);
    step.read(ctx, level, next, "whether it is still off");
}

/// As if it had not taken: what is off is not this machine's.
fn contradicted(ctx: &Context<'_>, step: &mut Step, command: &Intention, at: Duration) {
    let level = command.level;
    let text = format!(
        "{} is off, and the BMC says that the machine runs; correct the outlet in spec.power.levels",
        off::name(level)
    );
    step.event(Severity::Warning, reason::LEVEL_CONTRADICTED, text.clone());
    let patience = at.saturating_add(ctx.config.settle);
    if ctx.now.mono >= patience {
        let fault = Fault::harmless(Class::Contradiction, text);
        retry::failed(ctx, step, command, patience, Some(&fault));
    } else {
        step.busy(reason::LEVEL_CONTRADICTED, text);
        step.wake(patience, "a level that is contradicted");
        let next = due(ctx, level, at, Pace::Slow);
        step.read(ctx, level, next, "whether it is still off");
    }
    witness::ask(ctx, step, level);
}

fn not_off(ctx: &Context<'_>, step: &mut Step, command: &Intention, at: Duration) {
    let level = command.level;
    let name = off::name(level);
    if command.command == Command::SoftOff {
        let left = ctx.config.soft.saturating_sub(ctx.spent(command));
        let end = ctx.now.mono.saturating_add(left);
        let text = format!(
            "the operating system has until {} to shut down",
            ctx.second(end)
        );
        step.busy(reason::SOFT_POWER_OFF, text);
        step.wake(end, "the end of a soft power-off");
        return step.read(
            ctx,
            level,
            due(ctx, level, at, Pace::Steady),
            "whether it shut down",
        );
    }
    let patience = at.saturating_add(ctx.config.patience());
    let is_on = ctx
        .newest_since(level, at)
        .is_some_and(|read| read.said == Ok(Reading::On));
    if is_on && was_already_off(ctx, command) {
        // It was not off, or it came on after: nothing is on its way that could be waited for.
        return retry::failed(ctx, step, command, at, None);
    }
    if ctx.now.mono >= patience {
        return retry::failed(ctx, step, command, patience, None);
    }
    step.busy(
        reason::POWERING_OFF,
        format!("{name} took a power-off; it is read until it is off"),
    );
    step.wake(patience, "a power-off that does not take");
    let pace = Pace::Fast { since: at };
    step.read(ctx, level, due(ctx, level, at, pace), "whether it is off");
}

fn confirmed(ctx: &Context<'_>, step: &mut Step, command: &Intention) {
    let Some(at) = times::next(&step.status, ctx.now) else {
        return;
    };
    step.status.power.off_confirmed_at = Some(at);
    let was_off = was_already_off(ctx, command);
    let outcome = if was_off {
        reason::ALREADY_OFF
    } else {
        reason::POWERED_OFF
    };
    step.done(ctx, command, outcome);
    let text = format!(
        "off is confirmed by {}: {} was answered, and off read twice, {:?} apart",
        off::name(command.level),
        command.command,
        ctx.config.confirm
    );
    step.event(Severity::Normal, reason::OFF_CONFIRMED, text.clone());
    step.because(Status::True, reason::OFF_CONFIRMED, text);
    step.is_busy = true;
}

fn was_already_off(ctx: &Context<'_>, command: &Intention) -> bool {
    let ours = ctx.seen.memory.command.as_ref();
    ours.filter(|ours| ours.id == command.id)
        .is_some_and(|ours| matches!(ours.ended, Some((_, Ok(Answer::AlreadyThere)))))
}
