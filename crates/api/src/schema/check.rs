//! Checks that the tests of every kind run on its schema.

use std::collections::BTreeSet;
use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) fn schema_of(crd: &Value) -> Value {
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// Checks that a `full` object sets every field of its schema, and no other.
#[track_caller]
pub(crate) fn assert_same_fields(full: &impl Serialize, crd: &Value) {
    let written = serde_json::to_value(full).unwrap();
    assert_eq!(written_fields(&written), known_fields(&schema_of(crd)));
}

/// Checks that an object survives serialization and deserialization.
#[track_caller]
pub(crate) fn assert_reads_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(full: &T) {
    let text = serde_json::to_string(full).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *full);
}

/// Fields of `spec` that a page of the book does not name.
pub(crate) fn undocumented_fields(crd: &Value, page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let schema = schema_of(crd);
    visit_parts(&schema["properties"]["spec"], "", &mut |path, _| {
        let field = path.trim_start_matches('.');
        // The parts of a label selector are documented by Kubernetes.
        let is_selector = field.contains("match");
        let is_field = !field.is_empty() && !field.ends_with(']');
        if is_field && !is_selector && !page.contains(&format!("`{field}`")) {
            found.push(field.to_owned());
        }
    });
    found
}

/// Calls the visitor for every part of the schema, with its path; keys of maps are `a`.
pub(crate) fn visit_parts<'a>(
    schema: &'a Value,
    path: &str,
    visit: &mut impl FnMut(&str, &'a Value),
) {
    visit(path, schema);
    if let Some(properties) = schema["properties"].as_object() {
        for (name, schema) in properties {
            visit_parts(schema, &format!("{path}.{name}"), visit);
        }
    }
    for (part, name) in [("items", "[]"), ("additionalProperties", ".a")] {
        if schema[part].is_object() {
            visit_parts(&schema[part], &format!("{path}{name}"), visit);
        }
    }
}

/// The fields of a schema, each as `.spec.nodes.names`; not what is below `.metadata`.
fn known_fields(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    visit_parts(schema, "", &mut |path, _| {
        if !path.is_empty() && !path.ends_with("[]") {
            found.insert(path.to_owned());
        }
    });
    found.retain(|field| !field.starts_with(".metadata."));
    found
}

/// The fields of a serialized object, in the same form.
fn written_fields(object: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect_fields(object, "", &mut found);
    found.retain(|field| !field.starts_with(".metadata."));
    found
}

fn collect_fields(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                found.insert(path.clone());
                collect_fields(value, &path, found);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_fields(item, &format!("{path}[]"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Parts for which `kubectl explain` shows no description.
pub(crate) fn parts_without_description(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit_parts(schema, "", &mut |path, part| {
        let explained = part["description"]
            .as_str()
            .is_some_and(|text| !text.is_empty());
        if !explained && !path.starts_with(".metadata") {
            found.push(path.to_owned());
        }
    });
    found
}

/// Parts of `spec` without a maximum size: the API server adds up what rules over them could cost.
pub(crate) fn parts_without_bound(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let spec = &schema["properties"]["spec"];
    visit_parts(spec, ".spec", &mut |path, part| {
        let bound = match part["type"].as_str() {
            Some("string") if part["enum"].is_null() => "maxLength",
            Some("array") => "maxItems",
            Some("object") if part["additionalProperties"].is_object() => "maxProperties",
            _ => return,
        };
        if !part[bound].is_u64() {
            found.push(format!("{path} has no {bound}"));
        }
    });
    found
}
