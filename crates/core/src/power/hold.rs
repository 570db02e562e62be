//! A host whose off was confirmed: kept off, until it may be powered on. Source: specification §3.2.

use std::collections::BTreeSet;

use super::annotations::listed;
use super::bmc::{Command, Reading};
use super::context::Context;
use super::decide::Action;
use super::host::Intention;
use super::readings::{Pace, due, next_poll, second_reading};
use super::step::{Next, Step};
use super::witness::{self, Witness};
use super::{life, off, reason, times};
use crate::condition::Status;
use crate::decision::Severity;
use crate::name::NodeName;

/// Off was confirmed, by `command`.
pub(super) fn keep(ctx: &Context<'_>, step: &mut Step, command: &Intention) {
    let Some(read) = ctx.newest(command.level) else {
        step.because(
            Status::Unknown,
            reason::POWER_UNKNOWN,
            "off by its status; being read",
        );
        step.is_busy = true;
        return step.read(
            ctx,
            command.level,
            ctx.now.mono,
            "the first reading of a held host",
        );
    };
    match &read.said {
        Ok(Reading::Off) if ctx.witness(command.level) == Witness::Contradicts => {
            let name = off::name(command.level);
            let text = format!(
                "{name} is off, and the BMC says that the machine runs; it is powered off again"
            );
            found_on(ctx, step, reason::LEVEL_CONTRADICTED, &text);
        }
        Ok(Reading::Off) => match ctx.living_node() {
            Some(node) => node_lives(ctx, step, command, &node),
            None => off(ctx, step, command),
        },
        Ok(Reading::On | Reading::PoweringOn | Reading::PoweringOff) => {
            let text = "found on while it is held off; it is powered off again";
            found_on(ctx, step, reason::FOUND_ON, text);
        }
        Err(fault) => {
            let text = format!("off was confirmed; whether it is off now is not known: {fault}");
            step.because(Status::Unknown, reason::POWER_UNKNOWN, text);
            step.is_busy = is_waited_for(ctx);
            let soon = due(ctx, command.level, read.asked, Pace::Slow);
            let next = if step.is_busy {
                soon
            } else {
                next_poll(ctx, command.level)
            };
            step.read(ctx, command.level, next, "whether it is still off");
        }
    }
}

/// What was proved is proved no more. Nothing is sent: what would be switched is perhaps another machine.
fn node_lives(ctx: &Context<'_>, step: &mut Step, command: &Intention, node: &NodeName) {
    step.status.power.off_confirmed_at = None;
    step.status.power.confirmed_for.clear();
    life::contradicted(ctx, step, node);
    step.read(
        ctx,
        command.level,
        next_poll(ctx, command.level),
        "the next poll",
    );
}

fn must_be_off(ctx: &Context<'_>) -> bool {
    !ctx.seen.host.online
        || Context::is_reboot_pending(ctx.status())
        || ctx.obeyed().next().is_some()
}

/// Whether somebody waits for fresh readings: a power-on, or the set-and-forget annotation.
fn is_waited_for(ctx: &Context<'_>) -> bool {
    ctx.base().is_some() || (ctx.seen.host.online && ctx.keys().is_empty())
}

fn found_on(ctx: &Context<'_>, step: &mut Step, why: &'static str, text: &str) {
    step.status.power.off_confirmed_at = None;
    step.status.power.confirmed_for.clear();
    if !must_be_off(ctx) {
        step.status.power.command = None;
        let text = "on, as spec.online wants it, though not by our hand";
        step.because(Status::True, reason::AS_WANTED, text);
        return step.read(ctx, 0, next_poll(ctx, 0), "the next poll");
    }
    step.event(Severity::Warning, why, text);
    off::begin(ctx, step, reason::FOUND_ON);
}

