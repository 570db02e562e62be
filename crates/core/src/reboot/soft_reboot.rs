//! systemd's soft reboot: userspace starts anew, and the kernel and its boot id stay. It is told
//! apart by systemd's `SoftRebootsCount`, which the record has from before the command. It proves
//! nothing about the kernel or a device. Source: specification §10.6; promise S4.

use super::action::{NodePatch, RebootAction};
use super::record::{RebootPhase, RebootRecord};
use super::step::{RebootStep, build_record_patch};
use super::{RebootContext, RebootReason};

/// Whether systemd has restarted userspace in this boot since the command was announced. Unknown
/// counts as no: then the node waits for a new boot, as ever.
pub(super) fn has_soft_rebooted(ctx: &RebootContext<'_>, record: &RebootRecord) -> bool {
    let (before, now) = (record.soft_reboots, ctx.seen.host.soft_reboots);
    let has_grown = before.is_some_and(|before| now.is_some_and(|now| now > before));
    has_grown && record.boot_id == *ctx.boot
}

/// The policy accepts a soft reboot for a reboot: the node returns into service.
pub(super) fn accept_soft_reboot(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
) -> Option<RebootStep> {
    if !ctx.config.accept_soft || !has_soft_rebooted(ctx, record) {
        return None;
    }
    let text = format!(
        "a soft reboot, which the policy accepts: systemd has restarted userspace, boot {} goes on",
        ctx.boot
    );
    let record = RebootRecord {
        phase: RebootPhase::Returning,
        since: ctx.now.wall,
        message: text.clone(),
        soft: true,
        usable: None,
        ..record.clone()
    };
    let patch = NodePatch {
        waiting_label: Some(false),
        ..build_record_patch(ctx, record)
    };
    let step = RebootStep::new(RebootReason::SoftRebooted, text);
    Some(step.with_action(RebootAction::PatchNode(Box::new(patch))))
}

/// While the node waits for a new boot, or has given up: says that a soft reboot was made instead.
pub(super) fn report_soft_reboot(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    mut step: RebootStep,
) -> RebootStep {
    let waits = step.because.reason == RebootReason::AwaitingReboot;
    let failed = step.because.reason == RebootReason::RebootFailed;
    if !(waits || failed) || !has_soft_rebooted(ctx, record) {
        return step;
    }
    step.because.message = format!("{SOFT_REBOOT_ONLY}; {}", step.because.message);
    if waits {
        step.because.reason = RebootReason::SoftRebootOnly;
        // Without the time of the deadline, which the Event would repeat for each attempt.
        let severity = crate::decision::EventSeverity::Warning;
        return step.with_event(severity, RebootReason::SoftRebootOnly, SOFT_REBOOT_ONLY);
    }
    step
}

const SOFT_REBOOT_ONLY: &str = "systemd made a soft reboot, which keeps the kernel, instead of a reboot: remove /run/nextroot \
     on the host or correct --reboot-command, or set reboot.acceptSoft in the policy";
