//! Performs the writes of a controller and applies the answers to the cache.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client};
use serde::Serialize;
use serde_json::{Value, json};

use crate::world::cache::{CacheChange, CachedKind, ControllerCache, ObjectKey};
use crate::world::controllers::{ControllerAction, WritableKind, WriteVerb};

/// A call without an answer counts as failed after this time.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionFailure {
    /// The object has changed since it was read.
    Conflict,
    Other,
}

/// Applies an answer to the cache and returns the changes.
pub type CacheUpdate = Box<dyn FnOnce(&mut ControllerCache) -> Vec<CacheChange> + Send>;

pub async fn perform_action(
    client: Client,
    action: ControllerAction,
) -> Result<CacheUpdate, ActionFailure> {
    let ControllerAction { kind, key, verb } = action;
    let namespace = key.namespace.clone();
    match kind {
        WritableKind::Pod => call_api(Api::<Pod>::namespaced(client, &namespace), key, verb).await,
        WritableKind::Node => call_api(Api::<Node>::all(client), key, verb).await,
        WritableKind::ReplicaSet => {
            call_api(Api::<ReplicaSet>::namespaced(client, &namespace), key, verb).await
        }
        WritableKind::DaemonSet => {
            call_api(Api::<DaemonSet>::namespaced(client, &namespace), key, verb).await
        }
        WritableKind::Deployment => {
            call_api(Api::<Deployment>::namespaced(client, &namespace), key, verb).await
        }
        WritableKind::Budget => {
            call_api(
                Api::<PodDisruptionBudget>::namespaced(client, &namespace),
                key,
                verb,
            )
            .await
        }
        WritableKind::Attachment => call_api(Api::<VolumeAttachment>::all(client), key, verb).await,
    }
}

async fn call_api<K: CachedKind + Serialize>(
    api: Api<K>,
    key: ObjectKey,
    verb: WriteVerb,
) -> Result<CacheUpdate, ActionFailure> {
    let name = key.name.clone();
    let unchecked = PatchParams::default();
    match verb {
        WriteVerb::Create(object) => {
            let object: K = serde_json::from_value(object).map_err(|_| ActionFailure::Other)?;
            with_timeout(api.create(&PostParams::default(), &object))
                .await
                .map(cache_observed)
        }
        WriteVerb::Patch(patch) => {
            with_timeout(api.patch(&name, &unchecked, &Patch::Merge(&patch)))
                .await
                .map(cache_observed)
        }
        WriteVerb::PatchStatus(patch) => {
            with_timeout(api.patch_status(&name, &unchecked, &Patch::Merge(&patch)))
                .await
                .map(cache_observed)
        }
        WriteVerb::PatchConditions(patch) => {
            with_timeout(api.patch_status(&name, &unchecked, &Patch::Strategic(&patch)))
                .await
                .map(cache_observed)
        }
        WriteVerb::Delete { uid, grace } => {
            let params = DeleteParams {
                grace_period_seconds: grace,
                ..DeleteParams::default()
            };
            let params = params.preconditions(Preconditions {
                uid: Some(uid.clone()),
                resource_version: None,
            });
            with_timeout(api.delete(&name, &params))
                .await
                .map(|answer| cache_deleted(answer.left(), key, uid))
        }
        WriteVerb::Bind { uid, node } => bind_pod(&api, key, &uid, node).await,
    }
}

fn cache_observed<K: CachedKind>(object: K) -> CacheUpdate {
    Box::new(move |cache| cache.observe_object(object).into_iter().collect())
}

/// A deletion is answered with the object, still terminating or in its last state, or with a bare
/// Success.
fn cache_deleted<K: CachedKind>(answer: Option<K>, key: ObjectKey, uid: String) -> CacheUpdate {
    if let Some(object) = answer {
        let meta = object.meta();
        let graceful = meta.deletion_grace_period_seconds.unwrap_or(0) > 0;
        let finalized = meta
            .finalizers
            .as_ref()
            .is_some_and(|finalizers| !finalizers.is_empty());
        if meta.deletion_timestamp.is_some() && (graceful || finalized) {
            return cache_observed(object);
        }
    }
    Box::new(move |cache| cache.assume_deleted::<K>(&key, &uid).into_iter().collect())
}

async fn bind_pod<K: CachedKind>(
    api: &Api<K>,
    key: ObjectKey,
    uid: &str,
    node: String,
) -> Result<CacheUpdate, ActionFailure> {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": { "name": key.name, "namespace": key.namespace, "uid": uid },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    });
    let params = PostParams::default();
    let call = api.create_subresource::<_, Value>("binding", &key.name, &params, &binding);
    with_timeout(call).await?;
    // The answer is a bare Success, so the cache gets the object from the request.
    Ok(Box::new(move |cache| {
        let Some(mut pod) = cache.pods.get(&key).map(|pod| (**pod).clone()) else {
            return Vec::new();
        };
        pod.spec.get_or_insert_default().node_name = Some(node);
        vec![cache.assume_object(pod)]
    }))
}

async fn with_timeout<T: Debug>(
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, ActionFailure> {
    match tokio::time::timeout(CALL_TIMEOUT, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(ActionFailure::Conflict),
        // The watch will report that the object is gone.
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Err(ActionFailure::Conflict),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a simulated controller's call failed");
            Err(ActionFailure::Other)
        }
        Err(_) => Err(ActionFailure::Other),
    }
}
