//! Finds the object, checks it, writes the restart.

use dogwatch_core::name::is_dns_name;
use dogwatch_core::rollout::{Kind, ObjectSeen, Owner, RESTARTED_AT, Refusal, refuse};
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::api::{Api, Patch, PatchParams};
use kube::core::DynamicObject;
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::kind::{NoSuchKind, Resource, resolve};
use super::view::{object_seen, owner};
use crate::Error;
use crate::error::{self, ask};

/// How often a write that lost against another writer is tried: a Deployment's status is rewritten
/// several times a second while it rolls.
const TRIES: usize = 5;

/// A person's hand on workloads.
#[derive(Clone)]
pub struct RolloutClient {
    client: Client,
}

/// An object that can be restarted.
#[derive(Debug, Clone)]
pub struct Found {
    /// As a person writes it: `deployment/web`.
    pub name: String,
    /// Its namespace; `None` where its kind has none.
    pub namespace: Option<String>,
    /// As it was seen.
    pub seen: ObjectSeen,
    pub(super) resource: Resource,
    pub(super) object: DynamicObject,
}

/// Why something is not restarted.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Nothing of that kind is served.
    #[error(transparent)]
    Kind(#[from] NoSuchKind),
    /// There is no such object.
    #[error("there is no {name}{}", in_namespace(.namespace.as_deref()))]
    NotFound {
        /// As it was asked for.
        name: String,
        /// Where it was looked for.
        namespace: Option<String>,
    },
    /// A new template would not restart it.
    #[error("{}", .0.what)]
    Refused(Refusal),
    /// The API server said no, or nothing.
    #[error("the API server did not do it")]
    Api(#[source] Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Api(error)
    }
}

impl Failed {
    /// The error and its causes in one line.
    pub fn in_words(&self) -> String {
        error::in_words(self)
    }
}

fn in_namespace(namespace: Option<&str>) -> String {
    namespace.map_or_else(String::new, |namespace| {
        format!(" in namespace {namespace}")
    })
}

impl RolloutClient {
    /// For the cluster behind `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The namespace of the kubeconfig's context.
    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// Finds an object and checks that a restart would roll it. Nothing is written.
    pub async fn find(&self, kind: &str, name: &str, namespace: &str) -> Result<Found, Failed> {
        let resource = resolve(&self.client, kind).await??;
        let namespace = resource.namespaced.then(|| namespace.to_owned());
        let api = self.api(&resource, namespace.as_deref());
        let called = format!("{}/{name}", resource.singular);
        let Some(object) = ask(api.get_opt(name)).await? else {
            return Err(Failed::NotFound {
                name: called,
                namespace,
            });
        };
        let mut seen = object_seen(&called, kind_of(&resource), &object);
        if seen.kind == Kind::Pod {
            seen.owner = self.top(seen.owner, namespace.as_deref()).await;
        }
        let found = Found {
            name: called,
            namespace,
            seen,
            resource,
            object,
        };
        match refuse(&found.seen) {
            Some(refusal) => Err(Failed::Refused(refusal)),
            None => Ok(found),
        }
    }

    /// Writes the restart; `at` is an RFC 3339 time that no earlier restart had. With `dry_run` the API
    /// server checks everything and keeps nothing.
    pub async fn restart(&self, found: &mut Found, at: &str, dry_run: bool) -> Result<(), Failed> {
        let api = self.api(&found.resource, found.namespace.as_deref());
        let name = found.object.name_any();
        for tries_left in (0..TRIES).rev() {
            let patch = Patch::Merge(patch(&found.object, at));
            let params = PatchParams {
                dry_run,
                field_manager: Some("dogwatch-rollout-restart".to_owned()),
                ..PatchParams::default()
            };
            match ask(api.patch(&name, &params, &patch)).await {
                Ok(object) => {
                    found.object = object;
                    return Ok(());
                }
                Err(error) if error.kind() == crate::Kind::Conflict && tries_left > 0 => {
                    self.look_again(&api, found).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        unreachable!("the last try returns")
    }

    /// What lost against another writer is checked anew: it may be paused by now, or another object.
    async fn look_again(&self, api: &Api<DynamicObject>, found: &mut Found) -> Result<(), Failed> {
        let object = ask(api.get_opt(&found.object.name_any())).await?;
        let Some(object) = object.filter(|object| object.uid() == found.object.uid()) else {
            return Err(Failed::NotFound {
                name: found.name.clone(),
                namespace: found.namespace.clone(),
            });
        };
        found.seen = object_seen(&found.name, kind_of(&found.resource), &object);
        found.object = object;
        match refuse(&found.seen) {
            Some(refusal) => Err(Failed::Refused(refusal)),
            None => Ok(()),
        }
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(super) fn api(&self, resource: &Resource, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource.api),
            None => Api::all_with(self.client.clone(), &resource.api),
        }
    }

    /// The Deployment above a pod's ReplicaSet, where it can be read.
    async fn top(&self, of: Option<Owner>, namespace: Option<&str>) -> Option<Owner> {
        let of = of?;
        if of.kind != "ReplicaSet" || !is_dns_name(&of.name) {
            return Some(of);
        }
        let sets: Api<ReplicaSet> = Api::namespaced(self.client.clone(), namespace?);
        let set = ask(sets.get_opt(&of.name)).await.ok().flatten();
        set.as_ref().and_then(owner).or(Some(of))
    }
}

pub(super) fn kind_of(resource: &Resource) -> Kind {
    Kind::of(&resource.api.group, &resource.api.kind)
}

fn patch(object: &DynamicObject, at: &str) -> serde_json::Value {
    json!({
        "metadata": { "uid": object.uid(), "resourceVersion": object.resource_version() },
        "spec": { "template": { "metadata": { "annotations": { RESTARTED_AT: at } } } },
    })
}
