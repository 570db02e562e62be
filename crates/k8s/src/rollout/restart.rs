//! Finds the object, checks it, and writes the restart.

use dogwatch_core::name::is_dns_name;
use dogwatch_core::rollout::{
    ObservedWorkload, RESTARTED_AT_ANNOTATION, RestartTargetKind, RolloutRefusal, WorkloadOwner,
    find_refusal,
};
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::api::{Api, Patch, PatchParams};
use kube::core::DynamicObject;
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::kind::{NoSuchKind, RolloutResource, resolve_kind};
use super::view::{controller_owner, observed_object};
use crate::Error;
use crate::error::{self, with_timeout};

/// How often a conflicting write is tried: a Deployment's status is written several times a second
/// during a rollout.
const MAX_TRIES: usize = 5;

#[derive(Clone)]
pub struct RolloutClient {
    client: Client,
}

/// An object that can be restarted.
#[derive(Debug, Clone)]
pub struct RolloutTarget {
    /// As a person writes it: `deployment/web`.
    pub name: String,
    /// `None` if it is cluster-scoped.
    pub namespace: Option<String>,
    pub seen: ObservedWorkload,
    pub(super) resource: RolloutResource,
    pub(super) object: DynamicObject,
}

#[derive(Debug, thiserror::Error)]
pub enum RestartError {
    /// The API server serves no such kind.
    #[error(transparent)]
    Kind(#[from] NoSuchKind),
    /// No such object.
    #[error("there is no {name}{}", in_namespace(.namespace.as_deref()))]
    NotFound {
        name: String,
        /// The namespace that was searched.
        namespace: Option<String>,
    },
    /// A changed template would not restart its pods.
    #[error("{}", .0.what)]
    Refused(RolloutRefusal),
    /// The API server refused, or did not answer.
    #[error("the API server did not restart it")]
    Api(#[source] Error),
}

impl From<Error> for RestartError {
    fn from(error: Error) -> Self {
        RestartError::Api(error)
    }
}

impl RestartError {
    /// The error and its causes in one line.
    pub fn error_chain(&self) -> String {
        error::error_chain(self)
    }
}

fn in_namespace(namespace: Option<&str>) -> String {
    namespace.map_or_else(String::new, |namespace| {
        format!(" in namespace {namespace}")
    })
}

impl RolloutClient {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// Finds an object and checks that a restart would replace its pods. Writes nothing.
    pub async fn find_target(
        &self,
        kind: &str,
        name: &str,
        namespace: &str,
    ) -> Result<RolloutTarget, RestartError> {
        let resource = resolve_kind(&self.client, kind).await??;
        let namespace = resource.namespaced.then(|| namespace.to_owned());
        let api = self.object_api(&resource, namespace.as_deref());
        let called = format!("{}/{name}", resource.singular);
        let Some(object) = with_timeout(api.get_opt(name)).await? else {
            return Err(RestartError::NotFound {
                name: called,
                namespace,
            });
        };
        let mut seen = observed_object(&called, kind_of_resource(&resource), &object);
        if seen.kind == RestartTargetKind::Pod {
            seen.owner = self.find_top_owner(seen.owner, namespace.as_deref()).await;
        }
        let found = RolloutTarget {
            name: called,
            namespace,
            seen,
            resource,
            object,
        };
        match find_refusal(&found.seen) {
            Some(refusal) => Err(RestartError::Refused(refusal)),
            None => Ok(found),
        }
    }

    /// Writes the restart; `at` is an RFC 3339 time that no earlier restart used. With `dry_run`
    /// the API server checks the write and does not store it.
    pub async fn write_restart(
        &self,
        found: &mut RolloutTarget,
        at: &str,
        dry_run: bool,
    ) -> Result<(), RestartError> {
        let api = self.object_api(&found.resource, found.namespace.as_deref());
        let name = found.object.name_any();
        for tries_left in (0..MAX_TRIES).rev() {
            let patch = Patch::Merge(restart_patch(&found.object, at));
            let params = PatchParams {
                dry_run,
                field_manager: Some("dogwatch-rollout-restart".to_owned()),
                ..PatchParams::default()
            };
            match with_timeout(api.patch(&name, &params, &patch)).await {
                Ok(object) => {
                    found.object = object;
                    return Ok(());
                }
                Err(error) if error.kind() == crate::ApiErrorKind::Conflict && tries_left > 0 => {
                    self.recheck_target(&api, found).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        unreachable!("the last try returns")
    }

    /// Checks the object again after a conflict: it may be paused by now, or replaced.
    async fn recheck_target(
        &self,
        api: &Api<DynamicObject>,
        found: &mut RolloutTarget,
    ) -> Result<(), RestartError> {
        let object = with_timeout(api.get_opt(&found.object.name_any())).await?;
        let Some(object) = object.filter(|object| object.uid() == found.object.uid()) else {
            return Err(RestartError::NotFound {
                name: found.name.clone(),
                namespace: found.namespace.clone(),
            });
        };
        found.seen = observed_object(&found.name, kind_of_resource(&found.resource), &object);
        found.object = object;
        match find_refusal(&found.seen) {
            Some(refusal) => Err(RestartError::Refused(refusal)),
            None => Ok(()),
        }
    }

    pub(super) fn kube_client(&self) -> Client {
        self.client.clone()
    }

    pub(super) fn object_api(
        &self,
        resource: &RolloutResource,
        namespace: Option<&str>,
    ) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource.api),
            None => Api::all_with(self.client.clone(), &resource.api),
        }
    }

    /// The Deployment that owns a pod's ReplicaSet, if it can be read.
    async fn find_top_owner(
        &self,
        of: Option<WorkloadOwner>,
        namespace: Option<&str>,
    ) -> Option<WorkloadOwner> {
        let of = of?;
        if of.kind != "ReplicaSet" || !is_dns_name(&of.name) {
            return Some(of);
        }
        let sets: Api<ReplicaSet> = Api::namespaced(self.client.clone(), namespace?);
        let set = with_timeout(sets.get_opt(&of.name)).await.ok().flatten();
        set.as_ref().and_then(controller_owner).or(Some(of))
    }
}

pub(super) fn kind_of_resource(resource: &RolloutResource) -> RestartTargetKind {
    RestartTargetKind::from_group_kind(&resource.api.group, &resource.api.kind)
}

fn restart_patch(object: &DynamicObject, at: &str) -> serde_json::Value {
    json!({
        "metadata": { "uid": object.uid(), "resourceVersion": object.resource_version() },
        "spec": { "template": { "metadata": { "annotations": { RESTARTED_AT_ANNOTATION: at } } } },
    })
}
