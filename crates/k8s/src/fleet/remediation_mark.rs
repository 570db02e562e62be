//! Marks a Machine or a Node for remediation. Source: specification §4.1.

use dogwatch_api::annotation::EXTERNAL_REMEDIATION;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::ObservedMachine;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DynamicObject, Patch};
use serde_json::{Value, json};

use super::FleetClient;
use super::request::FIELD_MANAGER;
use crate::error::{Error, with_timeout};
use crate::field_manager::patch_params_for;
use crate::remediation::find_machine_resource;

impl FleetClient {
    /// Marks the Node.
    ///
    /// # Errors
    /// A conflict, if the Node has changed since it was read.
    pub async fn mark_node_for_remediation(&self, node: &ObservedNode) -> Result<(), Error> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let (name, params) = (node.name.as_str(), patch_params_for(FIELD_MANAGER));
        let body = Patch::Merge(mark_body(&node.uid, &node.resource_version));
        with_timeout(nodes.patch_metadata(name, &params, &body)).await?;
        Ok(())
    }

    /// Marks the Machine.
    ///
    /// # Errors
    /// A conflict, if the Machine has changed since it was read.
    pub async fn mark_machine_for_remediation(
        &self,
        machine: &ObservedMachine,
    ) -> Result<(), Error> {
        let resource = find_machine_resource(&self.client, machine.name.api).await?;
        let object = &machine.name.object;
        let machines: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &object.namespace, &resource);
        let params = patch_params_for(FIELD_MANAGER);
        let body = Patch::Merge(mark_body(&machine.uid, &machine.resource_version));
        with_timeout(machines.patch_metadata(&object.name, &params, &body)).await?;
        Ok(())
    }
}

/// Only the object that the person was asked about is marked, as it was then.
fn mark_body(uid: &str, resource_version: &str) -> Value {
    json!({ "metadata": {
        "uid": uid,
        "resourceVersion": resource_version,
        "annotations": { EXTERNAL_REMEDIATION: "" },
    } })
}
