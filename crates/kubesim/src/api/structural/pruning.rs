//! Removes fields that a schema does not know.

use serde_json::Value;

use super::node::{FurtherKeys, SchemaNode};
use super::paths::FieldPath;

/// The fields of every object that no schema declares.
const TYPE_AND_META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The fields of `metadata`.
pub(super) const META_FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

pub(super) fn prune_object(root: &SchemaNode, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    prune_metadata(object, &mut unknown);
    let mut pruned = Vec::new();
    prune_value(Some(root), object, &FieldPath::default(), &mut pruned);
    pruned.sort();
    unknown.extend(pruned);
    unknown
}

fn prune_metadata(object: &mut Value, unknown: &mut Vec<String>) {
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    meta.retain(|name, _| {
        let known = META_FIELDS.contains(&name.as_str());
        if !known {
            unknown.push(format!("metadata.{name}"));
        }
        known
    });
}

/// Without a schema, no field is known.
fn prune_value(
    node: Option<&SchemaNode>,
    value: &mut Value,
    path: &FieldPath,
    unknown: &mut Vec<String>,
) {
    let keeps_unknown = node.is_some_and(|node| node.preserves_unknown);
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            if node.is_some_and(|node| node.embedded_resource)
                && TYPE_AND_META.contains(&name.as_str())
            {
                return true;
            }
            match field_rule(node, name) {
                FieldRule::Prune(node) => prune_value(node, value, &path.field(name), unknown),
                FieldRule::Keep => {}
                FieldRule::Unknown if keeps_unknown => {}
                FieldRule::Unknown => {
                    unknown.push(path.field(name).as_text().to_owned());
                    return false;
                }
            }
            true
        }),
        Value::Array(items) => {
            let node = node.and_then(|node| node.items.as_deref());
            if keeps_unknown && node.is_none() {
                return;
            }
            for (index, item) in items.iter_mut().enumerate() {
                prune_value(node, item, &path.item(index), unknown);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

enum FieldRule<'a> {
    Prune(Option<&'a SchemaNode>),
    Keep,
    Unknown,
}

fn field_rule<'a>(node: Option<&'a SchemaNode>, name: &str) -> FieldRule<'a> {
    let Some(node) = node else {
        return FieldRule::Unknown;
    };
    match (node.properties.get(name), &node.further_keys) {
        (Some(field), _) => FieldRule::Prune(Some(field)),
        (None, FurtherKeys::Typed(field)) => FieldRule::Prune(Some(field)),
        (None, FurtherKeys::Any) if node.preserves_unknown => FieldRule::Keep,
        // The real server keeps such a key, and prunes everything below it.
        (None, FurtherKeys::Any) => FieldRule::Prune(None),
        (None, FurtherKeys::Undeclared) => FieldRule::Unknown,
    }
}
