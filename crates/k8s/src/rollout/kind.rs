//! Resolves the kind that a person writes (`deploy`, `StatefulSet`, `rollouts.argoproj.io`) to its
//! resource.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource, APIResourceList};
use kube::Client;
use kube::core::ApiResource;

use crate::Error;
use crate::error::with_timeout;

/// Why a kind cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchKind {
    /// The API server serves no kind of that name.
    #[error("the API server does not know kind {0:?}")]
    Unknown(String),
    /// Several groups have this kind.
    #[error("{text:?} is more than one kind: write one of {}", .candidates.join(", "))]
    Ambiguous {
        text: String,
        /// The full names to write instead.
        candidates: Vec<String>,
    },
}

/// Kinds without discovery: plural, short names, group, version, kind. They are restarted most
/// often, and users who may patch them may not always read the list of API groups.
const KNOWN_KINDS: [(&str, &[&str], &str, &str, &str); 8] = [
    ("deployments", &["deploy"], "apps", "v1", "Deployment"),
    ("statefulsets", &["sts"], "apps", "v1", "StatefulSet"),
    ("daemonsets", &["ds"], "apps", "v1", "DaemonSet"),
    ("replicasets", &["rs"], "apps", "v1", "ReplicaSet"),
    ("jobs", &[], "batch", "v1", "Job"),
    ("cronjobs", &["cj"], "batch", "v1", "CronJob"),
    ("pods", &["po"], "", "v1", "Pod"),
    (
        "replicationcontrollers",
        &["rc"],
        "",
        "v1",
        "ReplicationController",
    ),
];

/// The resource of a kind as a person writes it, and its namespace; `None` if it is cluster-scoped.
pub(super) async fn resolve_kind(
    client: &Client,
    text: &str,
) -> Result<Result<RolloutResource, NoSuchKind>, Error> {
    let lower = text.to_lowercase();
    let (name, group) = match lower.split_once('.') {
        Some((name, group)) => (name, Some(group)),
        None => (lower.as_str(), None),
    };
    if let Some(known) = find_known_kind(name, group) {
        return Ok(Ok(known));
    }
    let mut found = Vec::new();
    for one in list_groups(client, group).await? {
        found.extend(list_served_resources(client, &one, name).await?);
    }
    Ok(match found.len() {
        0 => Err(NoSuchKind::Unknown(text.to_owned())),
        1 => Ok(found.remove(0)),
        _ => Err(NoSuchKind::Ambiguous {
            text: text.to_owned(),
            candidates: found
                .iter()
                .map(|one| format!("{}.{}", one.api.plural, one.api.group))
                .collect(),
        }),
    })
}

#[derive(Debug, Clone)]
pub(super) struct RolloutResource {
    pub(super) api: ApiResource,
    pub(super) namespaced: bool,
    pub(super) singular: String,
}

fn find_known_kind(name: &str, group: Option<&str>) -> Option<RolloutResource> {
    KNOWN_KINDS
        .iter()
        .find(|(plural, short, of, _, kind)| {
            let called = *plural == name || short.contains(&name) || kind.to_lowercase() == name;
            called && group.is_none_or(|group| group == *of)
        })
        .map(|(plural, _, group, version, kind)| RolloutResource {
            api: build_api_resource(group, version, kind, plural),
            namespaced: true,
            singular: kind.to_lowercase(),
        })
}

fn build_api_resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// The groups that may have the kind. The core group has no further kind with a pod template.
async fn list_groups(client: &Client, group: Option<&str>) -> Result<Vec<APIGroup>, Error> {
    let mut groups = with_timeout(client.list_api_groups()).await?.groups;
    groups.retain(|one| group.is_none_or(|group| group == one.name));
    Ok(groups)
}

async fn list_served_resources(
    client: &Client,
    group: &APIGroup,
    name: &str,
) -> Result<Vec<RolloutResource>, Error> {
    let preferred = group.preferred_version.as_ref();
    let Some(version) = preferred.or_else(|| group.versions.first()) else {
        return Ok(Vec::new());
    };
    let resources: APIResourceList =
        match with_timeout(client.list_api_group_resources(&version.group_version)).await {
            Ok(resources) => resources,
            // An aggregated API whose server is down must not hide all others.
            Err(Error::Answer(status)) if matches!(status.code, 404 | 503) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
    let called = |one: &&APIResource| {
        let short = one.short_names.iter().flatten().any(|short| short == name);
        let whole = one.name == name || one.singular_name == name;
        !one.name.contains('/') && (whole || short || one.kind.to_lowercase() == name)
    };
    Ok(resources
        .resources
        .iter()
        .filter(called)
        .map(|one| RolloutResource {
            api: build_api_resource(&group.name, &version.version, &one.kind, &one.name),
            namespaced: one.namespaced,
            singular: one.kind.to_lowercase(),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_every_name_that_kubectl_takes() {
        for (text, group, kind) in [
            ("deployment", None, "Deployment"),
            ("deployments", None, "Deployment"),
            ("deploy", Some("apps"), "Deployment"),
            ("sts", None, "StatefulSet"),
            ("daemonset", None, "DaemonSet"),
            ("po", None, "Pod"),
        ] {
            assert_eq!(
                find_known_kind(text, group).unwrap().api.kind,
                kind,
                "{text}"
            );
        }
        assert!(find_known_kind("deployment", Some("example.com")).is_none());
        assert!(find_known_kind("rollouts", None).is_none());
    }
}
