//! Phase `rebooting` of a power cycle: the controller switches the host off and on again. The
//! coordinator starts no command and undoes nothing, because the host may be switched off at any
//! time. Source: specification §10.1.

use super::record::RebootRecord;
use super::step::RebootStep;
use super::{RebootContext, RebootReason};

pub(super) fn wait_for_power_cycle(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    if let Some(deadline) = ctx.deadline_after(record, ctx.config.reboot_timeout) {
        let text = "waits for the controller to switch the host off and on, and for a new boot";
        return RebootStep::new(RebootReason::AwaitingReboot, text)
            .with_wake(deadline, "the power cycle's deadline");
    }
    let text = format!(
        "no new boot within {}; cordon and lock stay, because the host may still be switched off: \
         see NodeReboot {}, or if you are sure that it will not be, run `dogwatch abort {}`",
        crate::duration::format_duration(ctx.config.reboot_timeout),
        record
            .trigger
            .node_reboots
            .first()
            .map_or("?", |asked| &asked.name),
        ctx.node.name
    );
    RebootStep::new(RebootReason::RebootFailed, text).with_warning_event()
}
