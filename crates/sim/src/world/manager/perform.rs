//! Does what a controller wants done, and says what the cache is to know of it.

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

use crate::world::cache::{Cache, Change, Kept, Key};
use crate::world::controllers::{Action, Kind, Verb};

/// After this a call that was not answered counts as failed.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a call failed, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Somebody else was faster.
    Conflict,
    /// Anything else.
    Other,
}

/// Takes something into the cache, and says what changed by it.
pub type Effect = Box<dyn FnOnce(&mut Cache) -> Vec<Change> + Send>;

/// Does it.
pub async fn perform(client: Client, action: Action) -> Result<Effect, Failure> {
    let Action { kind, key, verb } = action;
    let namespace = key.namespace.clone();
    match kind {
        Kind::Pod => call(Api::<Pod>::namespaced(client, &namespace), key, verb).await,
        Kind::Node => call(Api::<Node>::all(client), key, verb).await,
        Kind::ReplicaSet => {
            call(Api::<ReplicaSet>::namespaced(client, &namespace), key, verb).await
        }
        Kind::DaemonSet => call(Api::<DaemonSet>::namespaced(client, &namespace), key, verb).await,
        Kind::Deployment => {
            call(Api::<Deployment>::namespaced(client, &namespace), key, verb).await
        }
        Kind::Budget => {
            call(
                Api::<PodDisruptionBudget>::namespaced(client, &namespace),
                key,
                verb,
            )
            .await
        }
        Kind::Attachment => call(Api::<VolumeAttachment>::all(client), key, verb).await,
    }
}

async fn call<K: Kept + Serialize>(api: Api<K>, key: Key, verb: Verb) -> Result<Effect, Failure> {
    let name = key.name.clone();
    let unchecked = PatchParams::default();
    match verb {
        Verb::Create(object) => {
            let object: K = serde_json::from_value(object).map_err(|_| Failure::Other)?;
            in_time(api.create(&PostParams::default(), &object))
                .await
                .map(seen)
        }
        Verb::Patch(patch) => in_time(api.patch(&name, &unchecked, &Patch::Merge(&patch)))
            .await
            .map(seen),
        Verb::PatchStatus(patch) => {
            in_time(api.patch_status(&name, &unchecked, &Patch::Merge(&patch)))
                .await
                .map(seen)
        }
        Verb::PatchConditions(patch) => {
            in_time(api.patch_status(&name, &unchecked, &Patch::Strategic(&patch)))
                .await
                .map(seen)
        }
        Verb::Delete { uid, grace } => {
            let params = DeleteParams {
                grace_period_seconds: grace,
                ..DeleteParams::default()
            };
            let params = params.preconditions(Preconditions {
                uid: Some(uid.clone()),
                resource_version: None,
            });
            in_time(api.delete(&name, &params))
                .await
                .map(|answer| deleted(answer.left(), key, uid))
        }
        Verb::Bind { uid, node } => bind(&api, key, &uid, node).await,
    }
}

fn seen<K: Kept>(object: K) -> Effect {
    Box::new(move |cache| cache.seen(object).into_iter().collect())
}

/// The answer to a deletion is the object, as it goes on to be or as it last was; or only "done".
fn deleted<K: Kept>(answer: Option<K>, key: Key, uid: String) -> Effect {
    if let Some(object) = answer {
        let meta = object.meta();
        let graceful = meta.deletion_grace_period_seconds.unwrap_or(0) > 0;
        let finalized = meta
            .finalizers
            .as_ref()
            .is_some_and(|finalizers| !finalizers.is_empty());
        if meta.deletion_timestamp.is_some() && (graceful || finalized) {
            return seen(object);
        }
    }
    Box::new(move |cache| cache.known_gone::<K>(&key, &uid).into_iter().collect())
}

async fn bind<K: Kept>(api: &Api<K>, key: Key, uid: &str, node: String) -> Result<Effect, Failure> {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": { "name": key.name, "namespace": key.namespace, "uid": uid },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    });
    let params = PostParams::default();
    let call = api.create_subresource::<_, Value>("binding", &key.name, &params, &binding);
    in_time(call).await?;
    // The answer is a bare Success: the cache is told what it means.
    Ok(Box::new(move |cache| {
        let Some(mut pod) = cache.pods.get(&key).map(|pod| (**pod).clone()) else {
            return Vec::new();
        };
        pod.spec.get_or_insert_default().node_name = Some(node);
        vec![cache.assume(pod)]
    }))
}

async fn in_time<T: Debug>(call: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match tokio::time::timeout(CALL_TIMEOUT, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(Failure::Conflict),
        // What is gone is news that the watch brings.
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Err(Failure::Conflict),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a simulated controller's call failed");
            Err(Failure::Other)
        }
        Err(_) => Err(Failure::Other),
    }
}
