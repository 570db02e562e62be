//! Replaces the dates of JSON text that jiff cannot hold.

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer};
use serde_json::Value;

/// The last second that jiff reads.
const LAST_READABLE: &str = "9999-12-30T22:00:00Z";
/// For dates before the year 0, which Go writes in a form of its own.
const FIRST_READABLE: &str = "0000-01-01T00:00:00Z";

/// Texts of people, and no dates of Kubernetes.
const FREE_TEXTS: [&str; 3] = ["annotations", "labels", "data"];

/// `None`: the text has no such date.
pub(super) fn clamp_object_dates(text: &str) -> Option<String> {
    let clamped: ClampedObject = serde_json::from_str(text).ok()?;
    clamped.is_changed.then_some(clamped.text)
}

/// Like [`clamp_object_dates`], for a list. Only one of its objects at a time is in memory as a
/// tree.
pub(super) fn clamp_list_dates(text: &str) -> Option<String> {
    let list: ClampedList = serde_json::from_str(text).ok()?;
    let items = list.items.unwrap_or_default();
    if !items.iter().any(|item| item.is_changed) {
        return None;
    }
    let mut text = format!(r#"{{"metadata":{},"items":["#, list.metadata);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&item.text);
    }
    text.push_str("]}");
    Some(text)
}

#[derive(serde::Deserialize)]
struct ClampedList {
    #[serde(default = "empty_metadata")]
    metadata: Value,
    items: Option<Vec<ClampedObject>>,
}

fn empty_metadata() -> Value {
    Value::Object(serde_json::Map::new())
}

struct ClampedObject {
    text: String,
    is_changed: bool,
}

impl<'de> Deserialize<'de> for ClampedObject {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let mut object = Value::deserialize(source)?;
        let mut fields = Vec::new();
        clamp_dates(&mut object, "", &mut fields);
        if !fields.is_empty() {
            report_fields(&object, &fields);
        }
        Ok(Self {
            text: object.to_string(),
            is_changed: !fields.is_empty(),
        })
    }
}

/// Pushes the path of each replaced date to `fields`.
fn clamp_dates(value: &mut Value, path: &str, fields: &mut Vec<String>) {
    match value {
        Value::String(text) if is_unreadable_date(text) => {
            fields.push(format!("{path}={text}"));
            let nearest = if text.starts_with('-') {
                FIRST_READABLE
            } else {
                LAST_READABLE
            };
            nearest.clone_into(text);
        }
        Value::Array(values) => {
            for (index, value) in values.iter_mut().enumerate() {
                clamp_dates(value, &format!("{path}[{index}]"), fields);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                if !FREE_TEXTS.contains(&name.as_str()) {
                    clamp_dates(value, &format!("{path}.{name}"), fields);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether the text begins as Kubernetes writes a date, and is none that jiff reads.
fn is_unreadable_date(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let year_end = unsigned.iter().take_while(|byte| byte.is_ascii_digit());
    let year_end = year_end.count();
    let is_date = year_end >= 3
        && matches!(&unsigned[year_end..], [b'-', m1, m2, b'-', d1, d2, b'T', ..]
            if [m1, m2, d1, d2].iter().all(|byte| byte.is_ascii_digit()));
    is_date && text.parse::<Timestamp>().is_err()
}

/// An event of a watch has its object in a field.
fn report_fields(value: &Value, fields: &[String]) {
    let object = value.get("object").unwrap_or(value);
    let metadata = &object["metadata"];
    tracing::warn!(
        kind = object["kind"].as_str(),
        namespace = metadata["namespace"].as_str(),
        name = metadata["name"].as_str(),
        fields = fields.join(", "),
        "an object has a date that cannot be read; the nearest readable one is used"
    );
}
