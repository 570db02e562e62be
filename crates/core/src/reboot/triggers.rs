//! What asks for a reboot. Source: specification §2.1.

use std::collections::BTreeMap;

use dogwatch_api::node_reboot::RebootMethod;

use super::record::{
    LastReboot, ParsedAnnotation, RebootPhase, RebootRecord, RebootTrigger, TriggerFingerprint,
};
use super::snapshot::{
    ActiveTriggers, ObservedNode, ObservedTrigger, RebootSnapshot, TriggerState,
};
use super::{RebootContext, method, request_label};
use crate::Now;

pub const REQUEST_SOURCE: &str = "request";

pub const COMMAND_SOURCE: &str = "command";

/// The triggers that want a reboot now: sentinels that are present and were not served, and a
/// request whose time has come. While the record of the last reboot cannot be parsed, no sentinel
/// counts: it may be the one that caused that reboot.
pub fn list_active_triggers(
    seen: &RebootSnapshot,
    node: &ObservedNode,
    now: Now,
) -> ActiveTriggers {
    let last = node.last_reboot.get();
    let unreadable = matches!(node.last_reboot, ParsedAnnotation::Bad { .. });
    let triggers = seen.host.triggers.iter().filter(|_| !unreadable);
    let mut wanted: ActiveTriggers = triggers
        .filter_map(|trigger| active_sentinel(trigger, last))
        .collect();
    wanted.extend(active_request(node, now));
    wanted
}

/// The same, with the label that asks for a reboot.
pub(super) fn list_own_triggers(ctx: &RebootContext<'_>) -> ActiveTriggers {
    let mut all = list_active_triggers(ctx.seen, ctx.node, ctx.now);
    all.extend(request_label::active_label(ctx));
    all
}

/// Whether the last reboot served this appearance of the trigger.
pub fn is_source_served(
    last: Option<&LastReboot>,
    source: &str,
    fingerprint: &TriggerFingerprint,
) -> bool {
    last.is_some_and(|last| last.was_served() && last.fingerprints.get(source) == Some(fingerprint))
}

fn active_sentinel(
    seen: &ObservedTrigger,
    last: Option<&LastReboot>,
) -> Option<(String, (TriggerFingerprint, RebootTrigger))> {
    let TriggerState::Present {
        fingerprint,
        reason,
    } = &seen.state
    else {
        return None;
    };
    if is_source_served(last, &seen.source, fingerprint) {
        return None;
    }
    let trigger = RebootTrigger {
        source: seen.source.clone(),
        reason: reason.clone(),
        requester: None,
        ..RebootTrigger::default()
    };
    Some((seen.source.clone(), (fingerprint.clone(), trigger)))
}

fn active_request(
    node: &ObservedNode,
    now: Now,
) -> Option<(String, (TriggerFingerprint, RebootTrigger))> {
    let request = node.request.get()?;
    if method::lacks_node_reboot(request) {
        return None;
    }
    if request.not_before.is_some_and(|at| at > now.wall) {
        return None;
    }
    let trigger = RebootTrigger {
        source: REQUEST_SOURCE.into(),
        reason: request.reason.clone(),
        requester: Some(request.requester.clone()),
        method: request.method,
        node_reboots: request.node_reboots.clone(),
    };
    Some((
        REQUEST_SOURCE.into(),
        (node.request_fingerprint.clone()?, trigger),
    ))
}

/// The triggers that a reboot under way serves: those it began for, and those that appeared since.
pub(super) fn collect_served_triggers(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
) -> BTreeMap<String, TriggerFingerprint> {
    let mut serves = record.serves.clone();
    let wanted = list_own_triggers(ctx).into_iter();
    let joined = wanted.filter(|(_, (_, trigger))| method::joins_late(record, trigger));
    serves.extend(joined.map(|(source, (print, _))| (source, print)));
    serves
}

/// Sentinels that are still present after the boot they caused.
pub(super) fn list_surviving_sentinels(ctx: &RebootContext<'_>) -> Vec<String> {
    let last = ctx.node.last_reboot.get();
    ctx.seen
        .host
        .triggers
        .iter()
        .filter(|trigger| match &trigger.state {
            TriggerState::Present { fingerprint, .. } => {
                is_source_served(last, &trigger.source, fingerprint)
            }
            TriggerState::Absent | TriggerState::Unknown { .. } => false,
        })
        .map(|trigger| trigger.source.clone())
        .collect()
}

/// The last reboot, without the fingerprint of a command that says "not needed" now. A file that is
/// created again has a new fingerprint, but a command's output (possibly empty) is the same each
/// time, so its next "needed" must count as a new trigger. `None`: nothing to remove.
pub(super) fn forget_served_command(ctx: &RebootContext<'_>) -> Option<LastReboot> {
    let last = ctx.node.last_reboot.get()?;
    let mut triggers = ctx.seen.host.triggers.iter();
    let absent = triggers
        .any(|trigger| trigger.source == COMMAND_SOURCE && trigger.state == TriggerState::Absent);
    let mut last = last.clone();
    (absent && last.fingerprints.remove(COMMAND_SOURCE).is_some()).then_some(last)
}

/// Sentinels that could not be read, with the reason.
pub(super) fn list_unreadable_sentinels(ctx: &RebootContext<'_>) -> Vec<String> {
    ctx.seen
        .host
        .triggers
        .iter()
        .filter_map(|trigger| match &trigger.state {
            TriggerState::Unknown { why } => Some(format!("{}: {why}", trigger.source)),
            TriggerState::Absent | TriggerState::Present { .. } => None,
        })
        .collect()
}

/// Whether a trigger that this reboot serves is still present. An unreadable sentinel or request
/// counts as present: unknown never means "not needed", and never starts a new reboot either. A
/// power cycle and a hold are wanted by their request alone, in every phase: else a node that waits
/// would be cordoned for a sentinel, and be uncordoned at once.
pub(super) fn is_still_wanted(ctx: &RebootContext<'_>, record: &RebootRecord) -> bool {
    let asked = record.serves.contains_key(REQUEST_SOURCE);
    if asked && matches!(ctx.node.request, ParsedAnnotation::Bad { .. }) {
        return true;
    }
    match record.trigger.method {
        RebootMethod::Reboot => is_any_trigger_left(ctx, record),
        RebootMethod::PowerCycle | RebootMethod::Hold if record.phase > RebootPhase::Waiting => {
            let request = ctx.node.request.get();
            request.is_some_and(|request| method::is_request_of(record, request))
        }
        RebootMethod::PowerCycle | RebootMethod::Hold => {
            active_request(ctx.node, ctx.now).is_some()
        }
    }
}

fn is_any_trigger_left(ctx: &RebootContext<'_>, record: &RebootRecord) -> bool {
    let active = list_own_triggers(ctx);
    if active.keys().any(|source| {
        let request = ctx.node.request.get().filter(|_| source == REQUEST_SOURCE);
        let begun = record.phase > RebootPhase::Waiting;
        !begun || request.is_none_or(|request| method::is_request_of(record, request))
    }) {
        return true;
    }
    // A process that has just started has no result of its sentinel command before the first run
    // ends.
    let silent = |source: &str| {
        let mut triggers = ctx.seen.host.triggers.iter();
        triggers.all(|trigger| trigger.source != source)
    };
    if record.serves.contains_key(COMMAND_SOURCE) && silent(COMMAND_SOURCE) {
        return true;
    }
    ctx.seen.host.triggers.iter().any(|trigger| {
        record.serves.contains_key(&trigger.source)
            && matches!(trigger.state, TriggerState::Unknown { .. })
    })
}
