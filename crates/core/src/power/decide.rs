//! Decides what to do about the power of one host.

use std::collections::BTreeSet;
use std::time::Duration;

use super::annotations::{HostRebootAnnotation, format_names};
use super::bmc::{CommandAnswer, PowerCommand};
use super::command_state::PowerCommandState;
use super::config::PowerConfig;
use super::context::PowerContext;
use super::host::{HostStatus, PendingCommand, PendingCommandEnd};
use super::refusal::{self, PowerRefusal, PowerReporting};
use super::snapshot::PowerSnapshot;
use super::step::PowerStep;
use super::{
    PowerReason, cut_outlet, hold, idle, metal3_managed, node_liveness, pending_reboot, power_off,
    power_on, provisioner_work, provisioning, readiness, readings, report,
};
use crate::Now;
use crate::condition::ConditionStatus;
use crate::decision::EventSeverity;

/// `observedAt` may be this many polls old before it alone is worth a write.
const OBSERVED_AT_WRITE_POLLS: u32 = 10;

pub type PowerDecision = crate::Decision<PowerAction, PowerObserve, PowerReason>;

#[derive(Debug, Clone, PartialEq)]
pub enum PowerAction {
    /// Writes the status, on the version that was observed. A command in it may be sent once the
    /// API server has confirmed the write ([`super::PowerMemory::record_write_done`]).
    WriteStatus(Box<StatusWrite>),
    /// Removes annotations, on the version that was observed.
    RemoveAnnotations(Vec<String>),
    /// Sends the command that is recorded on the host. Only while the lead outlasts the call.
    Send(PendingCommand),
}

/// The status as it should be. Conditions come from the decision's report.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusWrite {
    /// All fields that Dogwatch owns.
    pub status: HostStatus,
    /// Why it is worth a write, for the log.
    pub why: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PowerObserve {
    /// Reads the power of a level, at once.
    Read {
        level: usize,
        /// Whether a power-off waits for it: urgent reads go before polls.
        is_urgent: bool,
    },
    /// Reads the kubelet Leases of the Nodes that the host carries, at once.
    KubeletLeases,
    /// Checks whether power control of a level works, at once.
    Check { level: usize },
}

/// Decides what to do about this host now. Pure: the same input gives the same answer. Call
/// [`PowerSnapshot::observe_host`] first.
///
/// `id` becomes the id of a new command: `PROCESS/N`, never used before. `jitter` in 0..1 spreads
/// polls and retries.
///
/// There is at most one action. A read or check that is under way already is not started again.
pub fn decide(
    seen: &PowerSnapshot,
    config: &PowerConfig,
    id: &str,
    jitter: f64,
    now: Now,
) -> PowerDecision {
    let ctx = PowerContext::new(seen, config, id, jitter, now);
    let mut step = PowerStep::new(ctx.host_status().clone());
    let refusal = refusal::find_refusal(&ctx);
    match &refusal {
        Some(refusal) => handle_refusal(&ctx, &mut step, refusal),
        None => advance_power(&ctx, &mut step),
    }
    build_decision(&ctx, step, refusal.as_ref())
}

fn handle_refusal(ctx: &PowerContext<'_>, step: &mut PowerStep, refusal: &PowerRefusal) {
    step.set_cause(
        ConditionStatus::Unknown,
        refusal.reason,
        refusal.message.clone(),
    );
    match refusal.reporting {
        PowerReporting::Nothing => {}
        PowerReporting::Unknown => refusal::set_power_unknown(&mut step.status),
        PowerReporting::Power => {
            step.read_level_at(ctx, 0, readings::next_poll_at(ctx, 0), "the next poll");
        }
        PowerReporting::Metal3Managed => metal3_managed::observe_power(ctx, step),
    }
}

