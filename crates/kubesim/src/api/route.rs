//! Parses request paths into resources, names and verbs.

use std::sync::Arc;

use http::Method;

use super::kinds::{ResourceRegistry, ServedResource, Subresource};
use super::request::{ApiRequest, percent_decode};

/// The verb of a request, as RBAC names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApiVerb {
    Get,
    List,
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE of one object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
}

impl ApiVerb {
    /// The verb as RBAC and the audit log spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// The resource and object that a path names.
#[derive(Debug, Clone)]
pub(crate) struct ApiRequestTarget {
    pub(crate) resource: Arc<ServedResource>,
    /// Empty for cluster-scoped objects and for all namespaces.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    pub(crate) subresource: Option<Subresource>,
}

impl ApiRequestTarget {
    /// The key of the object in its collection.
    pub(crate) fn collection_key(&self) -> String {
        object_key(&self.namespace, &self.name)
    }

    /// Empty for the object itself.
    pub(crate) fn subresource_name(&self) -> &'static str {
        self.subresource.map_or("", Subresource::as_str)
    }
}

/// The key of an object in its collection. Keys sort like the real server's lists.
pub(crate) fn object_key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

/// The parts of a resource path, not yet checked against the served resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group_version: String,
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
}

impl ResourcePath {
    /// None for a path that names no resource.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let mut parts: Vec<String> = path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(percent_decode)
            .collect();
        let take = match parts.first().map(String::as_str) {
            Some("api") if parts.len() > 2 => 2,
            Some("apis") if parts.len() > 3 => 3,
            _ => return None,
        };
        let rest = parts.split_off(take);
        let group_version = parts[1..].join("/");
        let word = |index: usize| rest.get(index).cloned().unwrap_or_default();
        let scoped = rest[0] == "namespaces"
            && rest.len() > 2
            && !matches!(rest[2].as_str(), "status" | "finalize");
        let from = if scoped { 2 } else { 0 };
        if rest.len() > from + 3 {
            return None;
        }
        Some(Self {
            group_version,
            namespace: if scoped { word(1) } else { String::new() },
            resource: word(from),
            name: word(from + 1),
            subresource: word(from + 2),
        })
    }

    /// The resource that the path names. None when it is not served, or not with this scope or
    /// subresource.
    pub(crate) fn resolve_target(&self, registry: &ResourceRegistry) -> Option<ApiRequestTarget> {
        let resource = Arc::clone(registry.get(&self.group_version, &self.resource)?);
        let subresource = match self.subresource.as_str() {
            "" => None,
            name => Some(
                *resource
                    .subresources
                    .iter()
                    .find(|sub| sub.as_str() == name)?,
            ),
        };
        if resource.namespaced && self.namespace.is_empty() && !self.name.is_empty() {
            return None;
        }
        // A namespace is both a scope and an object; for other kinds the scope must match.
        if !resource.namespaced && !self.namespace.is_empty() {
            return None;
        }
        Some(ApiRequestTarget {
            resource,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            subresource,
        })
    }
}

/// None for a method that Kubernetes does not know.
pub(crate) fn verb_of_request(request: &ApiRequest, words: &ResourcePath) -> Option<ApiVerb> {
    let one = !words.name.is_empty();
    match request.method {
        Method::GET if one => Some(ApiVerb::Get),
        Method::GET if request.query.is_true("watch") => Some(ApiVerb::Watch),
        Method::GET => Some(ApiVerb::List),
        Method::POST => Some(ApiVerb::Create),
        Method::PUT => Some(ApiVerb::Update),
        Method::PATCH => Some(ApiVerb::Patch),
        Method::DELETE if one => Some(ApiVerb::Delete),
        Method::DELETE => Some(ApiVerb::DeleteCollection),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_apart_into_scope_resource_name_and_subresource() {
        let cases = [
            ("/api/v1/nodes", ["v1", "", "nodes", "", ""]),
            ("/api/v1/nodes/a/status", ["v1", "", "nodes", "a", "status"]),
            ("/api/v1/namespaces/x", ["v1", "", "namespaces", "x", ""]),
            (
                "/api/v1/namespaces/x/status",
                ["v1", "", "namespaces", "x", "status"],
            ),
            (
                "/api/v1/namespaces/x/pods/p/eviction",
                ["v1", "x", "pods", "p", "eviction"],
            ),
            (
                "/apis/coordination.k8s.io/v1/namespaces/d/leases/l",
                ["coordination.k8s.io/v1", "d", "leases", "l", ""],
            ),
        ];
        for (path, [group_version, namespace, resource, name, subresource]) in cases {
            let words = ResourcePath::parse(path).unwrap();
            let found = [
                &words.group_version,
                &words.namespace,
                &words.resource,
                &words.name,
                &words.subresource,
            ];
            assert_eq!(
                found,
                [group_version, namespace, resource, name, subresource],
                "{path}"
            );
        }
        assert_eq!(ResourcePath::parse("/apis/apps/v1"), None);
    }
}
