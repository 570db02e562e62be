//! Phase `rebooting`: the command may have been started. Source: specification §2.4.
//!
//! Only a new boot id ends this phase (handled before it is entered). The command is started by the
//! process that wrote the record and got the answer, within [`START_WITHIN`] of it; anybody else
//! waits, because whether it ran cannot be known.

use std::time::Duration;

use super::action::Action;
use super::record::Record;
use super::seen::{CommandEnd, CommandSeen, DrainSeen, Seen};
use super::step::Step;
use super::undo::{self, Lock};
use super::{Context, draining, gates, reason, triggers};
use crate::Now;
use crate::drain::Progress;

/// The command starts within this time of the answer to the patch that wrote `rebooting`.
const START_WITHIN: Duration = Duration::from_secs(10);

/// How much longer the command may be started, by the permit that this process has.
pub fn permitted_for(seen: &Seen, now: Now) -> Duration {
    let permit = seen.run.permit.as_ref();
    let ends = permit.map_or(Duration::ZERO, |permit| permit.answered + START_WITHIN);
    ends.saturating_sub(now.mono)
}

pub(super) fn step(ctx: &Context<'_>, record: &Record) -> Step {
    let step = match undo::lock_is_ours(ctx) {
        // Who judges the lock by the run that is written there must find a live one.
        Some(Lock::OlderRun(lease)) => draining::look(ctx, record, undo::adopt(ctx, &lease)),
        Some(Lock::Ours | Lock::Lost) | None => by_command(ctx, record),
    };
    undo::watch_lock(ctx, step)
}

fn by_command(ctx: &Context<'_>, record: &Record) -> Step {
    match &ctx.seen.run.command {
        CommandSeen::FailedToStart { attempt, why } if *attempt == record.attempts => {
            not_started(ctx, record, why)
        }
        CommandSeen::Started { attempt, ended } if *attempt == record.attempts => {
            started(ctx, record, ended.as_ref())
        }
        CommandSeen::None | CommandSeen::FailedToStart { .. } | CommandSeen::Started { .. } => {
            unstarted(ctx, record)
        }
    }
}

/// This process has not started the command for this attempt.
fn unstarted(ctx: &Context<'_>, record: &Record) -> Step {
    if ctx.seen.run.adopted_attempt == Some(record.attempts) {
        return awaiting(
            ctx,
            record,
            "a run before this one may have started the reboot command",
        );
    }
    if let Some(step) = last_check(ctx, record) {
        return draining::look(ctx, record, step);
    }
    let permit = ctx
        .seen
        .run
        .permit
        .filter(|permit| permit.attempt == record.attempts);
    let expired = permit.is_none_or(|permit| ctx.now.mono >= permit.answered + START_WITHIN);
    // A patch that undoes, sent since then, would bring a node back that goes down.
    if expired || undo::write_under_way(ctx) {
        let text = "the intention was not answered just now; writing it again";
        let again = Record {
            since: ctx.now.wall,
            // Another text each time: a write that changes nothing lets an older one still arrive.
            message: format!("the intention was written again at {}", ctx.now.wall),
            ..record.clone()
        };
        let step = Step::new(reason::REBOOTING, text).patch(ctx, again);
        return in_sight(ctx, record, step);
    }
    let text = format!("{}; starting the reboot command", record.message);
    let step = Step::new(reason::REBOOTING, text)
        .say()
        .act(Action::Reboot {
            attempt: record.attempts,
        });
    in_sight(ctx, record, step)
}

/// Keeps in sight what the last check went by: what is not looked at is forgotten, and the check
/// would begin anew.
fn in_sight(ctx: &Context<'_>, record: &Record, step: Step) -> Step {
    let step = draining::look(ctx, record, step);
    if record.attempts > 1 {
        return step;
    }
    gates::look(ctx, step)
}

/// Just before the command: still cordoned, still drained, lock still ours, trigger still there.
fn last_check(ctx: &Context<'_>, record: &Record) -> Option<Step> {
    if record.attempts > 1 {
        return last_check_again(ctx, record);
    }
    let undrained = || (!record.forced).then(|| still_drained(ctx, record));
    draining::obstacle(ctx, record)
        .or_else(|| undrained().flatten())
        .or_else(|| gates_again(ctx, record))
}

/// The gates of the policy, asked anew since the drain ended. One that is shut now was perhaps shut
/// by this very drain: it counts as a failure, or it would be drained in a circle.
fn gates_again(ctx: &Context<'_>, record: &Record) -> Option<Step> {
    let step = gates::shut_now(ctx)?;
    if step.because.reason != reason::GATE_SHUT {
        return Some(step);
    }
    let text = format!("{}, right before the reboot; undoing", step.because.message);
    Some(undo::undo(ctx, record, reason::GATE_SHUT, text))
}

