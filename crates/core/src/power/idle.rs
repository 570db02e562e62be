//! A host of which nobody wants a proof, and no power-on under way.

use std::time::Duration;

use super::bmc::{Command, Fault, Reading};
use super::context::Context;
use super::host::Intention;
use super::life::Life;
use super::readings::{Pace, due, next_poll, second_reading};
use super::standing::Standing;
use super::step::{Next, Step};
use super::witness::Witness;
use super::{confirm, life, off, reason};
use crate::condition::Status;
use crate::decision::Severity;
use crate::name::NodeName;

/// Nothing of ours is under way.
pub(super) fn watch(ctx: &Context<'_>, step: &mut Step) {
    let Some(read) = ctx.newest(0) else {
        return first_reading(ctx, step);
    };
    match &read.said {
        Ok(Reading::On) => {
            step.because(
                Status::True,
                reason::AS_WANTED,
                "on, as spec.online wants it",
            );
            step.read(ctx, 0, next_poll(ctx, 0), "the next poll");
        }
        Ok(Reading::PoweringOn | Reading::PoweringOff) => changing(ctx, step),
        Ok(Reading::Off) => found_off(ctx, step),
        Err(fault) => unreadable(ctx, step, fault),
    }
}

fn first_reading(ctx: &Context<'_>, step: &mut Step) {
    step.because(Status::Unknown, reason::POWER_UNKNOWN, "not read yet");
    step.read(ctx, 0, ctx.now.mono, "the first reading");
}

fn changing(ctx: &Context<'_>, step: &mut Step) {
    let text = "on its way, and not by our hand";
    step.because(Status::Unknown, reason::POWER_UNKNOWN, text);
    let next = due(ctx, 0, Duration::ZERO, Pace::Slow);
    step.read(ctx, 0, next, "where the power goes");
}

fn unreadable(ctx: &Context<'_>, step: &mut Step, fault: &Fault) {
    let text = format!(
        "the power cannot be read: {fault}; next: {}",
        fault.class.next_step()
    );
    step.because(Status::Unknown, reason::POWER_UNKNOWN, text);
    step.read(ctx, 0, next_poll(ctx, 0), "the next poll");
}

/// Not our doing. A BMC that was reset says off of a running host until it has looked: only what it says for as
/// long as it may need counts. Then the host is powered on, which changes nothing on one that runs. Nobody asked
/// for an off, so that none is sent (specification §3.2, "The plain rule").
fn found_off(ctx: &Context<'_>, step: &mut Step) {
    let life = ctx.node_life();
    if let Life::Lives(node) = &life {
        return node_lives(ctx, step, node);
    }
    life::look(ctx, step);
    let since = ctx.settled_at();
    let twice = ctx.off_twice(0, since, ctx.config.settle);
    let is_twice = twice.is_some_and(|(_, second)| ctx.is_fresh(second));
    if let (true, Life::NotKnown { .. }) = (is_twice, &life) {
        return awaits_silence(ctx, step);
    }
    if is_twice {
        let text = "found off, and it should be on; it is powered on";
        step.event(Severity::Warning, reason::FOUND_OFF, text);
        step.busy(reason::FOUND_OFF, text);
        return step.command(ctx, &Next::begins(Command::On, 0, reason::FOUND_OFF));
    }
    let read = ctx.newest_since(0, since);
    let next = read.map_or(since, |read| read.answered + ctx.config.settle);
    let text = format!(
        "found off; powered on if it still is off at {}{}",
        ctx.second(next),
        unread(ctx)
    );
    step.because(Status::False, reason::FOUND_OFF, text);
    step.read(ctx, 0, next, "whether it is really off");
}

/// The BMC is asked on: its word may become the truth, or the Node silent.
fn node_lives(ctx: &Context<'_>, step: &mut Step, node: &NodeName) {
    life::contradicted(ctx, step, node);
    step.read(ctx, 0, next_poll(ctx, 0), "the next poll");
}

fn awaits_silence(ctx: &Context<'_>, step: &mut Step) {
    let text = match life::names(ctx) {
        none if none.is_empty() => "found off; reading which Node it carries".to_owned(),
        nodes => format!("found off; reading whether {nodes}, which it carries, lives"),
    };
    step.because(Status::False, reason::FOUND_OFF, text);
    let next = second_reading(ctx, 0).max(ctx.now.mono + ctx.config.confirm);
    step.wake(next, "whether its Node lives");
}

fn unread(ctx: &Context<'_>) -> String {
    let why = ctx.unread_life();
    why.map_or_else(String::new, |why| {
        format!("; whether its Node lives cannot be read: {why}")
    })
}

/// `spec.online` is false, and nobody asked for a proof: a host that reads off gets no command.
pub(super) fn keep_off(ctx: &Context<'_>, step: &mut Step, earlier: Option<&Intention>) {
    let settled = ctx.settled_at();
    if let Some(command) = earlier
        && let Standing::UnderWay { until } = ctx.standing(command)
    {
        return off::wait_for(step, command, until);
    }
    match ctx.newest(0).map(|read| &read.said) {
        None => first_reading(ctx, step),
        Some(Ok(Reading::On)) => off::drive(ctx, step, reason::NOT_ONLINE),
        Some(Ok(Reading::PoweringOn | Reading::PoweringOff)) => changing(ctx, step),
        Some(Ok(Reading::Off)) if earlier.is_some() => {
            let Some(command) = earlier.filter(|_| ctx.says_off(0, settled)) else {
                return until_settled(ctx, step, 0);
            };
            close(ctx, step, command);
        }
        Some(Ok(Reading::Off)) => off_as_wanted(ctx, step),
        Some(Err(fault)) => unreadable(ctx, step, fault),
    }
}

