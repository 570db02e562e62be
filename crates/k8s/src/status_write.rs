//! Whether the API server kept all of a status that was written.

use serde_json::Value;

use crate::error::Error;

/// Why a status was not written, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum StatusWriteError {
    #[error(transparent)]
    Api(#[from] Error),
    /// The write succeeded, but the answer lacks this field: a CustomResourceDefinition of an older
    /// version drops it. The same status would be written again and again.
    #[error(
        "the CustomResourceDefinition in this cluster drops status.{0}: apply what `dogwatch crds` prints"
    )]
    Pruned(String),
}

/// # Errors
/// Names the first field that `patch` writes and the `answer` lacks.
pub(crate) fn check_kept_status(patch: &Value, answer: &Value) -> Result<(), StatusWriteError> {
    match find_dropped_field(&patch["status"], answer) {
        Some(field) => Err(StatusWriteError::Pruned(field)),
        None => Ok(()),
    }
}

/// The path of a field of `written` that `kept` lacks. A null removes a field.
fn find_dropped_field(written: &Value, kept: &Value) -> Option<String> {
    match written {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let kept = kept.get(name).unwrap_or(&Value::Null);
            if kept.is_null() && !value.is_null() {
                return Some(name.clone());
            }
            let inner = find_dropped_field(value, kept)?;
            let separator = if inner.starts_with('[') { "" } else { "." };
            Some(format!("{name}{separator}{inner}"))
        }),
        Value::Array(items) => {
            let mut pairs = items.iter().zip(kept.as_array().into_iter().flatten());
            let inner = pairs.find_map(|(item, kept)| find_dropped_field(item, kept))?;
            Some(format!("[].{inner}"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_that_was_not_kept_is_named_and_defaults_and_removals_are_no_loss() {
        let patch = json!({ "status": {
            "current": null, "next": "t",
            "history": [{ "at": "t" }, { "at": "u", "reboots": { "made": 1 } }],
        }});
        let dropped = |answer: Value| {
            let checked = check_kept_status(&patch, &answer);
            checked.err().map(|error| match error {
                StatusWriteError::Pruned(field) => field,
                StatusWriteError::Api(error) => panic!("{error}"),
            })
        };
        let kept = |reboots: Value| json!({ "next": "t", "more": 1, "history": [{ "at": "t" }, { "at": "u", "reboots": reboots }] });
        assert_eq!(dropped(kept(json!({ "made": 1, "open": 0 }))), None);
        let made = dropped(kept(json!({})));
        assert_eq!(made.as_deref(), Some("history[].reboots.made"));
        let reboots = dropped(kept(Value::Null));
        assert_eq!(reboots.as_deref(), Some("history[].reboots"));
        assert_eq!(dropped(Value::Null).as_deref(), Some("history"));
    }
}
