//! Accessors for the JSON fields that every verb reads.

use serde_json::{Map, Value};

pub(crate) fn value_at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |here, name| here.get(name))
}

/// The text at a path; empty when there is none.
pub(crate) fn text_at<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value_at(value, path)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The number at a path; 0 when there is none.
pub(crate) fn number_at(value: &Value, path: &[&str]) -> i64 {
    value_at(value, path)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// The boolean at a path; false when there is none.
pub(crate) fn bool_at(value: &Value, path: &[&str]) -> bool {
    value_at(value, path)
        .and_then(Value::as_bool)
        .unwrap_or_default()
}

/// The list at a path; empty when there is none.
pub(crate) fn list_at<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value_at(value, path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// `metadata.NAME` as text; empty when there is none.
pub(crate) fn meta_text<'a>(value: &'a Value, name: &str) -> &'a str {
    text_at(value, &["metadata", name])
}

/// `metadata`, added when it is missing.
pub(crate) fn meta_mut(value: &mut Value) -> &mut Map<String, Value> {
    object_mut(&mut value["metadata"])
}

/// The value as a map; anything else is replaced by an empty one.
pub(crate) fn object_mut(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object just above")
}

/// Whether the object has a deletion timestamp.
pub(crate) fn is_terminating(value: &Value) -> bool {
    !meta_text(value, "deletionTimestamp").is_empty()
}

/// The condition of this type in `status.conditions`.
pub(crate) fn find_condition<'a>(value: &'a Value, kind: &str) -> Option<&'a Value> {
    list_at(value, &["status", "conditions"])
        .iter()
        .find(|condition| text_at(condition, &["type"]) == kind)
}

/// A time as Kubernetes writes it: RFC 3339, whole seconds, UTC.
pub(crate) fn format_rfc3339(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