fn advance_power(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    record_command_end(ctx, step);
    forget_removed_annotations(ctx, step);
    if provisioning::was_deprovisioned(&ctx.seen.host) && !ctx.requests.is_empty() {
        return remove_deprovisioned_annotations(ctx, step);
    }
    provisioning::record_provisioning(&ctx.seen.host, &mut step.status);
    provisioner_work::withdraw_superseded(ctx, step);
    readings::record_readings(ctx, &mut step.status);
    if let Some(state) = provisioner_work::unsteady_state(ctx) {
        return provisioner_work::leave_to_provisioner(ctx, step, state);
    }
    if !ctx.seen.host.disable_power_off {
        pending_reboot::record_pending_reboot(ctx, step);
        return drive_power(ctx, step);
    }
    let mut driven = step.clone();
    drive_power(ctx, &mut driven);
    if driven.has_power_off(ctx) {
        return refusal::report_power_off_disabled(ctx, step);
    }
    *step = driven;
}

/// An annotation that was removed and set again needs a proof of its own, also with the same value.
fn forget_removed_annotations(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let there: BTreeSet<String> = ctx
        .obeyed_annotations()
        .map(HostRebootAnnotation::id)
        .collect();
    let proved = &mut step.status.power.confirmed_for;
    proved.retain(|id| there.contains(id));
}

/// Records how this process' command ended, so that the next leader finds it.
fn record_command_end(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let ours = ctx.seen.memory.command.as_ref();
    let Some(standing) = step.status.power.command.as_mut() else {
        return;
    };
    let Some(ours) =
        ours.filter(|ours| ours.id == standing.id && standing.end == PendingCommandEnd::Open)
    else {
        return;
    };
    let Some((at, how)) = &ours.ended else {
        return;
    };
    let at = ctx.wall_time_of(*at);
    // The next leader waits for it as long as for a command without an answer.
    standing.after_unknown |= matches!(how, Ok(CommandAnswer::AcceptedWithoutTask));
    standing.end = match how {
        Ok(_) => PendingCommandEnd::Answered { at },
        Err(fault) if fault.may_have_run => PendingCommandEnd::Unknown {
            at,
            message: fault.to_string(),
        },
        Err(fault) => PendingCommandEnd::Failed {
            at,
            message: fault.to_string(),
        },
    };
}

fn remove_deprovisioned_annotations(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let names: Vec<String> = ctx
        .requests
        .iter()
        .map(|request| request.name.clone())
        .collect();
    let text = format!(
        "the host is deprovisioned: {} removed",
        format_names(&names)
    );
    step.add_event(
        EventSeverity::Normal,
        PowerReason::Deprovisioned,
        text.clone(),
    );
    step.set_cause(ConditionStatus::Unknown, PowerReason::Deprovisioned, text);
    step.action = Some(PowerAction::RemoveAnnotations(names));
}

fn drive_power(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let command = ctx.pending_command();
    if let Some(command) = command.filter(|command| !ctx.has_level(command.level)) {
        return handle_removed_level(ctx, step, command);
    }
    if ctx.host_status().power.off_confirmed_at.is_some() {
        match ctx.answered_power_off() {
            Some(command) => return hold::hold_off(ctx, step, command),
            // Whoever wrote it: without an answered command of Dogwatch's it proves nothing.
            None => step.status.power.off_confirmed_at = None,
        }
    }
    let is_off = |command: &PendingCommand| command.command.is_power_off();
    match (off_reason(ctx, step), command) {
        (Some(PowerReason::NotOnline), earlier) if !earlier.is_some_and(is_off) => {
            idle::keep_offline(ctx, step, earlier);
        }
        (Some(why), _) => power_off::drive_off(ctx, step, why),
        (None, Some(command)) if command.command == PowerCommand::On => {
            power_on::drive_on(ctx, step, command);
        }
        (None, Some(command)) => idle::withdraw_power_off(ctx, step, command),
        (None, None) => idle::watch_idle_host(ctx, step),
    }
}

