//! JSON patch, RFC 6902.

use serde_json::Value;

/// Why a JSON patch was refused.
#[derive(Debug, PartialEq)]
pub(crate) enum Refusal {
    /// The patch itself makes no sense (400).
    Malformed(String),
    /// It does not fit the object (422): a path that is not there, a test that fails.
    Unfit,
}

/// Applies the operations one after the other; the target is unspecified after a refusal.
pub(crate) fn apply(target: &mut Value, patch: &Value) -> Result<(), Refusal> {
    let Value::Array(operations) = patch else {
        return Err(Refusal::Malformed(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp".into(),
        ));
    };
    operations
        .iter()
        .try_for_each(|operation| step(target, operation))
}

fn step(target: &mut Value, operation: &Value) -> Result<(), Refusal> {
    let path = pointer(operation, "path")?;
    let value = || operation.get("value").cloned().ok_or(Refusal::Unfit);
    match operation
        .get("op")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "add" => add(target, &path, value()?),
        "remove" => take(target, &path).map(drop),
        "replace" => replace(target, &path, value()?),
        "move" => {
            let moved = take(target, &pointer(operation, "from")?)?;
            add(target, &path, moved)
        }
        "copy" => {
            let from = pointer(operation, "from")?;
            let copied = target.pointer(&from).cloned().ok_or(Refusal::Unfit)?;
            add(target, &path, copied)
        }
        "test" => {
            // A test for null passes where there is nothing.
            let found = target.pointer(&path).unwrap_or(&Value::Null);
            if *found == value()? {
                return Ok(());
            }
            Err(Refusal::Unfit)
        }
        _ => Err(Refusal::Unfit),
    }
}

fn pointer(operation: &Value, field: &str) -> Result<String, Refusal> {
    let path = operation.get(field).and_then(Value::as_str);
    path.map(Into::into).ok_or(Refusal::Unfit)
}

fn split(path: &str) -> (&str, String) {
    let (parent, last) = path.rsplit_once('/').unwrap_or(("", path));
    (parent, last.replace("~1", "/").replace("~0", "~"))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), Refusal> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    let (parent, last) = split(path);
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
                .ok_or(Refusal::Unfit)?;
            list.insert(place, value);
            Ok(())
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {
            Err(Refusal::Unfit)
        }
    }
}

/// A field that is not there is set, as the library under the real server does it; a place of a
/// list has to be there.
fn replace(target: &mut Value, path: &str, value: Value) -> Result<(), Refusal> {
    if let Some(spot) = target.pointer_mut(path) {
        *spot = value;
        return Ok(());
    }
    match target.pointer(split(path).0) {
        Some(Value::Object(_)) => add(target, path, value),
        Some(
            Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_),
        )
        | None => Err(Refusal::Unfit),
    }
}

fn take(target: &mut Value, path: &str) -> Result<Value, Refusal> {
    let (parent, last) = split(path);
    let taken = match target.pointer_mut(parent) {
        Some(Value::Object(map)) => map.remove(&last),
        Some(Value::Array(list)) => {
            let place = last.parse().ok().filter(|place| *place < list.len());
            place.map(|place: usize| list.remove(place))
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => None,
    };
    taken.ok_or(Refusal::Unfit)
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
        apply(&mut target, &patch).unwrap();
        assert_eq!(target, json!({"a": {}, "b": 2, "c": 2, "l": [2, 3, 4]}));
        let test = json!([{"op": "test", "path": "/b", "value": 3}]);
        assert!(matches!(apply(&mut target, &test), Err(Refusal::Unfit)));
        let gone = json!([{"op": "remove", "path": "/nope"}]);
        assert!(matches!(apply(&mut target, &gone), Err(Refusal::Unfit)));
    }
}
