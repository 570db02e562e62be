//! Checks that the items of a set or of a keyed list are there once.

use serde_json::{Map, Value};

use super::node::{ListIdentity, SchemaNode};
use super::paths::FieldPath;
use crate::api::status::FieldError;

/// A list that was wrong before stays allowed, as in the real server.
pub(super) fn check_list_keys(
    root: &SchemaNode,
    object: &Value,
    old: Option<&Value>,
    wrong: &mut Vec<FieldError>,
) {
    let mut found = Vec::new();
    check_lists(root, object, &FieldPath::default(), &mut found);
    if found.is_empty() {
        return;
    }
    let mut before = Vec::new();
    if let Some(old) = old {
        check_lists(root, old, &FieldPath::default(), &mut before);
    }
    if before.is_empty() {
        wrong.extend(found);
    }
}

fn check_lists(node: &SchemaNode, value: &Value, path: &FieldPath, wrong: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let declared = node.properties.get(name);
                let path = if declared.is_some() {
                    path.field(name)
                } else {
                    path.map_key(name)
                };
                if let Some(node) = node.field_schema(name) {
                    check_lists(node, value, &path, wrong);
                }
            }
        }
        Value::Array(items) => {
            check_items(node, items, path, wrong);
            let item_node = node.items.as_ref();
            for (index, item) in items.iter().enumerate() {
                if let Some(node) = item_node {
                    check_lists(node, item, &path.item(index), wrong);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_items(node: &SchemaNode, items: &[Value], path: &FieldPath, wrong: &mut Vec<FieldError>) {
    let identities: Vec<Value> = match &node.list {
        ListIdentity::Atomic => return,
        ListIdentity::Set => items.to_vec(),
        ListIdentity::Keyed(keys) => items.iter().map(|item| keys_of_item(keys, item)).collect(),
    };
    for (index, identity) in identities.iter().enumerate() {
        let earlier = identities[..index]
            .iter()
            .filter(|other| *other == identity);
        // Each repeated item is reported once.
        if earlier.count() == 1 {
            let field = path.item(index).as_text().to_owned();
            wrong.push(FieldError::duplicate(field, identity));
        }
    }
}

fn keys_of_item(keys: &[String], item: &Value) -> Value {
    let keys = keys
        .iter()
        .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Value::Object(keys.collect::<Map<String, Value>>())
}
