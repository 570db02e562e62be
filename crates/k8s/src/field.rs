//! Fields of objects that may have any form.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

/// A text; empty where there is none.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A time, as RFC 3339 has it.
pub(crate) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// When this manager last wrote the status: conditions of most kinds have no time of their own for that.
pub(crate) fn last_status_write(metadata: &ObjectMeta, manager: &str) -> Option<Timestamp> {
    let entries = metadata.managed_fields.as_ref()?;
    let ours = entries.iter().filter(|entry| {
        entry.manager.as_deref() == Some(manager) && entry.subresource.as_deref() == Some("status")
    });
    ours.filter_map(|entry| entry.time.as_ref())
        .map(|time| time.0)
        .max()
}

/// A merge patch keeps what it does not name: fields that are left out when they are empty are named, so
/// that an older value goes.
pub(crate) fn name_absent(object: &mut Value, fields: &[&str]) {
    for field in fields {
        if object.get(field).is_none() {
            object[*field] = Value::Null;
        }
    }
}