/// The same before a further attempt. No obstacle undoes anything any more: an earlier command may
/// still take effect.
fn last_check_again(ctx: &Context<'_>, record: &Record) -> Option<Step> {
    let serves: Vec<&str> = record.serves.keys().map(String::as_str).collect();
    if !ctx.node.unschedulable {
        return Some(failed(
            ctx,
            record,
            "the node was uncordoned, so the command is not run again",
        ));
    }
    if !triggers::still_wanted(ctx, &serves) {
        return Some(failed(
            ctx,
            record,
            "nothing asks for it any more, so the command is not run again",
        ));
    }
    if let Some(no) = gates::no_leave_to_go_on(ctx) {
        let why = format!("{}, so the command is not run again", no.because.message);
        let step = failed(ctx, record, &why);
        return Some(Step {
            // It is, once there is leave again.
            wake: no.wake,
            ..step
        });
    }
    match undo::lock_is_ours(ctx) {
        None => Some(hold("looking whether the lock is still ours")),
        Some(Lock::OlderRun(lease)) => Some(undo::adopt(ctx, &lease)),
        Some(Lock::Lost) => Some(failed(
            ctx,
            record,
            "the lock is not ours any more, so the command is not run again",
        )),
        Some(Lock::Ours) if record.forced => None,
        Some(Lock::Ours) => drained_again(ctx, record),
    }
}

fn hold(text: &str) -> Step {
    Step::new(reason::AWAITING_REBOOT, text)
}

/// Pods may have come back since the first attempt. Not for ever, either.
fn drained_again(ctx: &Context<'_>, record: &Record) -> Option<Step> {
    if draining::drain_of(ctx, record).is_some_and(|drain| drain.progress.drained()) {
        return None;
    }
    let allowed = ctx.config.reboot_timeout + ctx.config.drain_timeout;
    let Some(deadline) = ctx.due(record, allowed) else {
        let why = "the node is not drained any more, so the command is not run again";
        return Some(failed(ctx, record, why));
    };
    let step = hold("waits until the node is drained again before the command is run again");
    Some(step.wake(deadline, "the drain's deadline"))
}

fn still_drained(ctx: &Context<'_>, record: &Record) -> Option<Step> {
    let drain = draining::drain_of(ctx, record).filter(|drain| drain.progress.listed);
    let Some(drain) = drain else {
        return Some(Step::new(
            reason::DRAINING,
            "looking whether the node is still drained",
        ));
    };
    if drain.progress.drained() {
        return None;
    }
    // Nothing was started: back to draining, and this attempt never was.
    let text = "a pod came back before the reboot";
    let draining = super::record::Phase::Draining;
    let record = Record {
        phase: draining,
        // The same drain goes on, and so does its deadline.
        since: *record.began.get(&draining).unwrap_or(&record.since),
        attempts: record.attempts.saturating_sub(1),
        message: text.into(),
        ..record.clone()
    };
    Some(Step::new(reason::DRAINING, text).patch(ctx, record))
}

fn started(ctx: &Context<'_>, record: &Record, ended: Option<&CommandEnd>) -> Step {
    match ended {
        None | Some(CommandEnd::Success) => awaiting(ctx, record, "the reboot command was started"),
        Some(CommandEnd::Failure(how)) => {
            let text = format!("the reboot command ended with {how}");
            let mut step = awaiting(ctx, record, &text);
            if step.because.reason == reason::AWAITING_REBOOT {
                step.because.reason = reason::COMMAND_FAILED;
            }
            step.event(
                crate::decision::Severity::Warning,
                reason::COMMAND_FAILED,
                text,
            )
        }
    }
}

/// Waits for a new boot; after `rebootTimeout` runs the command again, while attempts are left.
fn awaiting(ctx: &Context<'_>, record: &Record, what: &str) -> Step {
    let due = ctx.due(record, ctx.config.reboot_timeout);
    if let Some(deadline) = due.max(older_permit_ends(ctx, record)) {
        let text = format!(
            "{what}; waiting for a new boot (attempt {})",
            record.attempts
        );
        return Step::new(reason::AWAITING_REBOOT, text).wake(deadline, "the reboot's deadline");
    }
    if record.attempts >= ctx.config.reboot_attempts {
        return failed(ctx, record, "no attempt is left");
    }
    again(ctx, record)
}

/// When the permit of the run that this attempt was taken over from is over. What passed before the
/// takeover is told by the wall clock, which may be set; the older run may live, not know of us yet,
/// and start its command by a permit that was answered before we took over, at the latest. Serves S5.
fn older_permit_ends(ctx: &Context<'_>, record: &Record) -> Option<Duration> {
    let run = &ctx.seen.run;
    let taken_over = run.adopted_attempt == Some(record.attempts);
    let ends = run.owned.filter(|_| taken_over)? + START_WITHIN;
    (ctx.now.mono < ends).then_some(ends)
}

fn again(ctx: &Context<'_>, record: &Record) -> Step {
    if let Some(step) = last_check_again(ctx, record) {
        return draining::look(ctx, record, step);
    }
    let progress = Progress {
        covered_by: record.budgets.clone(),
        ..Progress::default()
    };
    let drain = DrainSeen {
        progress,
        ..DrainSeen::default()
    };
    let text = format!(
        "no new boot within {:?}; running the command again",
        ctx.config.reboot_timeout
    );
    let step = draining::rebooting(ctx, record, &drain, text).warn();
    draining::look(ctx, record, step)
}

/// Cordon and lock stay: a delayed shutdown may still fire.
fn failed(ctx: &Context<'_>, record: &Record, why: &str) -> Step {
    let text = format!(
        "no new boot after {} attempts, and {why}; cordon and lock stay, because a delayed shutdown may still come: \
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
    step.event(
        crate::decision::Severity::Warning,
        reason::COMMAND_NOT_STARTED,
        text,
    )
}
