//! Events are one kind in two spellings: `v1` as stored, `events.k8s.io/v1` on the way in and out.

use serde_json::{Value, json};

use super::value::{meta_mut, object_mut, text};

/// Fields that have another name in the new group: stored, shown.
const RENAMED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

fn renamed(value: &Value, pairs: impl Iterator<Item = (&'static str, &'static str)>) -> Value {
    let mut out = value.clone();
    let map = object_mut(&mut out);
    for (from, to) in pairs {
        if let Some(value) = map.remove(from) {
            map.insert(to.into(), value);
        }
    }
    out
}

/// From the stored spelling to that of `events.k8s.io/v1`.
pub(crate) fn outward(event: &Value) -> Value {
    let mut out = renamed(event, RENAMED.iter().copied());
    // This group leaves out what the core group writes out empty.
    for field in ["reportingController", "reportingInstance"] {
        if out[field] == "" {
            object_mut(&mut out).remove(field);
        }
    }
    out
}

/// From the spelling of `events.k8s.io/v1` to the stored one.
pub(crate) fn inward(event: &Value) -> Value {
    let mut out = renamed(
        event,
        RENAMED.iter().map(|(stored, shown)| (*shown, *stored)),
    );
    if text(&out, &["involvedObject", "namespace"]).is_empty() && out["involvedObject"].is_null() {
        out["involvedObject"] = json!({});
    }
    meta_mut(&mut out);
    out
}
