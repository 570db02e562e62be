//! A label on the Node as a second way to ask for a reboot, as NVSentinel's label provider does. The
//! label goes in the patch that ends a reboot with success, and in no other, so each setting of the
//! label is one reboot (S5). Source: specification §10.6.

use std::collections::BTreeMap;

use super::RebootContext;
use super::record::{LastReboot, RebootOutcome, RebootRecord, RebootTrigger, TriggerFingerprint};
use super::snapshot::ObservedNode;
use super::triggers::is_source_served;

const SOURCE_PREFIX: &str = "label:";

/// The label that asks, with its value as the fingerprint. `None`: the flag names no label, the node
/// has none, or the last reboot was stopped for this very label.
pub(super) fn active_label(
    ctx: &RebootContext<'_>,
) -> Option<(String, (TriggerFingerprint, RebootTrigger))> {
    let (source, print) = standing_label(ctx)?;
    if is_source_served(ctx.node.last_reboot.get(), &source, &print) {
        return None;
    }
    let trigger = RebootTrigger {
        source: source.clone(),
        reason: print.0.clone(),
        ..RebootTrigger::default()
    };
    Some((source, (print, trigger)))
}

fn standing_label(ctx: &RebootContext<'_>) -> Option<(String, TriggerFingerprint)> {
    let key = ctx.config.request_label.as_ref()?;
    let value = ctx.node.labels.get(key)?;
    let source = format!("{SOURCE_PREFIX}{key}");
    Some((source, TriggerFingerprint(value.clone())))
}

/// The label stays, because the reboot that it asked for was stopped: whoever set it must not take
/// that for a success. Also after a later reboot for another reason: a label that a reboot serves
/// goes with it, so one that stands and counts as served was stopped.
pub(super) fn describe_unserved_label(ctx: &RebootContext<'_>) -> Option<String> {
    let (source, print) = standing_label(ctx)?;
    let is_stopped = is_source_served(ctx.node.last_reboot.get(), &source, &print);
    is_stopped.then(|| {
        format!(
            "{source} stays: the reboot that it asked for was stopped. To ask again, remove the label \
             and set it anew"
        )
    })
}

/// The labels that the reboot served and that stand unchanged. Read from the record alone, so that
/// the healer, which does not know the coordinator's flag, removes them too.
pub(super) fn served_labels(
    node: &ObservedNode,
    record: &RebootRecord,
    outcome: RebootOutcome,
) -> Vec<String> {
    if outcome != RebootOutcome::Rebooted {
        return Vec::new();
    }
    let labels = record.serves.iter().filter_map(|(source, print)| {
        let key = source.strip_prefix(SOURCE_PREFIX)?;
        let is_same = node.labels.get(key).is_some_and(|value| *value == print.0);
        is_same.then(|| key.to_owned())
    });
    labels.collect()
}

/// The labels that this reboot served are gone from the Node: later ones of the same value ask
/// again. One whose reboot was stopped earlier still stands.
pub(super) fn forget_served_labels(
    fingerprints: &mut BTreeMap<String, TriggerFingerprint>,
    record: &RebootRecord,
) {
    let is_served =
        |source: &str| source.starts_with(SOURCE_PREFIX) && record.serves.contains_key(source);
    fingerprints.retain(|source, _| !is_served(source));
}

/// The last reboot, without the fingerprint of a label that is gone by now: the next setting of the
/// label asks anew. `None`: nothing to remove.
pub(super) fn forget_removed_label(ctx: &RebootContext<'_>) -> Option<LastReboot> {
    let key = ctx.config.request_label.as_ref()?;
    if ctx.node.labels.contains_key(key) {
        return None;
    }
    let mut last = ctx.node.last_reboot.get()?.clone();
    let source = format!("{SOURCE_PREFIX}{key}");
    last.fingerprints.remove(&source).map(|_| last)
}
