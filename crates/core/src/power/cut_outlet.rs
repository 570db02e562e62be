//! An outlet that Dogwatch switched off, and that is no longer in the host's spec: nothing switches
//! it on again. Source: specification §3.3.

use super::PowerReason;
use super::context::PowerContext;
use super::host::{PendingCommand, PendingCommandEnd};
use super::power_off::level_name;
use super::readings::next_poll_at;
use super::step::PowerStep;
use crate::condition::ConditionStatus;
use crate::decision::EventSeverity;

impl PowerContext<'_> {
    /// Whether this power-off was answered by a further level that was changed or removed since.
    pub(super) fn is_cut_outlet_gone(&self, command: &PendingCommand) -> bool {
        let is_gone = self.level_digest(command.level).as_ref() != Some(&command.target);
        command.level > 0 && command.command.is_power_off() && is_gone && self.is_answered(command)
    }

    fn is_answered(&self, command: &PendingCommand) -> bool {
        let ours = self.seen.memory.command.as_ref();
        let ours = ours.filter(|ours| ours.id == command.id);
        let ended = ours.and_then(|ours| ours.ended.as_ref());
        let is_recorded = matches!(command.end, PendingCommandEnd::Answered { .. });
        is_recorded || ended.is_some_and(|(_, how)| how.is_ok())
    }

    /// Whether the BMC says anything: then it has power. A change of the levels forgets what it said
    /// before.
    fn is_bmc_powered(&self) -> bool {
        let newest = self.newest_reading(0);
        newest.is_some_and(|read| read.result.is_ok())
    }
}

/// Waits while the BMC has no power, because its outlet was removed from the spec while it was off.
/// Returns whether it waits.
pub(super) fn wait_for_removed_outlet(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
) -> bool {
    if !ctx.is_cut_outlet_gone(command) || ctx.is_bmc_powered() {
        return false;
    }
    let name = level_name(command.level);
    let text = format!(
        "Dogwatch has switched {name} off, and it is no longer in spec.power.levels: put it back, or switch its \
         outlet on yourself; until then the BMC is read, and nothing is sent"
    );
    let reason = PowerReason::OutletLeftOff;
    step.add_event(EventSeverity::Warning, reason, text.clone());
    step.set_cause(ConditionStatus::False, reason, text);
    let next = next_poll_at(ctx, 0);
    step.read_level_at(ctx, 0, next, "whether the BMC has power");
    true
}

/// Says that the outlet stays off, once another command takes the place of the one that cut it. If
/// its level is gone and the BMC has power, somebody has probably switched it on: a host with two
/// power supplies, or with another outlet, has power all the same.
pub(super) fn report_changed_outlet(
    ctx: &PowerContext<'_>,
    step: &mut PowerStep,
    command: &PendingCommand,
) {
    if !ctx.is_cut_outlet_gone(command) {
        return;
    }
    let name = level_name(command.level);
    if !ctx.has_level(command.level) && ctx.is_bmc_powered() {
        let text = format!(
            "{name} was removed from spec.power.levels after Dogwatch had switched it off, and the BMC has \
             power: if its former outlet is still off, switch it on yourself"
        );
        return step.add_event(EventSeverity::Normal, PowerReason::OutletLeftOff, text);
    }
    let text = format!(
        "{name} was changed in spec.power.levels, or removed from it, after Dogwatch had switched it off: its \
         former outlet may stay off; switch it on yourself"
    );
    step.add_event(EventSeverity::Warning, PowerReason::OutletLeftOff, text);
    step.record_done(ctx, command, PowerReason::OutletLeftOff);
}
