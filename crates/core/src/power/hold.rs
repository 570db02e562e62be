//! Keeps a host off after its off was confirmed, until it may be powered on. Source: specification
//! §3.2.

use std::collections::BTreeSet;

use super::annotations::format_names;
use super::bmc::{PowerCommand, PowerReading};
use super::bmc_crosscheck::{self, BmcCrosscheck};
use super::context::PowerContext;
use super::decide::PowerAction;
use super::host::PendingCommand;
use super::readings::{ReadPace, next_poll_at, next_read_at, second_reading_at};
use super::step::{NextCommand, PowerStep};
use super::{
    PowerReason, cut_outlet, idle, machine_change, node_liveness, power_off, provisioner_work,
    status_times,
};
use crate::condition::ConditionStatus;
use crate::decision::EventSeverity;
use crate::name::NodeName;

pub(super) fn hold_off(ctx: &PowerContext<'_>, step: &mut PowerStep, command: &PendingCommand) {
    let Some(read) = ctx.newest_reading(command.level) else {
        step.set_cause(
            ConditionStatus::Unknown,
            PowerReason::PowerUnknown,
            "off according to its status; reading its power",
        );
        step.is_busy = true;
        return step.read_level_at(
            ctx,
            command.level,
            ctx.now.mono,
            "the first reading of a host that is kept off",
        );
    };
    match &read.result {
        Ok(PowerReading::Off)
            if ctx.crosscheck_level(command.level) == BmcCrosscheck::Contradicts =>
        {
            handle_contradicted_level(ctx, step, command.level);
        }
        Ok(PowerReading::Off) => match ctx.living_node() {
            Some(node) => handle_living_node(ctx, step, command, &node),
            None => handle_read_off(ctx, step, command),
        },
        Ok(PowerReading::On | PowerReading::PoweringOn | PowerReading::PoweringOff) => {
            let text = "found on although it is kept off; it is powered off again";
            handle_found_on(ctx, step, PowerReason::FoundOn, text);
        }
        Err(fault) => {
            let text = format!("off was confirmed; the current power state is unknown: {fault}");
            step.set_cause(ConditionStatus::Unknown, PowerReason::PowerUnknown, text);
            step.is_busy = is_reading_awaited(ctx);
            let soon = next_read_at(ctx, command.level, read.asked, ReadPace::Slow);
            let next = if step.is_busy {
                soon
            } else {
                next_poll_at(ctx, command.level)
            };
            step.read_level_at(ctx, command.level, next, "whether the host is still off");
        }
    }
}

/// The proof is void. Nothing is sent: the BMC may belong to another machine.
fn handle_living_node(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
    node: &NodeName,
) {
    void_proof(step);
    node_liveness::report_contradiction(ctx, step, node);
    step.read_level_at(
        ctx,
        command.level,
        next_poll_at(ctx, command.level),
        "the next poll",
    );
}

fn void_proof(step: &mut PowerStep) {
    step.status.power.off_confirmed_at = None;
    step.status.power.confirmed_for.clear();
}

fn must_be_off(ctx: &PowerContext<'_>) -> bool {
    !ctx.seen.host.online
        || PowerContext::is_reboot_pending(ctx.host_status())
        || ctx.obeyed_annotations().next().is_some()
}

/// Whether a power-on or the annotation without a key waits for fresh readings.
fn is_reading_awaited(ctx: &PowerContext<'_>) -> bool {
    ctx.keyless_annotation().is_some() || (ctx.seen.host.online && ctx.obeyed_keys().is_empty())
}

/// What is off does not feed this machine. If that need not be off, nothing else switches the level
/// on again.
fn handle_contradicted_level(ctx: &PowerContext<'_>, step: &mut PowerStep, level: usize) {
    if !must_be_off(ctx) {
        void_proof(step);
        return idle::restore_level(ctx, step, level);
    }
    let name = power_off::level_name(level);
    let text = format!(
        "{name} is off, but the BMC reports that the machine runs; it is powered off again"
    );
    handle_found_on(ctx, step, PowerReason::LevelContradictedByBMC, &text);
}

fn handle_found_on(ctx: &PowerContext<'_>, step: &mut PowerStep, why: PowerReason, text: &str) {
    void_proof(step);
    if !must_be_off(ctx) {
        machine_change::warn_of_former_machine(ctx, step);
        if let Some(command) = ctx.pending_command() {
            cut_outlet::report_changed_outlet(ctx, step, command);
        }
        step.status.power.command = None;
        let text = "on, as spec.online requests, but Dogwatch did not power it on";
        step.set_cause(ConditionStatus::True, PowerReason::AsWanted, text);
        return step.read_level_at(ctx, 0, next_poll_at(ctx, 0), "the next poll");
    }
    let command = ctx.pending_command();
    let change = command.and_then(|command| ctx.unaccepted_change(command, command.level));
    if let Some((level, change)) = change {
        return machine_change::refuse_other_machine(ctx, step, level, change);
    }
    step.add_event(EventSeverity::Warning, why, text);
    power_off::begin_power_off(ctx, step, PowerReason::FoundOn);
}

