//! Strategic merge patch: like a merge patch, but lists with a merge key are merged item by item.

use serde_json::{Map, Value};

use crate::api::schema::{is_strategic_set, strategic_merge_key};

/// Merges `patch` into `target`. Fails with a message when a directive is invalid.
pub(crate) fn apply_strategic_patch(target: &mut Value, patch: &Value) -> Result<(), String> {
    patch_fields(target, patch, "")
}

fn patch_fields(target: &mut Value, patch: &Value, parent: &str) -> Result<(), String> {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return Ok(());
    };
    if !target.is_object() || patch.get("$patch").is_some_and(|p| p == "replace") {
        *target = Value::Object(Map::new());
    }
    let Value::Object(map) = target else {
        return Ok(());
    };
    if patch.get("$patch").is_some_and(|p| p == "delete") {
        map.clear();
        return Ok(());
    }
    if let Some(Value::Array(kept)) = patch.get("$retainKeys") {
        map.retain(|name, _| kept.iter().any(|kept| kept == name));
    }
    let before = map.clone();
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            delete_scalars(map, list, value);
        } else if !name.starts_with('$') {
            patch_field(map, name, value, parent)?;
            let order = patch
                .get(&format!("$setElementOrder/{name}"))
                .unwrap_or(value);
            arrange_list(map, name, order, parent, &before);
        }
    }
    // A patch may order a list without changing its items.
    for (name, order) in patch {
        if let Some(list) = name
            .strip_prefix("$setElementOrder/")
            .filter(|list| !patch.contains_key(*list))
        {
            arrange_list(map, list, order, parent, &before);
        }
    }
    Ok(())
}

fn patch_field(
    map: &mut Map<String, Value>,
    name: &str,
    value: &Value,
    parent: &str,
) -> Result<(), String> {
    match value {
        Value::Null => {
            map.remove(name);
            Ok(())
        }
        Value::Array(patch) => {
            let spot = map
                .entry(name.to_owned())
                .or_insert_with(|| Value::Array(Vec::new()));
            patch_list(spot, patch, name, parent)
        }
        Value::Object(_) => patch_fields(
            map.entry(name.to_owned()).or_insert(Value::Null),
            value,
            name,
        ),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            map.insert(name.to_owned(), value.clone());
            Ok(())
        }
    }
}

fn patch_list(spot: &mut Value, patch: &[Value], name: &str, parent: &str) -> Result<(), String> {
    if is_strategic_set(name, parent) {
        let mut merged = spot.as_array().cloned().unwrap_or_default();
        for item in patch {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        *spot = merged.into();
        return Ok(());
    }
    let Some(key) = strategic_merge_key(name, parent) else {
        *spot = patch.to_vec().into();
        return Ok(());
    };
    let replaces = patch
        .iter()
        .any(|item| item.get("$patch").is_some_and(|p| p == "replace"));
    let mut merged = if replaces {
        Vec::new()
    } else {
        spot.as_array().cloned().unwrap_or_default()
    };
    for item in patch {
        if replaces && item.get("$patch").is_some() {
            continue;
        }
        let id = item
            .get(&key)
            .ok_or_else(|| format!("map: {item} does not contain declared merge key: {key}"))?;
        let place = merged.iter().position(|live| live.get(&key) == Some(id));
        match (item.get("$patch").and_then(Value::as_str), place) {
            (Some("delete"), Some(place)) => drop(merged.remove(place)),
            (Some("delete"), None) => {}
            (_, Some(place)) => patch_fields(&mut merged[place], item, "")?,
            (_, None) => {
                let mut fresh = Value::Null;
                patch_fields(&mut fresh, item, "")?;
                merged.push(fresh);
            }
        }
    }
    *spot = merged.into();
    Ok(())
}

fn delete_scalars(map: &mut Map<String, Value>, list: &str, gone: &Value) {
    let Some(Value::Array(live)) = map.get_mut(list) else {
        return;
    };
    let gone = gone.as_array().map_or(&[][..], Vec::as_slice);
    live.retain(|item| !gone.contains(item));
}

/// Orders a merged list: items that the patch names come in the patch's order, and each other item
/// before the first of those that it preceded.
fn arrange_list(
    map: &mut Map<String, Value>,
    list: &str,
    order: &Value,
    parent: &str,
    before: &Map<String, Value>,
) {
    let key = strategic_merge_key(list, parent);
    if key.is_none() && !is_strategic_set(list, parent) {
        return;
    }
    let id = |item: &Value| match &key {
        Some(key) => item.get(key).cloned().unwrap_or_default(),
        None => item.clone(),
    };
    let ids = |list: Option<&Value>| -> Vec<Value> {
        list.and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(&id)
            .collect()
    };
    let (order, before) = (ids(Some(order)), ids(before.get(list)));
    let Some(Value::Array(merged)) = map.get_mut(list) else {
        return;
    };
    let (mut named, others): (Vec<Value>, Vec<Value>) =
        merged.drain(..).partition(|item| order.contains(&id(item)));
    named.sort_by_key(|item| order.iter().position(|wanted| *wanted == id(item)));
    let stood = |item: &Value| before.iter().position(|known| *known == id(item));
    let mut others = others.into_iter().peekable();
    for item in named {
        let place = stood(&item);
        while let Some(other) = others.next_if(|other| {
            place.is_some_and(|place| stood(other).is_some_and(|other| other < place))
        }) {
            merged.push(other);
        }
        merged.push(item);
    }
    merged.extend(others);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_merge_by_key_directives_delete_and_taints_are_replaced() {
        let mut node = json!({
            "metadata": {"finalizers": ["a"]},
            "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R"}, {"type": "Gone"}]},
        });
        let patch = json!({
            "metadata": {"finalizers": ["b"], "$deleteFromPrimitiveList/finalizers": ["a"]},
            "spec": {"unschedulable": true, "taints": [{"key": "y"}]},
            "status": {"$setElementOrder/conditions": [{"type": "New"}, {"type": "Ready"}],
                "conditions": [{"type": "Ready", "status": "False"}, {"type": "New"}, {"type": "Gone", "$patch": "delete"}]},
        });
        apply_strategic_patch(&mut node, &patch).unwrap();
        assert_eq!(
            node,
            json!({
                "metadata": {"finalizers": ["b"]},
                "spec": {"unschedulable": true, "taints": [{"key": "y"}]},
                "status": {"conditions": [{"type": "New"}, {"type": "Ready", "status": "False", "reason": "R"}]},
            })
        );
    }

    #[test]
    fn an_item_without_its_merge_key_is_refused() {
        let mut node = json!({});
        assert!(
            apply_strategic_patch(
                &mut node,
                &json!({"status": {"conditions": [{"status": "True"}]}})
            )
            .is_err()
        );
    }
}
