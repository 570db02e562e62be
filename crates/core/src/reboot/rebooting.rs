//! Phase `rebooting`: the command may have been started. Source: specification §2.4.
//!
//! Only a new boot id ends this phase, or a soft reboot that the policy accepts; the boot id is
//! checked before this code runs. The process that
//! wrote the record and got the answer starts the command, within [`COMMAND_START_LIMIT`] of that
//! answer. Any other process waits, because it cannot know whether the command ran.

use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;

use super::action::RebootAction;
use super::record::RebootRecord;
use super::snapshot::{CommandEnd, ObservedDrain, RebootCommandState, RebootSnapshot};
use super::step::RebootStep;
use super::undo::{self, OwnLockState};
use super::{
    RebootContext, RebootReason, drained, draining, gates, power_cycle, soft_reboot, triggers,
};
use crate::Now;
use crate::drain::DrainProgress;

/// The command starts within this time of the answer to the patch that wrote `rebooting`.
const COMMAND_START_LIMIT: Duration = Duration::from_secs(10);

/// How much longer this process may start the command under its permit.
pub fn permit_time_left(seen: &RebootSnapshot, now: Now) -> Duration {
    let permit = seen.run.permit.as_ref();
    let ends = permit.map_or(Duration::ZERO, |permit| {
        permit.answered + COMMAND_START_LIMIT
    });
    ends.saturating_sub(now.mono)
}

pub(super) fn decide_rebooting_phase(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    let step = match undo::own_lock_state(ctx) {
        // The run recorded on the Lease must be a live one, because others judge the lock by it.
        Some(OwnLockState::OlderRun(lease)) => {
            draining::observe_drain(ctx, record, undo::adopt_lease(ctx, &lease))
        }
        Some(OwnLockState::Ours | OwnLockState::Lost) | None => {
            let step = decide_by_command_state(ctx, record);
            undo::disown_removed_cordon(ctx, record, step)
        }
    };
    undo::keep_lock_observed(ctx, step)
}

fn decide_by_command_state(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    if record.trigger.method == RebootMethod::PowerCycle {
        return power_cycle::wait_for_power_cycle(ctx, record);
    }
    if let Some(step) = soft_reboot::accept_soft_reboot(ctx, record) {
        return step;
    }
    let step = match &ctx.seen.run.command {
        RebootCommandState::FailedToStart { attempt, why } if *attempt == record.attempts => {
            handle_unstartable_command(ctx, record, why)
        }
        RebootCommandState::Started { attempt, ended } if *attempt == record.attempts => {
            decide_started_command(ctx, record, ended.as_ref())
        }
        RebootCommandState::None
        | RebootCommandState::FailedToStart { .. }
        | RebootCommandState::Started { .. } => decide_unstarted_command(ctx, record),
    };
    soft_reboot::report_soft_reboot(ctx, record, step)
}

/// This process has not started the command for this attempt.
fn decide_unstarted_command(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    if ctx.seen.run.adopted_attempt == Some(record.attempts) {
        return wait_for_new_boot(
            ctx,
            record,
            "an earlier run may have started the reboot command",
        );
    }
    if let Some(step) = check_before_command(ctx, record) {
        return draining::observe_drain(ctx, record, step);
    }
    let permit = ctx
        .seen
        .run
        .permit
        .filter(|permit| permit.attempt == record.attempts);
    let expired = permit.is_none_or(|permit| ctx.now.mono >= permit.answered + COMMAND_START_LIMIT);
    // A patch that undoes the drain, sent since then, would put a node back into service that is
    // about to go down.
    if expired || undo::is_patch_under_way(ctx) {
        let text = "the write of the reboot's intention was not answered; writing it again";
        let again = RebootRecord {
            since: ctx.now.wall,
            // The time makes the text differ: a write without a change would let an older patch
            // still arrive.
            message: format!("the intention was written again at {}", ctx.now.wall),
            ..record.clone()
        };
        let step = RebootStep::new(RebootReason::Rebooting, text).with_record_patch(ctx, again);
        return observe_last_check(ctx, record, step);
    }
    let text = format!("{}; starting the reboot command", record.message);
    let step = RebootStep::new(RebootReason::Rebooting, text)
        .with_normal_event()
        .with_action(RebootAction::Reboot {
            attempt: record.attempts,
        });
    observe_last_check(ctx, record, step)
}

