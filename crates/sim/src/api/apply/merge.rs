//! Merging an applied configuration into the live object.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::paths::item_element;
use crate::api::schema::{Shape, Type};

/// The live value with everything that the configuration says laid over it. A list that names an
/// item twice comes back as an error: the item's key.
pub(crate) fn merge<'a>(live: &'a Value, config: &'a Value, ty: Type<'a>) -> Result<Value, String> {
    let shape = ty.shape(config);
    match (&shape, live, config) {
        (Shape::Struct | Shape::Map, Value::Object(live), Value::Object(config))
            if !config.is_empty() =>
        {
            merge_fields(live, config, ty).map(Value::Object)
        }
        (Shape::Keyed(_) | Shape::Set, Value::Array(live), Value::Array(config))
            if !config.is_empty() =>
        {
            merge_items(live, config, ty, &shape).map(Value::Array)
        }
        // An empty map or list leaves what is there.
        (Shape::Struct | Shape::Map, Value::Object(_), Value::Object(_))
        | (Shape::Keyed(_) | Shape::Set, Value::Array(_), Value::Array(_)) => Ok(live.clone()),
        (Shape::Keyed(_) | Shape::Set, _, Value::Array(config)) => {
            merge_items(&[], config, ty, &shape).map(Value::Array)
        }
        (Shape::Struct | Shape::Map, _, Value::Object(config)) => {
            merge_fields(&Map::new(), config, ty).map(Value::Object)
        }
        _ => Ok(config.clone()),
    }
}

fn merge_fields<'a>(
    live: &'a Map<String, Value>,
    config: &'a Map<String, Value>,
    ty: Type<'a>,
) -> Result<Map<String, Value>, String> {
    let mut out = live.clone();
    for (name, value) in config {
        let live = live.get(name).unwrap_or(&Value::Null);
        out.insert(name.clone(), merge(live, value, ty.field(name))?);
    }
    Ok(out)
}

/// Items of the live list stay where they are; new ones come after the item that they follow in
/// the configuration, as near as both orders allow.
fn merge_items<'a>(
    live: &'a [Value],
    config: &'a [Value],
    ty: Type<'a>,
    shape: &Shape,
) -> Result<Vec<Value>, String> {
    let mut wanted: BTreeMap<String, &Value> = BTreeMap::new();
    let mut order = Vec::new();
    for item in config {
        let element = item_element(shape, item)
            .ok_or("associative list with keys has an element that omits key field")?;
        if wanted.insert(element.clone(), item).is_some() {
            return Err(format!(
                "duplicate entries for key {}",
                super::paths::display(&[element])
            ));
        }
        order.push(element);
    }
    let known: Vec<(Option<String>, &Value)> = live
        .iter()
        .map(|item| (item_element(shape, item), item))
        .collect();
    let merged = |element: &String| {
        let live = known.iter().find(|(key, _)| key.as_ref() == Some(element));
        merge(
            live.map_or(&Value::Null, |(_, item)| item),
            wanted[element],
            ty.item(),
        )
    };
    let mut out = Vec::new();
    let mut placed = 0;
    for (element, item) in &known {
        let place = element
            .as_ref()
            .and_then(|element| order.iter().position(|wanted| wanted == element));
        match place {
            None => out.push((*item).clone()),
            // What the configuration has before this item goes before it; placed ones are skipped.
            Some(place) => {
                for element in order.iter().take(place + 1).skip(placed) {
                    out.push(merged(element)?);
                }
                placed = placed.max(place + 1);
            }
        }
    }
    for element in order.iter().skip(placed) {
        out.push(merged(element)?);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ROOT: Type<'static> = Type::BuiltIn {
        field: "",
        parent: "",
    };

    #[test]
    fn keyed_items_merge_in_place_and_new_ones_follow() {
        let live = json!({"status": {"conditions": [
            {"type": "A", "status": "True", "reason": "kept"}, {"type": "B", "status": "True"}]}});
        let config =
            json!({"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "C"}]}});
        let merged = merge(&live, &config, ROOT).unwrap();
        let expected = json!({"status": {"conditions": [
            {"type": "A", "status": "False", "reason": "kept"}, {"type": "B", "status": "True"}, {"type": "C"}]}});
        assert_eq!(merged, expected);
    }

    #[test]
    fn an_item_named_twice_is_refused() {
        let config = json!({"status": {"conditions": [{"type": "A"}, {"type": "A"}]}});
        assert!(merge(&json!({}), &config, ROOT).is_err());
    }
}
