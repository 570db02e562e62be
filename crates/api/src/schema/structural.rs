//! Turns a derived JSON schema into what Kubernetes calls a structural schema.

use serde_json::{Map, Value, json};

/// Where an attribute keeps a default that the API server fills in. The keyword `default` has what
/// serde fills in when it reads.
const STORED_DEFAULT: &str = "x-default";

pub(super) fn make_structural(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    collapse_option(schema);
    collapse_enum(schema);
    schema.remove("title");
    schema.remove("default");
    if let Some(default) = schema.remove(STORED_DEFAULT) {
        schema.insert("default".to_owned(), default);
    }
    // `deny_unknown_fields`: the API server prunes them.
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| format.starts_with("uint")) {
        schema.insert("format".to_owned(), json!("int64"));
    }
    if schema.get("type") == Some(&json!("array")) {
        let kind = schema.entry("x-kubernetes-list-type");
        kind.or_insert(json!("atomic"));
    }
    for part in parts_of(schema) {
        make_structural(part);
    }
}

/// An `Option` may be absent, but is never null.
fn collapse_option(schema: &mut Map<String, Value>) {
    let not_null = |value: &Value| *value != json!("null") && value["type"] != "null";
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(not_null);
        let kind = types.remove(0);
        schema.insert("type".to_owned(), kind);
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let Some(Value::Array(mut forms)) = schema.remove("anyOf") else {
        return;
    };
    forms.retain(not_null);
    if let Value::Object(form) = forms.remove(0) {
        for (keyword, value) in form {
            schema.entry(keyword).or_insert(value);
        }
    }
}

/// Variants with a description each become words of one `enum`.
fn collapse_enum(schema: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = schema.remove("oneOf") else {
        return;
    };
    let words: Vec<Value> = variants
        .iter()
        .map(|variant| variant["const"].clone())
        .collect();
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), Value::Array(words));
}

fn parts_of(schema: &mut Map<String, Value>) -> Vec<&mut Value> {
    let mut parts = Vec::new();
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(fields)) => parts.extend(fields.values_mut()),
            ("items" | "additionalProperties", value) => parts.push(value),
            _ => {}
        }
    }
    parts
}