fn off(ctx: &Context<'_>, step: &mut Step, command: &Intention) {
    let level = command.level;
    match unproved(ctx, command) {
        Some(_) if level == 0 && !ctx.is_proof_wanted() => return forget_proof(ctx, step),
        Some(text) => return prove_anew(ctx, step, level, &text),
        None => {}
    }
    if !is_waited_for(ctx) {
        return held(ctx, step, level);
    }
    if ctx.off_now(level).is_none() {
        let next = second_reading(ctx, level);
        let text = format!("off was confirmed; read again at {}", ctx.second(next));
        step.because(Status::False, reason::CONFIRMING, text);
        step.is_busy = true;
        witness::ask(ctx, step, level);
        return step.read(ctx, level, next, "whether it is still off");
    }
    if let Some(base) = ctx.base() {
        let text = format!("{} has nothing left to stop and is removed", base.name);
        step.busy(reason::OFF_CONFIRMED, text);
        step.action = Some(Action::RemoveAnnotations(vec![base.name.clone()]));
        return;
    }
    power_on(ctx, step, level);
}

/// Why the proof that stands there is none for everybody.
fn unproved(ctx: &Context<'_>, command: &Intention) -> Option<String> {
    if ctx.target(command.level).as_ref() != Some(&command.target) {
        return Some("its BMC's address was changed".to_owned());
    }
    let proved: BTreeSet<&String> = ctx.status().power.confirmed_for.iter().collect();
    let keys = ctx.obeyed().filter(|request| request.key.is_some());
    let new: Vec<&str> = keys
        .filter(|request| !proved.contains(&request.id()))
        .map(|request| request.name.as_str())
        .collect();
    (!new.is_empty()).then(|| format!("{} came after the proof", listed(&new)))
}

/// Nobody waits for the proof that means nothing any more: what is read decides.
fn forget_proof(ctx: &Context<'_>, step: &mut Step) {
    step.status.power.off_confirmed_at = None;
    step.status.power.confirmed_for.clear();
    step.status.power.command = None;
    let text = "off by what another BMC answered; being read";
    step.because(Status::Unknown, reason::POWER_UNKNOWN, text);
    step.read(
        ctx,
        0,
        second_reading(ctx, 0),
        "the power behind another BMC",
    );
}

/// The host is off; who asked after that wants a proof made after it was asked for.
fn prove_anew(ctx: &Context<'_>, step: &mut Step, level: usize, text: &str) {
    step.busy(reason::CONFIRMING, format!("off; proved anew, for {text}"));
    step.event(
        Severity::Normal,
        reason::CONFIRMING,
        format!("off is proved anew: {text}"),
    );
    let level = if ctx.is_usable(level) { level } else { 0 };
    let why = reason::HELD_OFF;
    step.command(ctx, &Next::begins(Command::Off, level, why));
}

fn held(ctx: &Context<'_>, step: &mut Step, level: usize) {
    let since = ctx.status().power.off_confirmed_at;
    let since = since.map_or(String::new(), |at| format!(", confirmed at {at}"));
    let keys = ctx.keys();
    if keys.is_empty() {
        let text = format!("off, as spec.online is false{since}");
        step.because(Status::True, reason::AS_WANTED, text);
    } else {
        let text = format!("held off by {}{since}", listed(&keys));
        step.because(Status::True, reason::HELD_OFF, text);
    }
    witness::ask(ctx, step, level);
    life::look_at_polls(ctx, step);
    if ctx.off_now(level).is_some() {
        return step.read(ctx, level, next_poll(ctx, level), "the next poll");
    }
    // A leader that has just begun: whoever waits for the proof does not wait for a poll.
    step.is_busy = !keys.is_empty();
    let next = second_reading(ctx, level);
    step.read(ctx, level, next, "the second reading of a held host");
}

/// The power-on is written down with its time, off is confirmed no more, and then it is sent.
fn power_on(ctx: &Context<'_>, step: &mut Step, level: usize) {
    let Some(at) = times::next(&step.status, ctx.now) else {
        return;
    };
    let text = format!(
        "nothing holds it off any more; powered on by {}",
        off::name(level)
    );
    step.event(Severity::Normal, reason::POWERING_ON, text.clone());
    step.busy(reason::POWERING_ON, text);
    step.status.last_powered_on = Some(at);
    step.status.power.off_confirmed_at = None;
    step.status.power.confirmed_for.clear();
    let (command, why) = (Command::On, reason::POWERING_ON);
    step.command(ctx, &Next::begins(command, level, why));
}
