//! Fills in the defaults of a schema.

use serde_json::Value;

use super::node::SchemaNode;

pub(super) fn apply_defaults(node: &SchemaNode, value: &mut Value) {
    if !node.has_defaults {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in &node.properties {
                if let Some(default) = &field.default {
                    fields
                        .entry(name.clone())
                        .or_insert_with(|| default.clone());
                }
            }
            for (name, value) in fields {
                if let Some(field) = node.field_schema(name) {
                    apply_defaults(field, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for item in items {
                    apply_defaults(node, item);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
