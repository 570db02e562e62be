//! Turns a reboot annotation into `pendingRebootSince`. Source: specification §3.2.

use super::annotations::format_names;
use super::bmc::PowerReading;
use super::context::PowerContext;
use super::step::PowerStep;
use super::{PowerReason, status_times};
use crate::decision::EventSeverity;

/// If an annotation is obeyed, the host is on and no reboot is pending, a reboot is pending from
/// now on. The time never comes from a user.
pub(super) fn record_pending_reboot(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let names: Vec<&str> = ctx
        .obeyed_annotations()
        .map(|request| request.name.as_str())
        .collect();
    if names.is_empty()
        || PowerContext::is_reboot_pending(&step.status)
        || !is_presumed_on(ctx, step)
    {
        return;
    }
    let Some(at) = status_times::next_status_time(&step.status, ctx.now) else {
        return;
    };
    step.status.pending_reboot_since = Some(at);
    let text = format!("requested by {}", format_names(&names));
    step.add_event(EventSeverity::Normal, PowerReason::RebootRequested, text);
}

/// On according to `poweredOn`. But a host that said off once must be read again first, and a host
/// with a confirmed off must be read at least once: there may be nothing left to stop.
fn is_presumed_on(ctx: &PowerContext<'_>, step: &PowerStep) -> bool {
    match ctx
        .newest_reading(ctx.level_in_use())
        .map(|read| &read.result)
    {
        None => ctx.host_status().power.off_confirmed_at.is_none(),
        Some(Ok(PowerReading::Off)) => step.status.power.command.as_ref().is_some_and(|command| {
            // Between the power-on and the first reading of on.
            command.command == super::PowerCommand::On
        }),
        Some(
            Ok(PowerReading::On | PowerReading::PoweringOn | PowerReading::PoweringOff) | Err(_),
        ) => true,
    }
}
