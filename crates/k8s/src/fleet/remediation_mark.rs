//! Marks a Machine or a Node for remediation. Source: specification §4.1.

use dogwatch_api::annotation::EXTERNAL_REMEDIATION;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::ObservedMachine;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DynamicObject, Patch};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::FleetClient;
use super::request::FIELD_MANAGER;
use crate::error::{Error, with_timeout};
use crate::field_manager::patch_params_for;
use crate::remediation::find_machine_resource;

impl FleetClient {
    /// Marks the Node of this UID. Returns false if it was marked already.
    pub async fn mark_node_for_remediation(&self, node: &ObservedNode) -> Result<bool, Error> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let name = node.name.as_str();
        let there = with_timeout(nodes.get(name)).await?;
        if there.annotations().contains_key(EXTERNAL_REMEDIATION) {
            return Ok(false);
        }
        let body = Patch::Merge(mark_body(&node.uid));
        with_timeout(nodes.patch(name, &patch_params_for(FIELD_MANAGER), &body)).await?;
        Ok(true)
    }

    /// Marks the Machine of this UID. Returns false if it was marked already.
    pub async fn mark_machine_for_remediation(
        &self,
        machine: &ObservedMachine,
    ) -> Result<bool, Error> {
        let resource = find_machine_resource(&self.client, machine.name.api).await?;
        let object = &machine.name.object;
        let machines: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &object.namespace, &resource);
        let there = with_timeout(machines.get(&object.name)).await?;
        if there.annotations().contains_key(EXTERNAL_REMEDIATION) {
            return Ok(false);
        }
        let body = Patch::Merge(mark_body(&machine.uid));
        with_timeout(machines.patch(&object.name, &patch_params_for(FIELD_MANAGER), &body)).await?;
        Ok(true)
    }
}

/// The UID is a precondition: another object of the same name is not marked.
fn mark_body(uid: &str) -> Value {
    json!({ "metadata": { "uid": uid, "annotations": { EXTERNAL_REMEDIATION: "" } } })
}