/// Keeps observing the facts of the last check: dropped facts would make the check begin again.
fn observe_last_check(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    step: RebootStep,
) -> RebootStep {
    let step = draining::observe_drain(ctx, record, step);
    if record.attempts > 1 {
        return step;
    }
    gates::observe_start_gates(ctx, step)
}

/// Right before the command: still cordoned, still drained, lock still ours, trigger still present.
fn check_before_command(ctx: &RebootContext<'_>, record: &RebootRecord) -> Option<RebootStep> {
    if record.attempts > 1 {
        return check_before_next_attempt(ctx, record);
    }
    let undrained = || (!record.forced).then(|| check_still_drained(ctx, record));
    draining::find_drain_obstacle(ctx, record)
        .or_else(|| undrained().flatten())
        .or_else(|| recheck_gates(ctx, record))
}

/// Asks the policy's gates again after the drain. A gate that is shut now may have been shut by
/// this very drain, so it counts as a failure; otherwise the node would be drained again and again.
pub(super) fn recheck_gates(ctx: &RebootContext<'_>, record: &RebootRecord) -> Option<RebootStep> {
    let step = gates::find_shut_gate_before_reboot(ctx)?;
    if step.because.reason != RebootReason::GateShut {
        return Some(step);
    }
    let text = format!(
        "{}, right before the reboot; undoing the drain",
        step.because.message
    );
    Some(undo::undo_and_back_off(
        ctx,
        record,
        RebootReason::GateShut,
        text,
    ))
}

/// The check before a further attempt. It undoes nothing, because an earlier command may still take
/// effect.
fn check_before_next_attempt(ctx: &RebootContext<'_>, record: &RebootRecord) -> Option<RebootStep> {
    if !ctx.node.unschedulable {
        return Some(report_failed_reboot(
            ctx,
            record,
            "the node was uncordoned, so the command is not run again",
        ));
    }
    if !triggers::is_still_wanted(ctx, record) {
        return Some(report_failed_reboot(
            ctx,
            record,
            "nothing requests the reboot any more, so the command is not run again",
        ));
    }
    if let Some(no) = gates::find_continue_refusal(ctx) {
        let why = format!("{}, so the command is not run again", no.because.message);
        let step = report_failed_reboot(ctx, record, &why);
        return Some(RebootStep {
            // The command may run again once the policy allows it.
            wake: no.wake,
            ..step
        });
    }
    match undo::own_lock_state(ctx) {
        None => Some(awaiting_reboot_step(
            "checking whether this node still holds the lock",
        )),
        Some(OwnLockState::OlderRun(lease)) => Some(undo::adopt_lease(ctx, &lease)),
        Some(OwnLockState::Lost) => Some(report_failed_reboot(
            ctx,
            record,
            "this node no longer holds the lock, so the command is not run again",
        )),
        Some(OwnLockState::Ours) if record.forced => None,
        Some(OwnLockState::Ours) => wait_for_redrain(ctx, record),
    }
}

fn awaiting_reboot_step(text: &str) -> RebootStep {
    RebootStep::new(RebootReason::AwaitingReboot, text)
}

/// Pods may have come back since the first attempt. Waits until they are gone, with a deadline.
fn wait_for_redrain(ctx: &RebootContext<'_>, record: &RebootRecord) -> Option<RebootStep> {
    if draining::matching_drain(ctx, record).is_some_and(|drain| drain.progress.is_drained()) {
        return None;
    }
    let allowed = ctx.config.reboot_timeout + ctx.config.longest_drain();
    let Some(deadline) = ctx.deadline_after(record, allowed) else {
        let why = "the node is not drained any more, so the command is not run again";
        return Some(report_failed_reboot(ctx, record, why));
    };
    let step = awaiting_reboot_step(
        "waits until the node is drained again before the command is run again",
    );
    Some(step.with_wake(deadline, "the drain's deadline"))
}

