//! Leaves the power of a host alone while a provisioner may be at work on it. Source: specification
//! §3.2, "Whose hosts"; `facts/fencing.md` §3.

use super::PowerReason;
use super::bmc::PowerCommand;
use super::context::PowerContext;
use super::host::{HostSnapshot, HostStatus, PendingCommand};
use super::machine_change;
use super::readings::next_poll_at;
use super::snapshot::LevelReading;
use super::step::PowerStep;
use crate::condition::ConditionStatus;
use crate::decision::EventSeverity;

/// In these states metal3 follows `spec.online`. In any other (`inspecting`, `preparing`,
/// `provisioning`, `deprovisioning`) it switches the power as its work needs it: the host may flash
/// its firmware, or erase its disks.
const STEADY_STATES: [&str; 5] = [
    "provisioned",
    "externally provisioned",
    "available",
    "ready",
    "unmanaged",
];

/// The state of a host that is left to its provisioner. `None`: it is not. A forced annotation is
/// obeyed in every state, and what Dogwatch switched off itself is switched on again.
pub(super) fn unsteady_state<'a>(ctx: &PowerContext<'a>) -> Option<&'a str> {
    let state = work_state(ctx.host_status())?;
    let is_forced = ctx.obeyed_annotations().next().is_some();
    (!is_forced && !is_own_work_unfinished(ctx)).then_some(state)
}

/// The state of a host that is in no steady one.
fn work_state(status: &HostStatus) -> Option<&str> {
    let state = status.provisioning.as_deref();
    state.filter(|state| !STEADY_STATES.contains(state))
}

/// Whether the command is from before metal3 managed the host, and a provisioner may be at work
/// now: metal3 may have switched the host off since, for a step of its own work. A forced
/// annotation begins anew then, and nothing else goes on with the command. metal3 knows only the
/// BMC: what Dogwatch does to an outlet nobody else ends.
pub(super) fn is_command_superseded(ctx: &PowerContext<'_>, command: &PendingCommand) -> bool {
    command.level == 0 && is_before_provisioners_work(ctx, command)
}

fn is_before_provisioners_work(ctx: &PowerContext<'_>, command: &PendingCommand) -> bool {
    let metal3 = ctx.seen.memory.owned_by_metal3;
    let is_older = metal3.is_some_and(|seen| ctx.need_seen_at(command) <= seen);
    is_older && work_state(ctx.host_status()).is_some()
}

/// Whether the host is in a state of a provisioner's work that is not the last one that Dogwatch
/// recorded: metal3 has managed it since, even if this process never saw that.
pub(super) fn is_state_newer(host: &HostSnapshot) -> bool {
    let recorded = host.status.power.obeyed_in.as_deref();
    let state = work_state(&host.status);
    recorded.is_some() && state.is_some() && recorded != state
}

/// Withdraws a superseded command together with the record of the new state: afterwards the next
/// leader could not know that the command is older. Until the BMC can run it no more, neither is
/// written. A forced annotation replaces the command itself. A reboot that was pending is withdrawn
/// with it: it would switch off what the provisioner installs. Where an outlet was cut for it, only the
/// reboot is withdrawn: the outlet still has to be given its power back.
pub(super) fn withdraw_superseded(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let is_forced = ctx.obeyed_annotations().next().is_some();
    let older = ctx
        .pending_command()
        .filter(|command| !is_forced && is_before_provisioners_work(ctx, command));
    let Some(command) = older else {
        return;
    };
    if !is_command_superseded(ctx, command) {
        step.status.pending_reboot_since = None;
        return;
    }
    let power = &mut step.status.power;
    let settled = ctx.settled_at();
    if ctx.now.mono < settled {
        power
            .obeyed_in
            .clone_from(&ctx.host_status().power.obeyed_in);
        return step.wake_at(settled, "the end of every command whose result is unknown");
    }
    power.command = None;
    power.off_confirmed_at = None;
    power.confirmed_for.clear();
    step.status.pending_reboot_since = None;
    machine_change::warn_of_former_machine(ctx, step);
    step.record_done(ctx, command, PowerReason::Withdrawn);
    let text = format!(
        "metal3 has managed the host since {}: what follows it is left to its provisioner",
        command.command
    );
    step.add_event(EventSeverity::Normal, PowerReason::Withdrawn, text);
}

/// Whether Dogwatch's own command must still be followed by a power-on. A power-off that has not
/// switched the host off is not continued.
fn is_own_work_unfinished(ctx: &PowerContext<'_>) -> bool {
    let Some(command) = ctx.pending_command().filter(|_| ctx.seen.host.online) else {
        return false;
    };
    if is_command_superseded(ctx, command) {
        return false;
    }
    let newest = ctx.newest_reading(ctx.level_in_use());
    match command.command {
        PowerCommand::On => true,
        PowerCommand::SoftOff | PowerCommand::Off => newest.is_some_and(LevelReading::is_off),
    }
}

pub(super) fn leave_to_provisioner(ctx: &PowerContext<'_>, step: &mut PowerStep, state: &str) {
    let text = format!(
        "its provisioning state is {state}: its provisioner may be at work on it, so Dogwatch leaves its power as \
         it is"
    );
    let reason = PowerReason::ProvisionerAtWork;
    step.set_cause(ConditionStatus::Unknown, reason, text);
    step.read_level_at(ctx, 0, next_poll_at(ctx, 0), "the next poll");
    let level = ctx.level_in_use();
    if level > 0 {
        step.read_level_at(ctx, level, next_poll_at(ctx, level), "the next poll");
    }
}
