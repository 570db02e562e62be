//! Reads objects as a person with kubectl would.

use serde_json::Value;

/// Parses an annotation as JSON.
pub fn annotation(object: &Value, name: &str) -> Option<Value> {
    serde_json::from_str(object["metadata"]["annotations"][name].as_str()?).ok()
}

pub fn record(node: &Value) -> Option<Value> {
    annotation(node, "dogwatch.dev/reboot")
}

/// Whether a Node shows no reboot under way, and is Ready.
pub fn is_quiet(node: &Value) -> bool {
    let label = &node["metadata"]["labels"]["dogwatch.dev/reboot"];
    let kinds = [
        "MaintenancePlanned",
        "DrainInProgress",
        "Drained",
        "MaintenanceInProgress",
    ];
    let off = |kind: &&str| status_of(node, kind).is_none_or(|status| status == "False");
    record(node).is_none() && label.is_null() && is_true(node, "Ready") && kinds.iter().all(off)
}

/// The revision of the store at which this object was written.
pub fn object_version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    let version = version.and_then(|text| text.parse().ok());
    version.expect("a number")
}

/// Whether a Lease has neither a holder nor a holder's fields.
pub fn is_free(lease: &Value) -> bool {
    lease["spec"]["holderIdentity"].is_null()
        && lease["metadata"]["annotations"]["dogwatch.dev/holder"].is_null()
}

pub fn is_true(object: &Value, condition: &str) -> bool {
    status_of(object, condition) == Some("True")
}

pub fn condition<'a>(object: &'a Value, condition: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|there| there["type"] == condition)
}

pub fn status_of<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    condition(object, kind)?["status"].as_str()
}
