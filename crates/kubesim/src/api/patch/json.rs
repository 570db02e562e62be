//! JSON patch, RFC 6902.

use serde_json::Value;

/// Why a JSON patch was refused.
#[derive(Debug, PartialEq)]
pub(crate) enum JsonPatchError {
    /// The patch is malformed (400).
    Malformed(String),
    /// The patch does not fit the object (422): a missing path, or a failed test.
    Unfit,
}

/// Applies the operations in order; after an error the content of `target` is unspecified.
pub(crate) fn apply_json_patch(target: &mut Value, patch: &Value) -> Result<(), JsonPatchError> {
    let Value::Array(operations) = patch else {
        return Err(JsonPatchError::Malformed(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp".into(),
        ));
    };
    operations
        .iter()
        .try_for_each(|operation| apply_operation(target, operation))
}

fn apply_operation(target: &mut Value, operation: &Value) -> Result<(), JsonPatchError> {
    let path = operation_pointer(operation, "path")?;
    let value = || operation.get("value").cloned().ok_or(JsonPatchError::Unfit);
    match operation
        .get("op")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "add" => add_value(target, &path, value()?),
        "remove" => take_value(target, &path).map(drop),
        "replace" => replace_value(target, &path, value()?),
        "move" => {
            let moved = take_value(target, &operation_pointer(operation, "from")?)?;
            add_value(target, &path, moved)
        }
        "copy" => {
            let from = operation_pointer(operation, "from")?;
            let copied = target
                .pointer(&from)
                .cloned()
                .ok_or(JsonPatchError::Unfit)?;
            add_value(target, &path, copied)
        }
        "test" => {
            // A test for null passes on a missing field.
            let found = target.pointer(&path).unwrap_or(&Value::Null);
            if *found == value()? {
                return Ok(());
            }
            Err(JsonPatchError::Unfit)
        }
        _ => Err(JsonPatchError::Unfit),
    }
}

fn operation_pointer(operation: &Value, field: &str) -> Result<String, JsonPatchError> {
    let path = operation.get(field).and_then(Value::as_str);
    path.map(Into::into).ok_or(JsonPatchError::Unfit)
}

fn split_pointer(path: &str) -> (&str, String) {
    let (parent, last) = path.rsplit_once('/').unwrap_or(("", path));
    (parent, last.replace("~1", "/").replace("~0", "~"))
}

fn add_value(target: &mut Value, path: &str, value: Value) -> Result<(), JsonPatchError> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    let (parent, last) = split_pointer(path);
    match target.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.insert(last, value);
            Ok(())
        }
        Some(Value::Array(list)) => {
            let place = if last == "-" {
                Some(list.len())
            } else {
                last.parse().ok()
            };
            let place = place
                .filter(|place| *place <= list.len())
                .ok_or(JsonPatchError::Unfit)?;
            list.insert(place, value);
            Ok(())
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {
            Err(JsonPatchError::Unfit)
        }
    }
}

/// A missing field is added, as the real server's library does; a list index must exist.
fn replace_value(target: &mut Value, path: &str, value: Value) -> Result<(), JsonPatchError> {
    if let Some(spot) = target.pointer_mut(path) {
        *spot = value;
        return Ok(());
    }
    match target.pointer(split_pointer(path).0) {
        Some(Value::Object(_)) => add_value(target, path, value),
        Some(
            Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_),
        )
        | None => Err(JsonPatchError::Unfit),
    }
}

fn take_value(target: &mut Value, path: &str) -> Result<Value, JsonPatchError> {
    let (parent, last) = split_pointer(path);
    let taken = match target.pointer_mut(parent) {
        Some(Value::Object(map)) => map.remove(&last),
        Some(Value::Array(list)) => {
            let place = last.parse().ok().filter(|place| *place < list.len());
            place.map(|place: usize| list.remove(place))
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => None,
    };
    taken.ok_or(JsonPatchError::Unfit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_apply_in_order_and_a_failed_test_refuses() {
        let mut target = json!({"a": {"x/y": 1}, "l": [1, 3]});
        let patch = json!([
            {"op": "test", "path": "/a/x~1y", "value": 1},
            {"op": "replace", "path": "/a/x~1y", "value": 2},
            {"op": "add", "path": "/l/1", "value": 2},
            {"op": "add", "path": "/l/-", "value": 4},
            {"op": "move", "from": "/a/x~1y", "path": "/b"},
            {"op": "copy", "from": "/b", "path": "/c"},
            {"op": "remove", "path": "/l/0"},
        ]);
        apply_json_patch(&mut target, &patch).unwrap();
        assert_eq!(target, json!({"a": {}, "b": 2, "c": 2, "l": [2, 3, 4]}));
        let test = json!([{"op": "test", "path": "/b", "value": 3}]);
        assert!(matches!(
            apply_json_patch(&mut target, &test),
            Err(JsonPatchError::Unfit)
        ));
        let gone = json!([{"op": "remove", "path": "/nope"}]);
        assert!(matches!(
            apply_json_patch(&mut target, &gone),
            Err(JsonPatchError::Unfit)
        ));
    }
}
