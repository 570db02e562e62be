//! Discovery in two answers, as kubectl asks for it first: all resources of `/api` and of `/apis`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::discovery::{api_resource_entries, review_entries};
use super::kinds::ResourceRegistry;
use super::request::{ApiRequest, ApiResponse};

const MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The answer to a request that accepts it, for `/api` (the core group) or `/apis` (the others).
pub(crate) fn answer_aggregated(
    registry: &ResourceRegistry,
    request: &ApiRequest,
) -> Option<ApiResponse> {
    let accepts = |accept: &str| {
        let parts: Vec<&str> = accept.split(';').map(str::trim).collect();
        parts.contains(&"as=APIGroupDiscoveryList") && parts.contains(&"v=v2")
    };
    let is_core = match request.path.trim_end_matches('/') {
        "/api" => true,
        "/apis" => false,
        _ => return None,
    };
    if !request.accept.split(',').any(accepts) {
        return None;
    }
    let list = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": group_items(registry, is_core),
    });
    Some(ApiResponse {
        content_type: MEDIA_TYPE,
        ..ApiResponse::ok(list.to_string())
    })
}

fn group_items(registry: &ResourceRegistry, is_core: bool) -> Vec<Value> {
    let mut groups: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let served = registry.resources_by_version().map(|(name, resources)| {
        let entries = resources
            .values()
            .flat_map(|resource| api_resource_entries(resource));
        (name.as_str(), entries.collect::<Vec<Value>>())
    });
    let mut all: Vec<(&str, Vec<Value>)> = served.collect();
    // Pushed one by one, because their names live longer.
    for (group_version, entries) in review_entries() {
        all.push((group_version, entries));
    }
    for (group_version, entries) in all {
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        if group.is_empty() == is_core {
            let version = version_item(group, version, &entries);
            groups.entry(group).or_default().push(version);
        }
    }
    let items = groups
        .into_iter()
        .map(|(group, versions)| json!({ "metadata": { "name": group, "creationTimestamp": null }, "versions": versions }));
    items.collect()
}

fn version_item(group: &str, version: &str, entries: &[Value]) -> Value {
    let name = |entry: &Value| entry["name"].as_str().unwrap_or_default().to_owned();
    let resources = entries.iter().filter(|entry| !name(entry).contains('/'));
    let resources = resources.map(|entry| {
        let below = entries.iter().filter_map(|other| {
            let subresource = name(other);
            let (parent, subresource) = subresource.split_once('/')?;
            (parent == name(entry)).then(|| {
                json!({ "subresource": subresource, "responseKind": response_kind(group, version, other), "verbs": other["verbs"] })
            })
        });
        let below: Vec<Value> = below.collect();
        let scope = if entry["namespaced"] == true { "Namespaced" } else { "Cluster" };
        let mut item = json!({
            "resource": entry["name"],
            "responseKind": response_kind(group, version, entry),
            "scope": scope,
            "singularResource": entry["singularName"],
            "verbs": entry["verbs"],
        });
        if !entry["shortNames"].is_null() {
            item["shortNames"] = entry["shortNames"].clone();
        }
        if !below.is_empty() {
            item["subresources"] = below.into();
        }
        item
    });
    json!({ "version": version, "resources": resources.collect::<Vec<_>>(), "freshness": "Current" })
}

fn response_kind(group: &str, version: &str, entry: &Value) -> Value {
    let text = |field: &str, default: &str| entry[field].as_str().unwrap_or(default).to_owned();
    json!({ "group": text("group", group), "version": text("version", version), "kind": entry["kind"] })
}