/// The command's level was removed from the host's spec: it cannot be read any more and proves
/// nothing. If the host must be off, that begins anew on the remaining levels.
fn handle_removed_level(ctx: &PowerContext<'_>, step: &mut PowerStep, command: &PendingCommand) {
    if let PowerCommandState::UnderWay { until } = ctx.command_state(command) {
        return power_off::wait_for_command(step, command, until);
    }
    step.status.power.off_confirmed_at = None;
    if cut_outlet::wait_for_removed_outlet(ctx, step, command) {
        return;
    }
    let settled = ctx.settled_at();
    match off_reason(ctx, step) {
        Some(why) => {
            step.record_done(ctx, command, PowerReason::GaveUp);
            power_off::begin_power_off(ctx, step, why);
        }
        None if ctx.now.mono < settled => {
            let text = format!("{} no longer exists", power_off::level_name(command.level));
            step.set_busy(PowerReason::CommandOfUnknownEnd, text);
            step.wake_at(settled, "the end of every command whose result is unknown");
        }
        None if command.command == PowerCommand::On => {
            power_on::repeat_power_on(ctx, step, 0, PowerReason::PoweringOn);
        }
        None => idle::close_command(ctx, step, command),
    }
}

/// Why the host must be off. `None`: it need not be.
fn off_reason(ctx: &PowerContext<'_>, step: &PowerStep) -> Option<PowerReason> {
    if PowerContext::is_reboot_pending(&step.status) {
        return Some(PowerReason::RebootRequested);
    }
    // Before spec.online: the writer of a key waits for a proof, which needs a sent command.
    if ctx.obeyed_annotations().next().is_some() {
        return Some(PowerReason::HeldOff);
    }
    (!ctx.seen.host.online).then_some(PowerReason::NotOnline)
}

fn build_decision(
    ctx: &PowerContext<'_>,
    mut step: PowerStep,
    refusal: Option<&PowerRefusal>,
) -> PowerDecision {
    let knows = refusal.map_or(PowerReporting::Power, |refusal| refusal.reporting);
    if knows == PowerReporting::Power {
        readings::record_readings(ctx, &mut step.status);
        // An off that Dogwatch did not cause is reported only if no Node contradicts it.
        if ctx.current_off_readings(ctx.level_in_use()).is_some()
            && ctx.answered_power_off().is_none()
        {
            node_liveness::observe_liveness(ctx, &mut step);
        }
        if let Some(at) = readings::stale_at(ctx) {
            step.wake_at(at, "a reading that gets too old");
        }
    }
    if knows.is_status_written() && !step.is_busy {
        readiness::check_levels(ctx, &mut step);
    }
    let report = report::build_report(ctx, &step, refusal);
    let write = (knows.is_status_written() && is_write_needed(ctx, &step.status)).then(|| {
        PowerAction::WriteStatus(Box::new(StatusWrite {
            status: step.status.clone(),
            why: step.cause.reason.as_str(),
        }))
    });
    step.wake_at(
        ctx.now.mono.saturating_add(poll_interval(ctx)),
        "the next poll",
    );
    PowerDecision {
        actions: step.action.or(write).into_iter().collect(),
        observe: step.observe,
        report,
        wake: step.wake,
        cause: step.cause,
    }
}

fn poll_interval(ctx: &PowerContext<'_>) -> Duration {
    ctx.config.poll.max(Duration::from_secs(1))
}

/// Whether the status changed. A newer `observedAt` is written along with other changes, and alone
/// only every tenth poll: with 10,000 hosts each poll would be 170 writes a second.
fn is_write_needed(ctx: &PowerContext<'_>, wanted: &HostStatus) -> bool {
    let standing = ctx.host_status();
    let mut same_time = wanted.clone();
    same_time.power.observed_at = standing.power.observed_at;
    if same_time != *standing {
        return true;
    }
    let (old, new) = (standing.power.observed_at, wanted.power.observed_at);
    match (old, new) {
        (Some(old), Some(new)) => {
            let age = Duration::try_from(new.duration_since(old)).unwrap_or_default();
            age >= ctx.config.poll * OBSERVED_AT_WRITE_POLLS
        }
        (None, Some(_)) => true,
        (Some(_) | None, None) => false,
    }
}
