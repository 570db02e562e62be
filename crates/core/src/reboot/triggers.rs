//! What wants a reboot. Source: specification §2.1.

use std::collections::BTreeMap;

use super::Context;
use super::record::{Fingerprint, LastReboot, Parsed, Record, Trigger};
use super::seen::{NodeSeen, Seen, TriggerSeen, TriggerState, Wanted};
use crate::Now;

/// The source of a request on the Node.
pub const REQUEST: &str = "request";

/// The source of a sentinel command.
pub const COMMAND: &str = "command";

/// What wants a reboot now: sentinels that are there and were not served, and a request whose time
/// has come. While the record of the last reboot cannot be read, no sentinel counts: it may be the
/// one that caused it.
pub fn wanted(seen: &Seen, node: &NodeSeen, now: Now) -> Wanted {
    let last = node.last.get();
    let unreadable = matches!(node.last, Parsed::Bad { .. });
    let triggers = seen.host.triggers.iter().filter(|_| !unreadable);
    let mut wanted: Wanted = triggers
        .filter_map(|trigger| sentinel(trigger, last))
        .collect();
    wanted.extend(request(node, now));
    wanted
}

/// Whether this appearance of the source was served by the last reboot.
pub fn served_source(last: Option<&LastReboot>, source: &str, fingerprint: &Fingerprint) -> bool {
    last.is_some_and(|last| last.served() && last.fingerprints.get(source) == Some(fingerprint))
}

fn sentinel(
    seen: &TriggerSeen,
    last: Option<&LastReboot>,
) -> Option<(String, (Fingerprint, Trigger))> {
    let TriggerState::Present {
        fingerprint,
        reason,
    } = &seen.state
    else {
        return None;
    };
    if served_source(last, &seen.source, fingerprint) {
        return None;
    }
    let trigger = Trigger {
        source: seen.source.clone(),
        reason: reason.clone(),
        requester: None,
    };
    Some((seen.source.clone(), (fingerprint.clone(), trigger)))
}

fn request(node: &NodeSeen, now: Now) -> Option<(String, (Fingerprint, Trigger))> {
    let request = node.request.get()?;
    if request.not_before.is_some_and(|at| at > now.wall) {
        return None;
    }
    let trigger = Trigger {
        source: REQUEST.into(),
        reason: request.reason.clone(),
        requester: Some(request.requester.clone()),
    };
    Some((REQUEST.into(), (node.request_fingerprint.clone()?, trigger)))
}

/// What a reboot serves that is under way: what it was begun for, and what has come since.
pub(super) fn all_served(ctx: &Context<'_>, record: &Record) -> BTreeMap<String, Fingerprint> {
    let mut serves = record.serves.clone();
    let wanted = wanted(ctx.seen, ctx.node, ctx.now).into_iter();
    serves.extend(wanted.map(|(source, (print, _))| (source, print)));
    serves
}

/// Sentinels that survived the boot they caused.
pub(super) fn survivors(ctx: &Context<'_>) -> Vec<String> {
    let last = ctx.node.last.get();
    ctx.seen
        .host
        .triggers
        .iter()
        .filter(|trigger| match &trigger.state {
            TriggerState::Present { fingerprint, .. } => {
                served_source(last, &trigger.source, fingerprint)
            }
            TriggerState::Absent | TriggerState::Unknown { .. } => false,
        })
        .map(|trigger| trigger.source.clone())
        .collect()
}

/// The last reboot, without what it served of a command that says "not needed" now. A file that is
/// made anew is another file; but the output of a command, which may be nothing at all, is the same
/// each time, and what it asks for after that is a new wish. `None`: nothing to take back.
pub(super) fn served_no_more(ctx: &Context<'_>) -> Option<LastReboot> {
    let last = ctx.node.last.get()?;
    let mut triggers = ctx.seen.host.triggers.iter();
    let absent =
        triggers.any(|trigger| trigger.source == COMMAND && trigger.state == TriggerState::Absent);
    let mut last = last.clone();
    (absent && last.fingerprints.remove(COMMAND).is_some()).then_some(last)
}

/// Sentinels that could not be read, with the reason.
pub(super) fn unknowns(ctx: &Context<'_>) -> Vec<String> {
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

/// Whether what this reboot serves still stands. An unreadable sentinel or request has not gone: unknown is
/// never "not needed", and never "needed" anew either.
pub(super) fn still_wanted(ctx: &Context<'_>, serves: &[&str]) -> bool {
    if !wanted(ctx.seen, ctx.node, ctx.now).is_empty() {
        return true;
    }
    if serves.contains(&REQUEST) && matches!(ctx.node.request, Parsed::Bad { .. }) {
        return true;
    }
    // A process that has just started knows nothing of its command before the first run has ended.
    let silent = |source: &str| {
        let mut triggers = ctx.seen.host.triggers.iter();
        triggers.all(|trigger| trigger.source != source)
    };
    if serves.contains(&COMMAND) && silent(COMMAND) {
        return true;
    }
    ctx.seen.host.triggers.iter().any(|trigger| {
        serves.contains(&trigger.source.as_str())
            && matches!(trigger.state, TriggerState::Unknown { .. })
    })
}
