//! OpenAPI v3: an index, and one document per group and version, as kubectl reads them.
//!
//! Custom resources have the schema of their definition. Built-in kinds have the fields of their
//! types, without descriptions.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::kinds::{ResourceRegistry, ServedResource};
use super::typed_schema::built_in_schema;
use super::value::value_at;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The index: where each document is.
pub(crate) fn document_index(registry: &ResourceRegistry) -> Value {
    let paths = registry
        .resources_by_version()
        .map(|(group_version, resources)| {
            let path = document_path(group_version);
            let hash = hash_of_resources(resources);
            let url = format!("/openapi/v3/{path}?hash={hash:016X}");
            (path, json!({ "serverRelativeURL": url }))
        });
    json!({ "paths": paths.collect::<Map<String, Value>>() })
}

/// The document of a path below `/openapi/v3/`; None when nothing is served there.
pub(crate) fn find_document(registry: &ResourceRegistry, path: &[&str]) -> Option<Value> {
    let group_version = match path {
        ["api", version] => (*version).to_owned(),
        ["apis", group, version] => format!("{group}/{version}"),
        _ => return None,
    };
    let mut all = registry.resources_by_version();
    let (_, resources) = all.find(|(name, _)| **name == group_version)?;
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    schemas.insert(OBJECT_META.into(), object_meta_schema());
    for resource in resources.values() {
        add_paths(resource, &mut paths);
        schemas.insert(schema_name(resource), kind_schema(resource));
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "v1.36.1" },
        "paths": paths,
        "components": { "schemas": schemas },
    }))
}

fn document_path(group_version: &str) -> String {
    if group_version.contains('/') {
        format!("apis/{group_version}")
    } else {
        format!("api/{group_version}")
    }
}

/// Changes with the schemas, so that no client reads a document from its cache that is outdated.
fn hash_of_resources(resources: &BTreeMap<String, Arc<ServedResource>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for resource in resources.values() {
        resource.plural.hash(&mut hasher);
        let schema = resource.custom.as_ref().map(Value::to_string);
        schema.hash(&mut hasher);
    }
    hasher.finish()
}

/// Like `com.example.v1.Thing`.
fn schema_name(resource: &ServedResource) -> String {
    let mut parts: Vec<&str> = resource.group.split('.').rev().collect();
    parts.retain(|part| !part.is_empty());
    parts.extend([resource.version.as_str(), resource.kind.as_str()]);
    parts.join(".")
}

fn kind_and_version(resource: &ServedResource) -> Value {
    json!({ "group": resource.group, "version": resource.version, "kind": resource.kind })
}

fn kind_schema(resource: &ServedResource) -> Value {
    let custom = resource.custom.as_ref();
    let schema = custom.and_then(|version| value_at(version, &["schema", "openAPIV3Schema"]));
    let mut schema = match schema {
        Some(schema) => schema.clone(),
        None => built_in_schema(resource).unwrap_or_else(|| json!({ "type": "object" })),
    };
    for (field, description) in [
        (
            "apiVersion",
            "The versioned schema of this representation of the object.",
        ),
        ("kind", "The kind of the object."),
    ] {
        schema["properties"][field] = json!({ "type": "string", "description": description });
    }
    let reference = format!("#/components/schemas/{OBJECT_META}");
    schema["properties"]["metadata"] =
        json!({ "description": "The object's metadata.", "allOf": [{ "$ref": reference }] });
    schema["x-kubernetes-group-version-kind"] = json!([kind_and_version(resource)]);
    schema
}

fn object_meta_schema() -> Value {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let time = json!({ "type": "string", "format": "date-time" });
    let number = json!({ "type": "integer", "format": "int64" });
    let objects = json!({ "type": "array", "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({ "type": "object", "description": "The metadata that every object has.", "properties": {
        "annotations": texts, "creationTimestamp": time, "deletionGracePeriodSeconds": number,
        "deletionTimestamp": time, "finalizers": { "type": "array", "items": text },
        "generateName": text, "generation": number, "labels": texts, "managedFields": objects,
        "name": text, "namespace": text, "ownerReferences": objects, "resourceVersion": text,
        "selfLink": text, "uid": text,
    } })
}

fn add_paths(resource: &ServedResource, paths: &mut Map<String, Value>) {
    let prefix = format!("/{}", document_path(&resource.api_version()));
    let scope = if resource.namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let collection = format!("{prefix}{scope}/{}", resource.plural);
    let operation = |action: &str| operation(resource, action);
    paths.insert(
        collection.clone(),
        json!({ "get": operation("list"), "post": operation("post") }),
    );
    paths.insert(
        format!("{collection}/{{name}}"),
        json!({ "get": operation("get"), "put": operation("put"), "patch": operation("patch"), "delete": operation("delete") }),
    );
}

fn operation(resource: &ServedResource, action: &str) -> Value {
    let names: &[&str] = match action {
        "post" | "put" | "patch" => &["dryRun", "fieldManager", "fieldValidation"],
        "delete" => &["dryRun"],
        _ => &[],
    };
    let parameters = names
        .iter()
        .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } }));
    let mut operation = json!({
        "parameters": parameters.collect::<Vec<_>>(),
        "responses": { "200": { "description": "OK" } },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind_and_version(resource),
    });
    if action == "patch" {
        // Strategic merge is served for built-in kinds, but these schemas do not say how lists
        // merge: kubectl then uses the types that it was built with.
        let patches = ["apply-patch+yaml", "json-patch+json", "merge-patch+json"];
        let content = patches.map(|patch| (format!("application/{patch}"), json!({})));
        operation["requestBody"]["content"] = content.into_iter().collect::<Map<_, _>>().into();
    }
    operation
}
