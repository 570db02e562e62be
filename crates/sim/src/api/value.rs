//! Reading objects: short ways to the fields that every verb looks at.

use serde_json::{Map, Value};

/// The value at a path of field names.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |here, name| here.get(name))
}

/// The text at a path, empty when there is none.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a path, 0 when there is none.
pub(crate) fn number(value: &Value, path: &[&str]) -> i64 {
    at(value, path).and_then(Value::as_i64).unwrap_or_default()
}

/// The truth at a path, false when there is none.
pub(crate) fn flag(value: &Value, path: &[&str]) -> bool {
    at(value, path).and_then(Value::as_bool).unwrap_or_default()
}

/// The list at a path, empty when there is none.
pub(crate) fn items<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// `metadata.NAME` as text, empty when there is none.
pub(crate) fn meta<'a>(value: &'a Value, name: &str) -> &'a str {
    text(value, &["metadata", name])
}

/// `metadata`, made when it is not there.
pub(crate) fn meta_mut(value: &mut Value) -> &mut Map<String, Value> {
    object_mut(&mut value["metadata"])
}

/// The object itself, made when it is something else.
pub(crate) fn object_mut(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object just above")
}

/// Whether a deletion was asked for.
pub(crate) fn is_terminating(value: &Value) -> bool {
    !meta(value, "deletionTimestamp").is_empty()
}

/// A condition of `status.conditions`, by type.
pub(crate) fn condition<'a>(value: &'a Value, kind: &str) -> Option<&'a Value> {
    items(value, &["status", "conditions"])
        .iter()
        .find(|condition| text(condition, &["type"]) == kind)
}

/// A time as Kubernetes writes it: RFC 3339, whole seconds, UTC.
pub(crate) fn rfc3339(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
