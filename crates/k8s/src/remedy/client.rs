//! The hand: what every call shares.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dogwatch_api::CONTROLLER;
use dogwatch_core::remedy::{MachineApi, ObjectName};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ApiResource, DynamicObject, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::kind::{Kind, POWER_REMEDIATION};
use super::write::{Right, WriteError};
use crate::error::{Error, Kind as Meaning, ask};
use crate::host::HostObject;
use crate::manager::patched_by;

/// The remediator's hand. Clones are the same.
#[derive(Clone)]
pub struct RemedyClient {
    pub(super) client: Client,
    /// Dogwatch's own.
    pub(super) namespace: String,
    /// Which version of Machines is served, as it was found.
    versions: Arc<Mutex<BTreeMap<MachineApi, ApiResource>>>,
}

impl RemedyClient {
    /// For the cluster behind `client`, whose Dogwatch lives in `namespace`.
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self {
            client,
            namespace: namespace.into(),
            versions: Arc::default(),
        }
    }

    pub(super) fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub(super) fn hosts(&self, namespace: &str) -> Api<HostObject> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(super) fn requests(&self, namespace: &str) -> Api<DynamicObject> {
        let resource = POWER_REMEDIATION.newest();
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    /// The Machines of a namespace, in the version that is served.
    pub(super) async fn machines(
        &self,
        api: MachineApi,
        namespace: &str,
    ) -> Result<(Api<DynamicObject>, ApiResource), Error> {
        let resource = self.machine_version(api).await?;
        let machines = Api::namespaced_with(self.client.clone(), namespace, &resource);
        Ok((machines, resource))
    }

    /// A Machine, read afresh; `None`: there is none of that name.
    pub(super) async fn machine(
        &self,
        api: MachineApi,
        name: &ObjectName,
    ) -> Result<Option<DynamicObject>, Error> {
        let (machines, _) = self.machines(api, &name.namespace).await?;
        match ask(machines.get(&name.name)).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.kind() == Meaning::NotFound => {
                // The object is gone, or the version: the next one finds out.
                self.forget_version(api);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn machine_version(&self, api: MachineApi) -> Result<ApiResource, Error> {
        const UNBROKEN: &str = "nothing panics while it holds this";
        let known = self.versions.lock().expect(UNBROKEN).get(&api).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let served = Kind::of(api).served(&self.client).await?;
        let Some(served) = served else {
            // Not to be kept: it may come.
            return Ok(Kind::of(api).newest());
        };
        let mut versions = self.versions.lock().expect(UNBROKEN);
        versions.insert(api, served.clone());
        Ok(served)
    }

    pub(super) fn forget_version(&self, api: MachineApi) {
        let mut versions = self
            .versions
            .lock()
            .expect("nothing panics while it holds this");
        versions.remove(&api);
    }
}

pub(super) fn params() -> PatchParams {
    patched_by(CONTROLLER)
}

/// What a patch of an object as it was seen relies on.
pub(super) fn precondition(uid: &str, resource_version: &str) -> Value {
    json!({ "uid": uid, "resourceVersion": resource_version })
}

/// Annotations to be set; `None`: to be removed.
pub(super) type Annotations = Vec<(String, Option<String>)>;

/// The patch that makes annotations so, on what was seen.
pub(super) fn annotating(uid: &str, resource_version: &str, wanted: &Annotations) -> Value {
    let annotations: Map<String, Value> = wanted
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let mut metadata = precondition(uid, resource_version);
    metadata["annotations"] = Value::Object(annotations);
    json!({ "metadata": metadata })
}

/// Whether they stand on what was answered.
pub(super) fn stand<K: kube::Resource>(
    answer: &K,
    about: &str,
    wanted: &Annotations,
) -> Result<(), WriteError> {
    let there = answer.annotations();
    let lacks = wanted
        .iter()
        .find(|(name, value)| there.get(name) != value.as_ref());
    match lacks {
        None => Ok(()),
        Some((name, _)) => Err(WriteError::Dropped(format!("annotation {name} of {about}"))),
    }
}

/// Sends a write.
pub(super) async fn send<T>(
    right: Right,
    about: &str,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, WriteError> {
    ask(call).await.map_err(|error| right.refused(about, error))
}