fn check_still_drained(ctx: &RebootContext<'_>, record: &RebootRecord) -> Option<RebootStep> {
    let drain = draining::matching_drain(ctx, record).filter(|drain| drain.progress.listed);
    let Some(drain) = drain else {
        return Some(RebootStep::new(
            RebootReason::Draining,
            "checking whether the node is still drained",
        ));
    };
    if drain.progress.is_drained() {
        return None;
    }
    // The command was not started: back to `draining`, and the attempt is not counted.
    let text = "a pod came back before the reboot";
    let draining = super::record::RebootPhase::Draining;
    let record = RebootRecord {
        phase: draining,
        // It is still the same drain, with the same deadline.
        since: *record.began.get(&draining).unwrap_or(&record.since),
        attempts: record.attempts.saturating_sub(1),
        message: text.into(),
        ..record.clone()
    };
    Some(RebootStep::new(RebootReason::Draining, text).with_record_patch(ctx, record))
}

fn decide_started_command(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    ended: Option<&CommandEnd>,
) -> RebootStep {
    match ended {
        None | Some(CommandEnd::Success) => {
            wait_for_new_boot(ctx, record, "the reboot command was started")
        }
        Some(CommandEnd::Failure(how)) => {
            let text = format!("the reboot command ended with {how}");
            let mut step = wait_for_new_boot(ctx, record, &text);
            if step.because.reason == RebootReason::AwaitingReboot {
                step.because.reason = RebootReason::RebootCommandFailed;
            }
            step.with_event(
                crate::decision::EventSeverity::Warning,
                RebootReason::RebootCommandFailed,
                text,
            )
        }
    }
}

/// Waits for a new boot; after `rebootTimeout` runs the command again, while attempts are left.
fn wait_for_new_boot(ctx: &RebootContext<'_>, record: &RebootRecord, what: &str) -> RebootStep {
    let due = ctx.deadline_after(record, ctx.config.reboot_timeout);
    if let Some(deadline) = due.max(older_permit_ends_at(ctx, record)) {
        let text = format!(
            "{what}; waiting for a new boot (attempt {})",
            record.attempts
        );
        return RebootStep::new(RebootReason::AwaitingReboot, text)
            .with_wake(deadline, "the reboot's deadline");
    }
    if record.attempts >= ctx.config.reboot_attempts {
        return report_failed_reboot(ctx, record, "no attempt is left");
    }
    start_next_attempt(ctx, record)
}

/// When the permit of the run that this attempt was taken over from has expired. The time before
/// the takeover is known only by the wall clock, which may have been set. The older run may still
/// live without knowing of this one, and may start its command under a permit answered just before
/// the takeover. Serves S5.
fn older_permit_ends_at(ctx: &RebootContext<'_>, record: &RebootRecord) -> Option<Duration> {
    let run = &ctx.seen.run;
    let taken_over = run.adopted_attempt == Some(record.attempts);
    let ends = run.owned_since.filter(|_| taken_over)? + COMMAND_START_LIMIT;
    (ctx.now.mono < ends).then_some(ends)
}

fn start_next_attempt(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    if let Some(step) = check_before_next_attempt(ctx, record) {
        return draining::observe_drain(ctx, record, step);
    }
    let progress = DrainProgress {
        covered_by: record.budgets.clone(),
        ..DrainProgress::default()
    };
    let drain = ObservedDrain {
        progress,
        ..ObservedDrain::default()
    };
    let text = format!(
        "no new boot within {}; running the command again",
        crate::duration::format_duration(ctx.config.reboot_timeout)
    );
    let step = drained::begin_reboot_attempt(ctx, record, &drain, text).with_warning_event();
    draining::observe_drain(ctx, record, step)
}

/// Cordon and lock stay, because a delayed shutdown may still come.
fn report_failed_reboot(ctx: &RebootContext<'_>, record: &RebootRecord, why: &str) -> RebootStep {
    let text = format!(
        "no new boot after {} attempts, and {why}; cordon and lock stay, because a delayed shutdown may still happen: \
         reboot the node by hand, or if you are sure that it will not shut down, run `dogwatch abort {}`",
        record.attempts, ctx.node.name
    );
    RebootStep::new(RebootReason::RebootFailed, text).with_warning_event()
}

/// An attempt whose command could not even be started does not count.
fn handle_unstartable_command(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    why: &str,
) -> RebootStep {
    let text = format!("the reboot command could not be started: {why}");
    if record.attempts <= 1 {
        return undo::undo_and_back_off(ctx, record, RebootReason::RebootCommandNotStarted, text);
    }
    let step = wait_for_new_boot(ctx, record, &text);
    step.with_event(
        crate::decision::EventSeverity::Warning,
        RebootReason::RebootCommandNotStarted,
        text,
    )
}