fn off_as_wanted(ctx: &Context<'_>, step: &mut Step) {
    let life = ctx.node_life();
    if let Life::Lives(node) = &life {
        return node_lives(ctx, step, node);
    }
    life::look(ctx, step);
    if let (true, Life::NotKnown { .. }) = (ctx.off_now(0).is_some(), &life) {
        let text = "off was read twice; reading whether the Node that it carries lives";
        step.because(Status::Unknown, reason::CONFIRMING, text);
        return step.read(ctx, 0, next_poll(ctx, 0), "the next poll");
    }
    if ctx.off_now(0).is_some() {
        let text = "off, as spec.online is false; no command was needed";
        step.because(Status::True, reason::AS_WANTED, text);
        return step.read(ctx, 0, next_poll(ctx, 0), "the next poll");
    }
    let next = second_reading(ctx, 0);
    let text = format!("off was read once; read again at {}", ctx.second(next));
    step.because(Status::Unknown, reason::CONFIRMING, text);
    step.read(ctx, 0, next, "the second reading of off");
}

/// A command of unknown end may still be run: what is read before then decides nothing.
pub(super) fn until_settled(ctx: &Context<'_>, step: &mut Step, level: usize) {
    let settled = ctx.settled_at();
    let text = format!(
        "{} says off; a command of unknown end could still be run until {}",
        off::name(level),
        ctx.second(settled)
    );
    step.because(Status::False, reason::SETTLING, text);
    let next = due(ctx, level, settled, Pace::Slow);
    step.read(ctx, level, next, "the end of every command of unknown end");
}

/// A power-off is there that is not wanted any more. Nothing more is sent to bring it about: what was answered
/// is proved by readings, and whatever else reads off is powered on again.
pub(super) fn withdraw(ctx: &Context<'_>, step: &mut Step, command: &Intention) {
    let level = command.level;
    let standing = ctx.standing(command);
    let since = match standing {
        Standing::UnderWay { until } => return off::wait_for(step, command, until),
        Standing::Unsent { .. } if command.before == 0 => return close(ctx, step, command),
        Standing::Answered { at } | Standing::Failed { at, .. } => at,
        Standing::Unsent { .. } | Standing::Unknown { .. } => ctx.settled_at(),
    };
    let text = format!(
        "{} is not wanted any more; what becomes of it is read",
        command.command
    );
    step.because(Status::False, reason::WITHDRAWN, text);
    let Some(read) = ctx.newest_since(level, since) else {
        let next = due(ctx, level, since, Pace::Slow);
        return step.read(ctx, level, next, "whether it is on");
    };
    if read.is_off() {
        return withdrawn_off(ctx, step, command, &standing);
    }
    // Forgotten earlier, the next leader would not know of what may still be run.
    let is_settled = ctx.now.mono >= ctx.settled_at();
    if is_settled && is_over(ctx, command, &standing) && read.said == Ok(Reading::On) {
        return close(ctx, step, command);
    }
    let next = due(ctx, level, since, Pace::Slow);
    step.read(ctx, level, next, "whether it stays on");
}

/// It took, or the host was off before.
fn withdrawn_off(ctx: &Context<'_>, step: &mut Step, command: &Intention, standing: &Standing) {
    let level = command.level;
    let is_anothers = ctx.witness(level) == Witness::Contradicts;
    if let Standing::Answered { at } = *standing
        && !is_anothers
    {
        return confirm::look(ctx, step, command, at);
    }
    if ctx.now.mono < ctx.settled_at() {
        return until_settled(ctx, step, level);
    }
    if level == 0 {
        return close(ctx, step, command);
    }
    // Only the level that took the power away can give it back.
    let text = format!("{} is off and should be on", off::name(level));
    step.event(Severity::Warning, reason::FOUND_OFF, text.clone());
    step.busy(reason::FOUND_OFF, text);
    step.command(ctx, &Next::begins(Command::On, level, reason::FOUND_OFF));
}

/// Whether the power-off can have no effect any more.
fn is_over(ctx: &Context<'_>, command: &Intention, standing: &Standing) -> bool {
    match standing {
        Standing::Answered { .. } if command.command == Command::SoftOff => {
            ctx.spent(command) >= ctx.config.soft
        }
        Standing::Answered { at } => ctx.now.mono >= at.saturating_add(ctx.config.settle),
        Standing::Unsent { .. } | Standing::Failed { .. } | Standing::Unknown { .. } => true,
        Standing::UnderWay { .. } => false,
    }
}

pub(super) fn close(ctx: &Context<'_>, step: &mut Step, command: &Intention) {
    step.done(ctx, command, reason::WITHDRAWN);
    step.status.power.command = None;
    step.status.power.confirmed_for.clear();
    let text = format!(
        "{} is not wanted any more and did not come about",
        command.command
    );
    step.event(Severity::Normal, reason::WITHDRAWN, text.clone());
    step.because(Status::Unknown, reason::WITHDRAWN, text);
    step.read(ctx, 0, next_poll(ctx, 0), "the next poll");
}
