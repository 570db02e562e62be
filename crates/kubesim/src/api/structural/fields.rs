//! Server-side apply knows only declared fields of the declared type.

use serde_json::Value;

use super::node::{FurtherKeys, SchemaNode, ValueType};
use super::pruning::META_FIELDS;

/// A field of an applied configuration that does not fit the schema.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UndeclaredField {
    /// Like `.spec.windows[0].start`.
    pub(crate) path: String,
    pub(crate) why: String,
}

pub(super) fn find_undeclared_field(root: &SchemaNode, config: &Value) -> Option<UndeclaredField> {
    let metadata = config.get("metadata").and_then(Value::as_object);
    let unknown = metadata
        .into_iter()
        .flat_map(serde_json::Map::keys)
        .find(|name| !META_FIELDS.contains(&name.as_str()));
    if let Some(name) = unknown {
        return Some(not_declared(&format!(".metadata.{name}")));
    }
    let fields = config.as_object()?.iter();
    fields
        .filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata"))
        .find_map(|(name, value)| match root.field_schema(name) {
            Some(node) => find_in_value(node, &format!(".{name}"), value),
            None if root.preserves_unknown => None,
            None => Some(not_declared(&format!(".{name}"))),
        })
}

fn find_in_value(node: &SchemaNode, path: &str, value: &Value) -> Option<UndeclaredField> {
    if node.embedded_resource {
        return None;
    }
    if let Some(expected) = expected_type(node, value) {
        return Some(UndeclaredField {
            path: path.to_owned(),
            why: expected,
        });
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            match (node.field_schema(name), &node.further_keys) {
                (Some(node), _) => find_in_value(node, &path, value),
                (None, FurtherKeys::Any) => None,
                (None, _) if node.preserves_unknown => None,
                (None, FurtherKeys::Undeclared | FurtherKeys::Typed(_)) => {
                    Some(not_declared(&path))
                }
            }
        }),
        Value::Array(items) => {
            let node = node.items.as_ref()?;
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| find_in_value(node, &format!("{path}[{index}]"), item))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn not_declared(path: &str) -> UndeclaredField {
    UndeclaredField {
        path: path.to_owned(),
        why: "field not declared in schema".into(),
    }
}

/// What is said about a value of another type; None when the type fits.
fn expected_type(node: &SchemaNode, value: &Value) -> Option<String> {
    if node.value_type.accepts_value(value) || value.is_null() {
        return None;
    }
    let expected = match node.value_type {
        ValueType::Any | ValueType::IntOrString => return None,
        ValueType::Object => "map",
        ValueType::Array => "list",
        ValueType::String => "string",
        ValueType::Integer | ValueType::Number => "numeric (int or float)",
        ValueType::Boolean => "boolean",
    };
    Some(format!("expected {expected}, got {value}"))
}
