//! Reads and writes fields of JSON objects of any form.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

/// Empty if the value is no text.
pub(crate) fn parse_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Reads an RFC 3339 time.
pub(crate) fn parse_time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// When this field manager last wrote the status: conditions of most kinds have no such time of
/// their own.
pub(crate) fn last_status_write(metadata: &ObjectMeta, manager: &str) -> Option<Timestamp> {
    let entries = metadata.managed_fields.as_ref()?;
    let ours = entries.iter().filter(|entry| {
        entry.manager.as_deref() == Some(manager) && entry.subresource.as_deref() == Some("status")
    });
    ours.filter_map(|entry| entry.time.as_ref())
        .map(|time| time.0)
        .max()
}

/// Sets absent fields to null. A merge patch keeps fields that it does not name, so an older value
/// would stay.
pub(crate) fn null_absent_fields(object: &mut Value, fields: &[&str]) {
    for field in fields {
        if object.get(field).is_none() {
            object[*field] = Value::Null;
        }
    }
}
