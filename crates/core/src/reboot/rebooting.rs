//! Phase `rebooting`: the command may have been started. Source: specification §2.4.
//!
//! Only a new boot id ends this phase (handled before it is entered). The command is started by the
//! process that wrote the record and got the answer, within [`START_WITHIN`] of it; anybody else
//! waits, because whether it ran cannot be known.

use std::time::Duration;

use super::action::Action;
use super::record::Record;
use super::seen::{CommandEnd, CommandSeen, DrainSeen};
use super::step::Step;
use super::undo::{self, Lock};
use super::{Context, draining, reason, triggers};
use crate::drain::Progress;

/// The command starts within this time of the answer to the patch that wrote `rebooting`.
const START_WITHIN: Duration = Duration::from_secs(10);

pub(super) fn step(ctx: &Context<'_>, record: &Record) -> Step {
    let step = match &ctx.seen.run.command {
        CommandSeen::FailedToStart { attempt, why } if *attempt == record.attempts => {
            not_started(ctx, record, why)
        }
        CommandSeen::Started { attempt, ended } if *attempt == record.attempts => {
            started(ctx, record, ended.as_ref())
        }
        CommandSeen::None | CommandSeen::FailedToStart { .. } | CommandSeen::Started { .. } => {
            unstarted(ctx, record)
        }
    };
    undo::watch_lock(ctx, step)
}

/// This process has not started the command for this attempt.
fn unstarted(ctx: &Context<'_>, record: &Record) -> Step {
    if ctx.seen.run.adopted_attempt == Some(record.attempts) {
        return awaiting(ctx, record, "a run before this one may have started the reboot command");
    }
    if let Some(step) = last_check(ctx, record) {
        return step;
    }
    let permit = ctx.seen.run.permit.filter(|permit| permit.attempt == record.attempts);
    if permit.is_none_or(|permit| ctx.now.mono >= permit.answered + START_WITHIN) {
        let text = "the intention was not answered just now; writing it again";
        let record = Record { since: ctx.now.wall, ..record.clone() };
        return with_drain(Step::new(reason::REBOOTING, text).patch(ctx, record));
    }
    let text = format!("{}; starting the reboot command", record.message);
    Step::new(reason::REBOOTING, text).say().act(Action::Reboot { attempt: record.attempts })
}

/// Just before the command: still cordoned, still drained, lock still ours, trigger still there.
fn last_check(ctx: &Context<'_>, record: &Record) -> Option<Step> {
    if record.attempts > 1 {
        return last_check_again(ctx, record).map(with_drain);
    }
    if let Some(step) = draining::obstacle(ctx, record) {
        return Some(with_drain(step));
    }
    (!record.forced).then(|| still_drained(ctx, record)).flatten().map(with_drain)
}

/// No obstacle of a later attempt undoes anything: an earlier command may still take effect.
fn last_check_again(ctx: &Context<'_>, record: &Record) -> Option<Step> {
    let hold = |text: &str| Some(Step::new(reason::AWAITING_REBOOT, text.to_owned()));
    let serves: Vec<&str> = record.serves.keys().map(String::as_str).collect();
    if !ctx.node.unschedulable {
        return hold("the node was uncordoned; the reboot command is not run again");
    }
    if !triggers::still_wanted(ctx, &serves) {
        return hold("what asked for the reboot is gone; the command is not run again");
    }
    match undo::lock_is_ours(ctx) {
        None => hold("looking whether the lock is still ours"),
        Some(Lock::OlderRun(lease)) => Some(undo::adopt(ctx, &lease)),
        Some(Lock::Lost) => hold("the lock is not ours any more; the command is not run again"),
        Some(Lock::Ours) => match &ctx.seen.drain {
            Some(drain) if record.forced || drain.progress.drained() => None,
            Some(_) | None => hold("waits until the node is drained before the command is run again"),
        },
    }
}

fn still_drained(ctx: &Context<'_>, record: &Record) -> Option<Step> {
    match &ctx.seen.drain {
        None => Some(Step::new(reason::DRAINING, "looking whether the node is still drained")),
        Some(drain) if drain.progress.drained() => None,
        Some(_) => {
            // Nothing was started: back to draining, and this attempt never was.
            let record = Record {
                phase: super::record::Phase::Draining,
                attempts: record.attempts - 1,
                message: "a pod came back before the reboot".into(),
                ..record.clone()
            };
            Some(Step::new(reason::DRAINING, "a pod came back before the reboot").patch(ctx, record))
        }
    }
}

fn with_drain(step: Step) -> Step {
    step.look(undo::drain_look(false))
}

fn started(ctx: &Context<'_>, record: &Record, ended: Option<&CommandEnd>) -> Step {
    match ended {
        None | Some(CommandEnd::Success) => {
            awaiting(ctx, record, "the reboot command was started")
        }
        Some(CommandEnd::Failure(how)) => {
            let text = format!("the reboot command ended with {how}");
            let mut step = awaiting(ctx, record, &text);
            if step.because.reason == reason::AWAITING_REBOOT {
                step.because.reason = reason::COMMAND_FAILED;
            }
            step.event(crate::decision::Severity::Warning, reason::COMMAND_FAILED, text)
        }
    }
}

/// Waits for a new boot; after `rebootTimeout` runs the command again, while attempts are left.
fn awaiting(ctx: &Context<'_>, record: &Record, what: &str) -> Step {
    let passed = ctx.now.since(record.since);
    if passed < ctx.config.reboot_timeout {
        let deadline = ctx.now.mono + (ctx.config.reboot_timeout - passed);
        let text = format!("{what}; waiting for a new boot (attempt {})", record.attempts);
        return Step::new(reason::AWAITING_REBOOT, text).wake(deadline, "the reboot's deadline");
    }
    if record.attempts >= ctx.config.reboot_attempts {
        return failed(ctx, record);
    }
    again(ctx, record)
}

fn again(ctx: &Context<'_>, record: &Record) -> Step {
    if let Some(step) = last_check_again(ctx, record) {
        return with_drain(step);
    }
    let progress = Progress { covered_by: record.budgets.clone(), ..Progress::default() };
    let drain = DrainSeen { progress, ..DrainSeen::default() };
    let text = format!("no new boot within {:?}; running the command again", ctx.config.reboot_timeout);
    with_drain(draining::rebooting(ctx, record, &drain, text).warn())
}

/// Cordon and lock stay: a delayed shutdown may still fire.
fn failed(ctx: &Context<'_>, record: &Record) -> Step {
    let text = format!(
        "no new boot after {} attempts; cordon and lock stay, because a delayed shutdown may still come: \
         reboot the node by hand, or when it is sure that it will not go down, run `dogwatch abort {}`",
        record.attempts, ctx.node.name
    );
    Step::new(reason::REBOOT_FAILED, text).warn()
}

/// A command that could not even be started is none.
fn not_started(ctx: &Context<'_>, record: &Record, why: &str) -> Step {
    let text = format!("the reboot command could not be started: {why}");
    if record.attempts <= 1 {
        return undo::undo(ctx, record, reason::COMMAND_NOT_STARTED, text);
    }
    let step = awaiting(ctx, record, &text);
    step.event(crate::decision::Severity::Warning, reason::COMMAND_NOT_STARTED, text)
}