fn handle_read_off(ctx: &PowerContext<'_>, step: &mut PowerStep, command: &PendingCommand) {
    let level = command.level;
    match describe_missing_proof(ctx, command) {
        Some(_) if level == 0 && !ctx.is_proof_wanted() => return forget_proof(ctx, step),
        Some(text) => return prove_off_again(ctx, step, level, &text),
        None => {}
    }
    if !is_reading_awaited(ctx) {
        return report_held_off(ctx, step, level);
    }
    if !is_still_off(ctx, level) {
        let next = second_reading_at(ctx, level);
        let text = format!(
            "off was confirmed; the power is read again at {}",
            ctx.format_time_of(next)
        );
        step.set_cause(ConditionStatus::False, PowerReason::ConfirmingOff, text);
        step.is_busy = true;
        bmc_crosscheck::request_crosscheck(ctx, step, level);
        return step.read_level_at(ctx, level, next, "whether the host is still off");
    }
    if let Some(base) = ctx.keyless_annotation() {
        let text = format!("{} is no longer needed and is removed", base.name);
        step.set_busy(PowerReason::OffConfirmed, text);
        step.action = Some(PowerAction::RemoveAnnotations(vec![base.name.clone()]));
        return;
    }
    begin_power_on(ctx, step, level);
}

/// Whether fresh readings still say off. The BMC did not contradict when off was confirmed. Where it
/// cannot be asked again, the level's own readings are enough to give the power back; they prove
/// nothing anew.
fn is_still_off(ctx: &PowerContext<'_>, level: usize) -> bool {
    let cannot_be_asked = ctx.crosscheck_level(level) == BmcCrosscheck::CannotBeAsked;
    ctx.current_off_readings(level).is_some()
        || cannot_be_asked && ctx.fresh_off_readings(level).is_some()
}

/// Why the confirmed off is not a proof for every obeyed annotation. `None`: it is.
fn describe_missing_proof(ctx: &PowerContext<'_>, command: &PendingCommand) -> Option<String> {
    if ctx.level_digest(command.level).as_ref() != Some(&command.target) {
        return Some("the address of its BMC was changed".to_owned());
    }
    let change = ctx.machine_change(command);
    if change.is_some_and(|change| ctx.is_change_accepted(change)) {
        return Some("its BMC reports another system UUID now".to_owned());
    }
    if provisioner_work::is_command_superseded(ctx, command) {
        return Some("metal3 has managed the host since".to_owned());
    }
    let proved: BTreeSet<&String> = ctx.host_status().power.confirmed_for.iter().collect();
    let keys = ctx
        .obeyed_annotations()
        .filter(|request| request.key.is_some());
    let new: Vec<&str> = keys
        .filter(|request| !proved.contains(&request.id()))
        .map(|request| request.name.as_str())
        .collect();
    (!new.is_empty()).then(|| format!("{} was added after the proof", format_names(&new)))
}

/// The proof is void and nobody waits for one: the next readings decide.
fn forget_proof(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    void_proof(step);
    step.status.power.command = None;
    let text = "off according to another BMC; reading its power";
    step.set_cause(ConditionStatus::Unknown, PowerReason::PowerUnknown, text);
    step.read_level_at(
        ctx,
        0,
        second_reading_at(ctx, 0),
        "the power behind another BMC",
    );
}

/// The host is off, but a later annotation needs a proof made after it was set.
fn prove_off_again(ctx: &PowerContext<'_>, step: &mut PowerStep, level: usize, text: &str) {
    step.set_busy(
        PowerReason::ConfirmingOff,
        format!("off; to be proved again, because {text}"),
    );
    step.add_event(
        EventSeverity::Normal,
        PowerReason::ConfirmingOff,
        format!("off is being proved again: {text}"),
    );
    let level = if ctx.is_level_usable(level) { level } else { 0 };
    let why = PowerReason::HeldOff;
    step.set_command(ctx, &NextCommand::begin_need(PowerCommand::Off, level, why));
}

fn report_held_off(ctx: &PowerContext<'_>, step: &mut PowerStep, level: usize) {
    let since = ctx.host_status().power.off_confirmed_at;
    let since = since.map_or(String::new(), |at| format!(", confirmed at {at}"));
    let keys = ctx.obeyed_keys();
    if keys.is_empty() {
        let text = format!("off, as spec.online is false{since}");
        step.set_cause(ConditionStatus::True, PowerReason::AsWanted, text);
    } else {
        let text = format!("kept off by {}{since}", format_names(&keys));
        step.set_cause(ConditionStatus::True, PowerReason::HeldOff, text);
    }
    bmc_crosscheck::request_crosscheck(ctx, step, level);
    machine_change::request_identity(ctx, step, level);
    node_liveness::observe_liveness_at_polls(ctx, step);
    if is_still_off(ctx, level) {
        return step.read_level_at(ctx, level, next_poll_at(ctx, level), "the next poll");
    }
    // A new leader has one reading: whoever waits for the proof should not wait for a poll.
    step.is_busy = !keys.is_empty();
    let next = second_reading_at(ctx, level);
    step.read_level_at(
        ctx,
        level,
        next,
        "the second reading of a host that is kept off",
    );
}

/// Records the power-on with its time and clears the confirmed off; the next decision sends it.
fn begin_power_on(ctx: &PowerContext<'_>, step: &mut PowerStep, level: usize) {
    let Some(at) = status_times::next_status_time(&step.status, ctx.now) else {
        return;
    };
    let text = format!(
        "nothing keeps it off any more; powered on by {}",
        power_off::level_name(level)
    );
    machine_change::warn_of_former_machine(ctx, step);
    step.add_event(EventSeverity::Normal, PowerReason::PoweringOn, text.clone());
    step.set_busy(PowerReason::PoweringOn, text);
    step.status.last_powered_on = Some(at);
    void_proof(step);
    let (command, why) = (PowerCommand::On, PowerReason::PoweringOn);
    step.set_command(ctx, &NextCommand::begin_need(command, level, why));
}
