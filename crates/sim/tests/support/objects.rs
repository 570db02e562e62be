//! Builds and changes objects on an API server.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::{GroupVersionKind, ObjectList};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::PATIENCE;

/// A kind in one of its versions: group, version, kind, plural.
pub type Kind = (&'static str, &'static str, &'static str, &'static str);

pub const OPENSHIFT: Kind = ("machine.openshift.io", "v1beta1", "Machine", "machines");
pub const CAPI: Kind = ("cluster.x-k8s.io", "v1beta2", "Machine", "machines");
pub const CAPI_OLD: Kind = ("cluster.x-k8s.io", "v1beta1", "Machine", "machines");
pub const CLUSTER: Kind = ("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters");
pub const METAL3_MACHINE: Kind = (
    "infrastructure.cluster.x-k8s.io",
    "v1beta1",
    "Metal3Machine",
    "metal3machines",
);
pub const REQUEST: Kind = (
    "dogwatch.dev",
    "v1alpha1",
    "PowerRemediation",
    "powerremediations",
);
pub const HOST: Kind = ("metal3.io", "v1alpha1", "BareMetalHost", "baremetalhosts");
pub const NODE: Kind = ("", "v1", "Node", "nodes");

/// The fields that Cluster API requires of a Machine.
pub fn capi_spec((_, version, ..): Kind) -> Value {
    let group = METAL3_MACHINE.0;
    let reference = if version == "v1beta1" {
        json!({ "apiVersion": format!("{group}/v1beta1"), "kind": "Metal3Machine", "name": "mm" })
    } else {
        json!({ "apiGroup": group, "kind": "Metal3Machine", "name": "mm" })
    };
    json!({ "clusterName": "c", "bootstrap": { "dataSecretName": "d" }, "infrastructureRef": reference })
}

/// kube's description of the kind.
pub fn resource((group, version, kind, plural): Kind) -> ApiResource {
    let kind = GroupVersionKind::gvk(group, version, kind);
    ApiResource::from_gvk_with_plural(&kind, plural)
}

/// The objects of this kind in one namespace.
pub fn objects(client: &Client, namespace: &str, kind: Kind) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource(kind))
}

pub async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap()
}

pub async fn make_namespace(client: &Client, name: &str) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    create(&namespaces, json!({ "metadata": { "name": name } })).await;
}

/// Creates these definitions, except existing ones.
pub async fn install(client: &Client, definitions: impl IntoIterator<Item = Value>) {
    let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions {
        let definition = serde_json::from_value(definition).unwrap();
        // Another case on this server may have installed it.
        let _: kube::Result<_> = kinds.create(&PostParams::default(), &definition).await;
    }
}

/// Waits until the kind of these objects is served.
pub async fn until_served<K>(api: &Api<K>)
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    until_listed(api, Result::is_ok).await;
}

/// Deletes the kind with this name, and with it all its objects.
pub async fn take_out(client: &Client, definition: &str) {
    let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
    // It may not exist.
    let _: kube::Result<_> = kinds.delete(definition, &DeleteParams::default()).await;
}

/// Waits until the server no longer serves the kind of these objects.
pub async fn until_unknown<K>(api: &Api<K>)
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let is_unknown = |answer: &kube::Result<ObjectList<K>>| matches!(answer, Err(kube::Error::Api(status)) if status.code == 404);
    until_listed(api, is_unknown).await;
}

async fn until_listed<K>(api: &Api<K>, is_so: impl Fn(&kube::Result<ObjectList<K>>) -> bool)
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = api.list(&ListParams::default()).await;
        if is_so(&answer) {
            return;
        }
        assert!(Instant::now() < deadline, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Sends a JSON merge patch.
pub async fn change<K>(api: &Api<K>, name: &str, body: Value) -> K
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let (params, body) = (PatchParams::default(), Patch::Merge(body));
    api.patch(name, &params, &body).await.unwrap()
}

/// The same for the subresource `status`.
pub async fn change_status<K>(api: &Api<K>, name: &str, status: Value) -> K
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let params = PatchParams::default();
    let body = Patch::Merge(json!({ "status": status }));
    api.patch_status(name, &params, &body).await.unwrap()
}
