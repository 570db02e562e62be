//! From an annotation to `pendingRebootSince`. Source: specification §3.2.

use super::annotations::listed;
use super::bmc::Reading;
use super::context::Context;
use super::step::Step;
use super::{reason, times};
use crate::decision::Severity;

/// Any obeyed annotation, the host on, and nothing pending: a reboot is pending from now on. Never
/// since a time that came from a user.
pub(super) fn note(ctx: &Context<'_>, step: &mut Step) {
    let names: Vec<&str> = ctx.obeyed().map(|request| request.name.as_str()).collect();
    if names.is_empty() || Context::is_reboot_pending(&step.status) || !is_on(ctx, step) {
        return;
    }
    let Some(at) = times::next(&step.status, ctx.now) else {
        return;
    };
    step.status.pending_reboot_since = Some(at);
    let text = format!("asked for by {}", listed(&names));
    step.event(Severity::Normal, reason::REBOOT_REQUESTED, text);
}

/// On, as `poweredOn` has it; but a host that said off once is read again first, and one whose off stands
/// confirmed is read at all: there may be nothing left to stop.
fn is_on(ctx: &Context<'_>, step: &Step) -> bool {
    match ctx.newest(ctx.level()).map(|read| &read.said) {
        None => ctx.status().power.off_confirmed_at.is_none(),
        Some(Ok(Reading::Off)) => step.status.power.command.as_ref().is_some_and(|command| {
            // Between the power-on and the first sight of it.
            command.command == super::Command::On
        }),
        Some(Ok(Reading::On | Reading::PoweringOn | Reading::PoweringOff) | Err(_)) => true,
    }
}
