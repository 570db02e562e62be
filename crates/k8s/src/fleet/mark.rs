//! A person asks for a remediation: the mark on a Machine or a Node. Source: specification §4.1.

use dogwatch_api::annotation::EXTERNAL_REMEDIATION;
use dogwatch_core::reboot::NodeSeen;
use dogwatch_core::remedy::Machine;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DynamicObject, Patch};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::FleetClient;
use super::request::MANAGER;
use crate::error::{Error, ask};
use crate::manager::patched_by;
use crate::remedy::machine_resource;

impl FleetClient {
    /// Marks this very Node. Whether it was not marked before.
    pub async fn mark_node_for_remediation(&self, node: &NodeSeen) -> Result<bool, Error> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let name = node.name.as_str();
        let there = ask(nodes.get(name)).await?;
        if there.annotations().contains_key(EXTERNAL_REMEDIATION) {
            return Ok(false);
        }
        let body = Patch::Merge(mark(&node.uid));
        ask(nodes.patch(name, &patched_by(MANAGER), &body)).await?;
        Ok(true)
    }

    /// Marks this very Machine. Whether it was not marked before.
    pub async fn mark_machine_for_remediation(&self, machine: &Machine) -> Result<bool, Error> {
        let resource = machine_resource(&self.client, machine.name.api).await?;
        let object = &machine.name.object;
        let machines: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &object.namespace, &resource);
        let there = ask(machines.get(&object.name)).await?;
        if there.annotations().contains_key(EXTERNAL_REMEDIATION) {
            return Ok(false);
        }
        let body = Patch::Merge(mark(&machine.uid));
        ask(machines.patch(&object.name, &patched_by(MANAGER), &body)).await?;
        Ok(true)
    }
}

/// On this object, and on no other of its name.
fn mark(uid: &str) -> Value {
    json!({ "metadata": { "uid": uid, "annotations": { EXTERNAL_REMEDIATION: "" } } })
}
