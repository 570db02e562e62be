//! Events have two spellings: `v1` is stored, `events.k8s.io/v1` is converted on the way in and
//! out.

use serde_json::{Value, json};

use super::value::{meta_mut, object_mut, text_at};

/// Fields that `events.k8s.io` renamed, as (stored, shown).
const RENAMED_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

fn rename_fields(
    value: &Value,
    pairs: impl Iterator<Item = (&'static str, &'static str)>,
) -> Value {
    let mut out = value.clone();
    let map = object_mut(&mut out);
    for (from, to) in pairs {
        if let Some(value) = map.remove(from) {
            map.insert(to.into(), value);
        }
    }
    out
}

/// Converts the stored spelling to that of `events.k8s.io/v1`.
pub(crate) fn to_events_group(event: &Value) -> Value {
    let mut out = rename_fields(event, RENAMED_FIELDS.iter().copied());
    // `events.k8s.io/v1` leaves out fields that the core group writes out empty.
    for field in ["reportingController", "reportingInstance"] {
        if out[field] == "" {
            object_mut(&mut out).remove(field);
        }
    }
    out
}

/// Converts the spelling of `events.k8s.io/v1` to the stored one.
pub(crate) fn from_events_group(event: &Value) -> Value {
    let mut out = rename_fields(
        event,
        RENAMED_FIELDS
            .iter()
            .map(|(stored, shown)| (*shown, *stored)),
    );
    if text_at(&out, &["involvedObject", "namespace"]).is_empty() && out["involvedObject"].is_null()
    {
        out["involvedObject"] = json!({});
    }
    meta_mut(&mut out);
    out
}
