//! Describes changes of NodeReboots.

use serde_json::Value;

use super::change_entries::ObserverEntry;
use super::cluster_observer::ObservedChange;
use super::object_views::text_at_pointer;
use super::short_names::ShortNames;

pub(super) fn node_reboot_entries(
    change: &ObservedChange,
    names: &ShortNames,
) -> Vec<ObserverEntry> {
    let about = format!("nr/{}", change.name);
    let before = change.before.as_ref().and_then(describe_state);
    let text = match &change.after {
        None => Some("is gone".to_owned()),
        Some(after) => describe_state(after).filter(|after| before.as_ref() != Some(after)),
    };
    let text = text.map(|text| names.shorten_ids(&text));
    let entry = text.map(|text| ObserverEntry::from_line(about, text));
    entry.into_iter().collect()
}

/// Phase, condition `Succeeded` and its reason.
fn describe_state(reboot: &Value) -> Option<String> {
    let phase = text_at_pointer(reboot, "/status/phase");
    let conditions = reboot["status"]["conditions"].as_array()?;
    let mut conditions = conditions.iter();
    let succeeded = conditions.find(|one| one["type"] == "Succeeded")?;
    let status = text_at_pointer(succeeded, "/status");
    let reason = text_at_pointer(succeeded, "/reason");
    Some(format!("{phase}, Succeeded {status}: {reason}"))
}
