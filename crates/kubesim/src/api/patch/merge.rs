//! JSON merge patch, RFC 7386.

use serde_json::{Map, Value};

/// Merges `patch` into `target`; null removes a field.
pub(crate) fn apply_merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else {
        return;
    };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            apply_merge_patch(fields.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn null_takes_away_and_lists_are_replaced() {
        let mut target = json!({"a": {"b": 1, "c": 2}, "l": [1, 2]});
        apply_merge_patch(
            &mut target,
            &json!({"a": {"b": null, "d": {"e": null, "f": 3}}, "l": [3], "n": null}),
        );
        assert_eq!(target, json!({"a": {"c": 2, "d": {"f": 3}}, "l": [3]}));
    }
}
