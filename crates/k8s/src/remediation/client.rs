//! The remediator's API client, and what its calls share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dogwatch_api::CONTROLLER;
use dogwatch_core::remediation::{MachineApi, ObjectName};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ApiResource, DynamicObject, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::kind::{OptionalKind, POWER_REMEDIATION};
use super::write::{RemediationWriteError, RequiredRight};
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::field_manager::patch_params_for;
use crate::host::HostObject;

/// Clones share the same state.
#[derive(Clone)]
pub struct RemediationClient {
    pub(super) client: Client,
    /// The cluster of the Nodes.
    pub(super) node_client: Client,
    /// Dogwatch's own namespace.
    pub(super) namespace: String,
    /// The version of each Machine API that the cluster serves.
    versions: Arc<Mutex<BTreeMap<MachineApi, ApiResource>>>,
}

impl RemediationClient {
    /// `namespace`: where Dogwatch runs.
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self {
            node_client: client.clone(),
            client,
            namespace: namespace.into(),
            versions: Arc::default(),
        }
    }

    /// The same client for Nodes of another cluster. Only Nodes, their Leases, pods and volume
    /// attachments are read and written there.
    #[must_use]
    pub fn with_node_client(&self, nodes: Client) -> Self {
        Self {
            node_client: nodes,
            ..self.clone()
        }
    }

    pub(super) fn node_api(&self) -> Api<Node> {
        Api::all(self.node_client.clone())
    }

    pub(super) fn host_api(&self, namespace: &str) -> Api<HostObject> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(super) fn request_api(&self, namespace: &str) -> Api<DynamicObject> {
        let resource = POWER_REMEDIATION.newest_version();
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    /// The Machines of a namespace, in the served version.
    pub(super) async fn machine_api(
        &self,
        api: MachineApi,
        namespace: &str,
    ) -> Result<(Api<DynamicObject>, ApiResource), Error> {
        let resource = self.find_machine_version(api).await?;
        let machines = Api::namespaced_with(self.client.clone(), namespace, &resource);
        Ok((machines, resource))
    }

    /// `None`: no Machine of this name.
    pub(super) async fn read_machine(
        &self,
        api: MachineApi,
        name: &ObjectName,
    ) -> Result<Option<DynamicObject>, Error> {
        let (machines, _) = self.machine_api(api, &name.namespace).await?;
        match with_timeout(machines.get(&name.name)).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.kind() == ApiErrorKind::NotFound => {
                // Either the object is gone or its version: the next call discovers the version
                // again.
                self.forget_version(api);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn find_machine_version(&self, api: MachineApi) -> Result<ApiResource, Error> {
        const LOCK_NEVER_POISONED: &str = "nothing panics while it holds this";
        let known = self
            .versions
            .lock()
            .expect(LOCK_NEVER_POISONED)
            .get(&api)
            .cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let served = OptionalKind::of_machine_api(api)
            .find_served_version(&self.client)
            .await?;
        let Some(served) = served else {
            // Not cached: the kind may be installed later.
            return Ok(OptionalKind::of_machine_api(api).newest_version());
        };
        let mut versions = self.versions.lock().expect(LOCK_NEVER_POISONED);
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

pub(super) fn patch_params() -> PatchParams {
    patch_params_for(CONTROLLER)
}

/// The preconditions of a patch: the object is the one that was read, unchanged.
pub(super) fn patch_precondition(uid: &str, resource_version: &str) -> Value {
    json!({ "uid": uid, "resourceVersion": resource_version })
}

/// Annotations to set; `None`: to remove.
pub(super) type AnnotationChanges = Vec<(String, Option<String>)>;

/// The patch that sets and removes annotations, with preconditions.
pub(super) fn annotation_patch(
    uid: &str,
    resource_version: &str,
    wanted: &AnnotationChanges,
) -> Value {
    let annotations: Map<String, Value> = wanted
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let mut metadata = patch_precondition(uid, resource_version);
    metadata["annotations"] = Value::Object(annotations);
    json!({ "metadata": metadata })
}

/// Whether the answer contains the written annotations.
pub(super) fn check_annotations_written<K: kube::Resource>(
    answer: &K,
    about: &str,
    wanted: &AnnotationChanges,
) -> Result<(), RemediationWriteError> {
    let there = answer.annotations();
    let lacks = wanted
        .iter()
        .find(|(name, value)| there.get(name) != value.as_ref());
    match lacks {
        None => Ok(()),
        Some((name, _)) => Err(RemediationWriteError::Dropped(format!(
            "annotation {name} of {about}"
        ))),
    }
}

pub(super) async fn send_write<T>(
    right: RequiredRight,
    about: &str,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, RemediationWriteError> {
    with_timeout(call)
        .await
        .map_err(|error| right.classify_error(about, error))
}
