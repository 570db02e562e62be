//! From a path to what it names.

use std::sync::Arc;

use http::Method;

use super::kinds::{Registry, Resource, Subresource};
use super::request::{Request, percent_decode};

/// What a request wants done, in RBAC's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read many.
    List,
    /// Follow changes.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE of one.
    Delete,
    /// DELETE of many.
    DeleteCollection,
}

impl Verb {
    /// As RBAC and the audit log spell it.
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

/// A resource path, taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    /// Empty: cluster-scoped, or all namespaces.
    pub(crate) namespace: String,
    /// Empty: a collection.
    pub(crate) name: String,
    pub(crate) subresource: Option<Subresource>,
}

impl Target {
    /// Where the object lies in its collection.
    pub(crate) fn key(&self) -> String {
        key(&self.namespace, &self.name)
    }

    /// The subresource's name, empty for the object itself.
    pub(crate) fn subresource_name(&self) -> &'static str {
        self.subresource.map_or("", Subresource::as_str)
    }
}

/// Where an object lies in its collection. The order of keys is that of the real server's lists.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

/// The words of a request that need no knowledge of what is served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PathWords {
    pub(crate) group_version: String,
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
}

impl PathWords {
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

    /// The resource that these words name. None when it is not served, or not like this.
    pub(crate) fn resolve(&self, registry: &Registry) -> Option<Target> {
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
        // A namespace is both a scope and an object; for other kinds a scope must fit.
        if !resource.namespaced && !self.namespace.is_empty() {
            return None;
        }
        Some(Target {
            resource,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            subresource,
        })
    }
}

/// What the request wants done. None for a method that Kubernetes does not know.
pub(crate) fn verb(request: &Request, words: &PathWords) -> Option<Verb> {
    let one = !words.name.is_empty();
    match request.method {
        Method::GET if one => Some(Verb::Get),
        Method::GET if request.query.flag("watch") => Some(Verb::Watch),
        Method::GET => Some(Verb::List),
        Method::POST => Some(Verb::Create),
        Method::PUT => Some(Verb::Update),
        Method::PATCH => Some(Verb::Patch),
        Method::DELETE if one => Some(Verb::Delete),
        Method::DELETE => Some(Verb::DeleteCollection),
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
            let words = PathWords::parse(path).unwrap();
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
        assert_eq!(PathWords::parse("/apis/apps/v1"), None);
    }
}
