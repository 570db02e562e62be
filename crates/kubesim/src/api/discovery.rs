//! Discovery: the server's version, health, groups and resources.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::aggregated_discovery::answer_aggregated;
use super::kinds::{ResourceRegistry, ServedResource, Subresource};
use super::openapi::{document_index, find_document};
use super::request::{ApiRequest, ApiResponse};
use super::reviews::REVIEWS;
use super::status::{ApiError, ApiResult};

/// Answers a path that names no resource.
pub(crate) fn answer_discovery(
    registry: &ResourceRegistry,
    request: &ApiRequest,
) -> ApiResult<ApiResponse> {
    if let Some(answer) = answer_aggregated(registry, request) {
        return Ok(answer);
    }
    let parts: Vec<&str> = request
        .path
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    let body = match parts.as_slice() {
        ["version"] => version_info(),
        ["healthz" | "livez" | "readyz", ..] => return Ok(ApiResponse::ok("ok")),
        ["api"] => json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1" }],
        }),
        ["openapi", "v3"] => document_index(registry),
        ["openapi", "v3", path @ ..] => match find_document(registry, path) {
            Some(document) => document,
            None => return Ok(path_not_found()),
        },
        ["apis"] => api_group_list(registry),
        ["apis", group] => find_api_group(registry, group).ok_or_else(ApiError::no_such_path)?,
        ["api", version] => api_resource_list(registry, version)?,
        ["apis", group, version] => {
            let group_version = format!("{group}/{version}");
            match review_entries().find(|(name, _)| *name == group_version) {
                Some((_, list)) => resource_list(&group_version, &list),
                None => api_resource_list(registry, &group_version)?,
            }
        }
        _ => return Ok(path_not_found()),
    };
    Ok(ApiResponse::ok(body.to_string()))
}

/// The answer to a path without a handler: plain text, no Status.
pub(crate) fn path_not_found() -> ApiResponse {
    ApiResponse {
        content_type: "text/plain; charset=utf-8",
        ..ApiResponse::with_code(404, "404 page not found\n")
    }
}

fn version_info() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": "v1.36.1",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none: this is dogwatch's embedded cluster",
        "compiler": "rustc",
        "platform": "linux/amd64",
    })
}

/// Versions by group, without the core group.
fn versions_by_group(registry: &ResourceRegistry) -> BTreeMap<&str, Vec<&str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (group_version, _) in registry.resources_by_version() {
        if let Some((group, version)) = group_version.split_once('/') {
            groups.entry(group).or_default().push(version);
        }
    }
    for (group_version, _) in review_entries() {
        if let Some((group, version)) = group_version.split_once('/') {
            groups.entry(group).or_default().push(version);
        }
    }
    groups
}

fn api_group(group: &str, versions: &[&str]) -> Value {
    let entry = |version: &&str| json!({ "groupVersion": format!("{group}/{version}"), "version": version });
    let entries: Vec<Value> = versions.iter().map(entry).collect();
    json!({ "name": group, "versions": entries, "preferredVersion": entries.first() })
}

fn api_group_list(registry: &ResourceRegistry) -> Value {
    let groups: Vec<Value> = versions_by_group(registry)
        .iter()
        .map(|(group, versions)| api_group(group, versions))
        .collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

fn find_api_group(registry: &ResourceRegistry, name: &str) -> Option<Value> {
    let groups = versions_by_group(registry);
    let mut group = api_group(name, groups.get(name)?);
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Some(group)
}

fn api_resource_list(registry: &ResourceRegistry, group_version: &str) -> ApiResult<Value> {
    if !registry.serves_version(group_version) {
        return Err(ApiError::no_such_path());
    }
    let served = registry
        .resources_by_version()
        .find(|(name, _)| *name == group_version);
    let served = served
        .into_iter()
        .flat_map(|(_, resources)| resources.values());
    let list: Vec<Value> = served
        .flat_map(|resource| api_resource_entries(resource))
        .collect();
    Ok(resource_list(group_version, &list))
}

fn resource_list(group_version: &str, list: &[Value]) -> Value {
    json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list })
}

/// The reviews, which are created and never stored, by group and version.
pub(crate) fn review_entries() -> impl Iterator<Item = (&'static str, Vec<Value>)> {
    let versions: std::collections::BTreeSet<&str> =
        REVIEWS.iter().map(|(version, ..)| *version).collect();
    versions.into_iter().map(|version| {
        let reviews = REVIEWS.iter().filter(move |(other, ..)| *other == version);
        let entries = reviews.map(|(_, plural, kind, namespaced)| json!({ "name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced, "kind": kind, "verbs": ["create"] }));
        (version, entries.collect())
    })
}

pub(crate) fn api_resource_entries(resource: &ServedResource) -> Vec<Value> {
    let verbs = if resource.custom.is_some() {
        [
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "create",
            "update",
            "watch",
        ]
    } else {
        [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ]
    };
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    let below = resource.subresources.iter().map(|subresource| {
        let name = format!("{}/{}", resource.plural, subresource.as_str());
        let (kind, verbs) = match subresource {
            Subresource::Status => (resource.kind.as_str(), json!(["get", "patch", "update"])),
            Subresource::Eviction => ("Eviction", json!(["create"])),
            Subresource::Binding => ("Binding", json!(["create"])),
        };
        let mut entry = json!({ "name": name, "singularName": "", "namespaced": resource.namespaced, "kind": kind, "verbs": verbs });
        if *subresource == Subresource::Eviction {
            entry["group"] = "policy".into();
            entry["version"] = "v1".into();
        }
        entry
    });
    [entry].into_iter().chain(below).collect()
}
