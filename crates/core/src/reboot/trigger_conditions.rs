//! The conditions about triggers: those that cannot be read, and those that no reboot serves any
//! more. Source: specification §2.1 and §2.5.

use dogwatch_api::condition::{REBOOT_TRIGGER_UNKNOWN, SENTINEL_SURVIVED_REBOOT};

use super::record::{ParsedAnnotation, RebootOutcome};
use super::report::build_observation;
use super::{RebootContext, RebootReason, method, triggers};
use crate::condition::DesiredCondition;

pub(super) fn observe_survived_sentinels(ctx: &RebootContext<'_>) -> DesiredCondition {
    let survivors = triggers::list_surviving_sentinels(ctx);
    if survivors.is_empty() {
        return build_observation(
            SENTINEL_SURVIVED_REBOOT,
            false,
            RebootReason::NoRebootWanted.as_str(),
            "",
        );
    }
    let (reason, why) = served_sentinel_reason(ctx);
    let message = format!(
        "{} {why}: remove it, or touch it to request another reboot",
        survivors.join(", ")
    );
    build_observation(SENTINEL_SURVIVED_REBOOT, true, reason.as_str(), &message)
}

/// Why a sentinel that is present causes no reboot.
pub(super) fn served_sentinel_reason(ctx: &RebootContext<'_>) -> (RebootReason, &'static str) {
    let last = ctx.node.last_reboot.get();
    if last.is_some_and(|last| last.outcome == RebootOutcome::Aborted) {
        let why =
            "is still there, unchanged, although a person stopped the reboot that it requested";
        return (RebootReason::Aborted, why);
    }
    if last.is_some_and(|last| last.soft) {
        let why = "is still there, unchanged, after the soft reboot it caused, which keeps /run";
        return (RebootReason::SentinelSurvivedReboot, why);
    }
    let why = "is still there, unchanged, after the boot it caused";
    (RebootReason::SentinelSurvivedReboot, why)
}

pub(super) fn observe_unknown_triggers(ctx: &RebootContext<'_>) -> DesiredCondition {
    let mut unknowns = triggers::list_unreadable_sentinels(ctx);
    if let Some(why) = method::describe_unusable_request(ctx.node) {
        unknowns.push(format!("annotation dogwatch.dev/reboot-requested: {why}"));
    }
    unknowns.extend(describe_unreadable_last_reboot(ctx));
    let there = !unknowns.is_empty();
    build_observation(
        REBOOT_TRIGGER_UNKNOWN,
        there,
        if there {
            RebootReason::TriggerUnknown.as_str()
        } else {
            RebootReason::NoRebootWanted.as_str()
        },
        &unknowns.join("; "),
    )
}

/// `dogwatch.dev/last-reboot` says which sentinels were served. While it cannot be parsed, no
/// sentinel causes a reboot.
pub(super) fn describe_unreadable_last_reboot(ctx: &RebootContext<'_>) -> Option<String> {
    let ParsedAnnotation::Bad { why } = &ctx.node.last_reboot else {
        return None;
    };
    Some(format!(
        "annotation dogwatch.dev/last-reboot cannot be read, so the coordinator obeys no \
         sentinel: repair or remove it ({why})"
    ))
}
