//! Whether power control would work, before it is needed. Source: specification §3.3.

use std::time::Duration;

use super::annotations::listed;
use super::context::Context;
use super::decide::Look;
use super::gate::{Knows, Refusal};
use super::seen::Access;
use super::step::Step;
use super::{life, off, reason};
use crate::condition::{Observation, Status};

/// After a failed check one is due this soon: who mends something wants to see it.
const AFTER_FAILURE: Duration = Duration::from_mins(1);

/// Checks each level that can be spoken to, at a low rate. Never while a power-off needs the BMC.
pub(super) fn looks(ctx: &Context<'_>, step: &mut Step) {
    for level in 0..ctx.seen.host.levels.len() {
        look(ctx, step, level);
    }
}

/// Checks one level, at a low rate.
pub(super) fn look(ctx: &Context<'_>, step: &mut Step, level: usize) {
    if !ctx.is_usable(level) {
        return;
    }
    let due = due(ctx, level);
    if due <= ctx.now.mono {
        step.looks.push(Look::Check { level });
    } else {
        step.wake(due, "the next check of power control");
    }
}

fn due(ctx: &Context<'_>, level: usize) -> Duration {
    let check = ctx.seen.memory.checks.get(level).and_then(Option::as_ref);
    let Some(check) = check else {
        return Duration::ZERO;
    };
    let every = match &check.found {
        Ok(()) => ctx.config.check,
        Err(_) => ctx.config.check.min(AFTER_FAILURE),
    };
    check
        .at
        .saturating_add(every.mul_f64(0.8 + 0.2 * ctx.jitter))
}

/// `PowerControlReady`.
pub(super) fn condition(ctx: &Context<'_>, refusal: Option<&Refusal>) -> Observation {
    let (status, reason, message) = match refusal {
        Some(Refusal {
            knows: Knows::Nothing | Knows::Theirs,
            reason,
            message,
        }) => (Status::Unknown, *reason, message.clone()),
        Some(refusal) => (Status::False, refusal.reason, refusal.message.clone()),
        None => levels(ctx),
    };
    Observation {
        kind: "PowerControlReady",
        status,
        reason: reason.to_owned(),
        message,
        heartbeat: false,
    }
}

fn levels(ctx: &Context<'_>) -> (Status, &'static str, String) {
    if !ctx.seen.same_system.is_empty() {
        return (Status::False, reason::SAME_SYSTEM, same_system(ctx));
    }
    if let Some(node) = ctx.living_node() {
        let text = life::contradiction(&node);
        return (Status::False, reason::POWER_CONTRADICTED, text);
    }
    let all: Vec<_> = (0..ctx.seen.host.levels.len())
        .map(|level| one(ctx, level))
        .collect();
    let worst = |status| all.iter().find(|(is, _, _)| *is == status).cloned();
    worst(Status::False)
        .or_else(|| worst(Status::Unknown))
        .unwrap_or_else(|| {
            (
                Status::True,
                reason::CHECKED,
                "power control was checked and works".to_owned(),
            )
        })
}

fn same_system(ctx: &Context<'_>) -> String {
    let others: Vec<String> = ctx
        .seen
        .same_system
        .iter()
        .map(ToString::to_string)
        .collect();
    let others = listed(&others);
    format!(
        "its BMC tells the system UUID that the BMC of {others} told first: off is not proved of this host; correct the address that is wrong, or the UUID"
    )
}

fn one(ctx: &Context<'_>, level: usize) -> (Status, &'static str, String) {
    let name = off::name(level);
    let devices = &ctx.seen.host.levels[level].devices;
    if let Some(Err(bad)) = devices
        .iter()
        .map(|device| &device.address)
        .find(|address| address.is_err())
    {
        let text = format!("{bad}; correct it");
        return (Status::False, reason::INVALID_ADDRESS, text);
    }
    if let Some(Access::Missing { reason, message }) = ctx.seen.access.get(level) {
        return (Status::False, reason, format!("{name}: {message}"));
    }
    let check = ctx.seen.memory.checks.get(level).and_then(Option::as_ref);
    let read = ctx
        .newest(level)
        .map(|read| (read.answered, read.said.as_ref().err()));
    let found = check.map(|check| (check.at, check.found.as_ref().err()));
    // A reading that failed tells the same as a check; one that did not says nothing of commands.
    let newest_failure = read
        .filter(|(at, fault)| fault.is_some() && found.is_none_or(|(checked, _)| *at > checked));
    match newest_failure.or(found) {
        None => (
            Status::Unknown,
            reason::NOT_CHECKED,
            format!("{name} was not checked yet"),
        ),
        Some((_, None)) => (Status::True, reason::CHECKED, String::new()),
        Some((_, Some(fault))) => {
            let text = format!("{name}: {fault}; next: {}", fault.class.next_step());
            (Status::False, fault.class.reason(), text)
        }
    }
}
