//! Merging an applied configuration into the live object.

use serde_json::{Map, Value};

use super::field_set::item_element;
use crate::api::schema::{MergeShape, SchemaType};

/// Merges the configuration into the live value. Fails with an item's key when a list names the
/// item twice.
pub(crate) fn merge_values<'a>(
    live: &'a Value,
    config: &'a Value,
    ty: SchemaType<'a>,
) -> Result<Value, String> {
    let shape = ty.shape_of_value(config);
    match (&shape, live, config) {
        (MergeShape::Struct | MergeShape::Map, Value::Object(live), Value::Object(config))
            if !config.is_empty() =>
        {
            merge_fields(live, config, ty).map(Value::Object)
        }
        (MergeShape::Keyed(_) | MergeShape::Set, Value::Array(live), Value::Array(config))
            if !config.is_empty() =>
        {
            merge_items(live, config, ty, &shape).map(Value::Array)
        }
        // An empty map or list in the configuration leaves the live one unchanged.
        (MergeShape::Struct | MergeShape::Map, Value::Object(_), Value::Object(_))
        | (MergeShape::Keyed(_) | MergeShape::Set, Value::Array(_), Value::Array(_)) => {
            Ok(live.clone())
        }
        (MergeShape::Keyed(_) | MergeShape::Set, _, Value::Array(config)) => {
            merge_items(&[], config, ty, &shape).map(Value::Array)
        }
        (MergeShape::Struct | MergeShape::Map, _, Value::Object(config)) => {
            merge_fields(&Map::new(), config, ty).map(Value::Object)
        }
        _ => Ok(config.clone()),
    }
}

fn merge_fields<'a>(
    live: &'a Map<String, Value>,
    config: &'a Map<String, Value>,
    ty: SchemaType<'a>,
) -> Result<Map<String, Value>, String> {
    let mut out = live.clone();
    for (name, value) in config {
        let live = live.get(name).unwrap_or(&Value::Null);
        out.insert(
            name.clone(),
            merge_values(live, value, ty.field_type(name))?,
        );
    }
    Ok(out)
}

/// Merges two lists item by item. The configuration's order wins; live items keep their order as
/// far as that allows.
fn merge_items<'a>(
    live: &'a [Value],
    config: &'a [Value],
    ty: SchemaType<'a>,
    shape: &MergeShape,
) -> Result<Vec<Value>, String> {
    let wanted = index_items_by_key(config, shape)?;
    let known: Vec<(Option<String>, &Value)> = live
        .iter()
        .map(|item| (item_element(shape, item), item))
        .collect();
    let place_wanted = |element: &Option<String>| {
        wanted
            .iter()
            .position(|(wanted, _)| Some(wanted) == element.as_ref())
    };
    let is_live = |element: &String| {
        known
            .iter()
            .any(|(known, _)| known.as_ref() == Some(element))
    };
    let merged = |place: usize| {
        let (element, config) = &wanted[place];
        let live = known
            .iter()
            .find(|(known, _)| known.as_ref() == Some(element));
        merge_values(
            live.map_or(&Value::Null, |(_, item)| item),
            config,
            ty.item_type(),
        )
    };
    let mut out = Vec::new();
    let (mut left, mut right) = (0, 0);
    while left < known.len() || right < wanted.len() {
        // The next item that both lists have, in the configuration's order.
        let shared = (right..wanted.len()).find(|place| is_live(&wanted[*place].0));
        let Some((element, item)) = known.get(left) else {
            out.push(merged(right)?);
            right += 1;
            continue;
        };
        match place_wanted(element) {
            None => {
                out.push((*item).clone());
                left += 1;
            }
            Some(place) if place == right => {
                out.push(merged(right)?);
                left += 1;
                right += 1;
            }
            // It was placed already, or it comes later, after an item that the live list has behind
            // it.
            Some(place) if place < right || shared != Some(place) => left += 1,
            Some(_) => {
                out.push(merged(right)?);
                right += 1;
            }
        }
    }
    Ok(out)
}

/// The configuration's items by their keys; an item named twice is an error.
fn index_items_by_key<'a>(
    config: &'a [Value],
    shape: &MergeShape,
) -> Result<Vec<(String, &'a Value)>, String> {
    let mut wanted: Vec<(String, &Value)> = Vec::new();
    for item in config {
        let element = item_element(shape, item)
            .ok_or("associative list with keys has an element that omits key field")?;
        if wanted.iter().any(|(known, _)| *known == element) {
            return Err(format!(
                "duplicate entries for key {}",
                super::field_set::format_path(&[element])
            ));
        }
        wanted.push((element, item));
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ROOT: SchemaType<'static> = SchemaType::BuiltIn {
        field: "",
        parent: "",
    };

    #[test]
    fn keyed_items_merge_in_place_and_new_ones_follow() {
        let live = json!({"status": {"conditions": [
            {"type": "A", "status": "True", "reason": "kept"}, {"type": "B", "status": "True"}]}});
        let config =
            json!({"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "C"}]}});
        let merged = merge_values(&live, &config, ROOT).unwrap();
        let expected = json!({"status": {"conditions": [
            {"type": "A", "status": "False", "reason": "kept"}, {"type": "B", "status": "True"}, {"type": "C"}]}});
        assert_eq!(merged, expected);
    }

    #[test]
    fn an_item_named_twice_is_refused() {
        let config = json!({"status": {"conditions": [{"type": "A"}, {"type": "A"}]}});
        assert!(merge_values(&json!({}), &config, ROOT).is_err());
    }
}
