//! A host that must be on, and no power-on under way.

use super::bmc::{Command, Fault, Reading};
use super::context::Context;
use super::host::Intention;
use super::readings::{Pace, due, next_poll};
use super::standing::Standing;
use super::step::Step;
use super::{off, reason};
use crate::condition::Status;
use crate::decision::Severity;

/// Nothing of ours is under way.
pub(super) fn watch(ctx: &Context<'_>, step: &mut Step) {
    let Some(read) = ctx.newest(0) else {
        step.because(Status::Unknown, reason::POWER_UNKNOWN, "not read yet");
        return step.read(ctx, 0, ctx.now.mono, "the first reading");
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
        Ok(Reading::PoweringOn | Reading::PoweringOff) => {
            let text = "on its way, and not by our hand";
            step.because(Status::Unknown, reason::POWER_UNKNOWN, text);
            step.read(
                ctx,
                0,
                due(ctx, 0, read.asked, Pace::Slow),
                "where the power goes",
            );
        }
        Ok(Reading::Off) => found_off(ctx, step),
        Err(fault) => unreadable(ctx, step, fault),
    }
}

fn unreadable(ctx: &Context<'_>, step: &mut Step, fault: &Fault) {
    let text = format!(
        "the power cannot be read: {fault}; next: {}",
        fault.class.next_step()
    );
    step.because(Status::Unknown, reason::POWER_UNKNOWN, text);
    step.read(ctx, 0, next_poll(ctx, 0), "the next poll");
}

/// Not our doing. A BMC that was reset says off of a running host until it has looked: only what it
/// says for as long as it may need counts, and then the operating system is asked before the power
/// is cut, for a proof that nothing runs.
fn found_off(ctx: &Context<'_>, step: &mut Step) {
    let since = ctx.settled_at();
    let twice = ctx.off_twice(0, since, ctx.config.settle);
    if twice.is_some_and(|(_, second)| ctx.is_fresh(second)) {
        let text = "found off, and it should be on; it is proved off, then powered on";
        step.event(Severity::Warning, reason::FOUND_OFF, text);
        return off::begin(ctx, step, reason::FOUND_OFF);
    }
    let read = ctx.newest_since(0, since);
    let next = read.map_or(since, |read| read.answered + ctx.config.settle);
    let text = format!(
        "found off; acted upon if it still is at {}",
        ctx.second(next)
    );
    step.because(Status::False, reason::FOUND_OFF, text);
    step.read(ctx, 0, next, "whether it is really off");
}

/// A power-off is there that is not wanted any more, or one that proves off before a power-on.
pub(super) fn withdraw(ctx: &Context<'_>, step: &mut Step, command: &Intention) {
    let level = command.level;
    let standing = ctx.standing(command);
    let since = match standing {
        Standing::UnderWay { until } => return off::wait_for(step, command, until),
        // Nothing of its need was ever sent, and it is not there to prove a host off that was found so.
        Standing::Unsent { .. } if command.before == 0 && command.why != reason::FOUND_OFF => {
            return close(ctx, step, command);
        }
        Standing::Unsent { .. } => ctx.need_seen(command),
        Standing::Answered { at } | Standing::Failed { at, .. } => at,
        Standing::Unknown { .. } => ctx.settled_at(),
    };
    let text = format!(
        "{} is not wanted any more; what becomes of it is read",
        command.command
    );
    step.because(Status::False, reason::WITHDRAWN, text);
    let newest = ctx.newest(level).map(|read| &read.said);
    if newest == Some(&Ok(Reading::Off)) {
        // It took, or was off before: it is proved off, and then powered on.
        return off::drive(ctx, step, reason::FOUND_OFF);
    }
    let Some(read) = ctx.newest_since(level, since) else {
        return step.read(
            ctx,
            level,
            due(ctx, level, since, Pace::Slow),
            "whether it is on",
        );
    };
    // Forgotten earlier, the next leader would not know of what may still be run.
    let is_settled = ctx.now.mono >= ctx.settled_at();
    if is_settled && is_over(ctx, command, &standing) && read.said == Ok(Reading::On) {
        return close(ctx, step, command);
    }
    step.read(
        ctx,
        level,
        due(ctx, level, since, Pace::Slow),
        "whether it stays on",
    );
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
