//! Machines of each form, and Metal3Machines, as decisions see them.

use dogwatch_api::CONTROLLER;
use dogwatch_api::annotation::{BARE_METAL_HOST, EXTERNAL_REMEDIATION};
use dogwatch_api::condition::{OWNER_REMEDIATED, REMEDIATION};
use dogwatch_core::condition::Condition;
use dogwatch_core::remedy::{InfraMachine, InfraRef, Machine, MachineApi, MachineName, ObjectName};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::condition;
use crate::field::{last_status_write, text};

/// On a Machine of Cluster API that is one of the control plane's; its value says nothing.
const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
/// On a Machine of OpenShift: what it is for.
const ROLE: &str = "machine.openshift.io/cluster-api-machine-role";
/// What the control plane's are called.
const CONTROL_PLANE_ROLES: [&str; 2] = ["master", "control-plane"];
/// On a Machine, by Cluster API: leave it alone.
const PAUSED: &str = "cluster.x-k8s.io/paused";

/// What is kept of a Machine, whichever form it has. A link that is not understood is left out: without
/// a host nothing is done, and that is said.
pub(super) fn machine(object: &DynamicObject, api: MachineApi) -> Machine {
    let name = object_name(object);
    let annotation = |key: &str| object.annotations().get(key).cloned();
    let data = &object.data;
    let node = text(&data["status"]["nodeRef"]["name"]);
    Machine {
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        deleting: object.metadata.deletion_timestamp.is_some(),
        need: annotation(EXTERNAL_REMEDIATION),
        host: annotation(BARE_METAL_HOST),
        infra: infra(&data["spec"]["infrastructureRef"], &name.namespace),
        provider_id: provider_id(object),
        node: (!node.is_empty()).then_some(node),
        control_plane: is_control_plane(object),
        paused: annotation(PAUSED).is_some(),
        conditions: conditions(object),
        name: MachineName { api, object: name },
    }
}

/// What is kept of a Metal3Machine.
pub(super) fn infra_machine(object: &DynamicObject) -> InfraMachine {
    InfraMachine {
        name: object_name(object),
        uid: object.uid().unwrap_or_default(),
        host: object.annotations().get(BARE_METAL_HOST).cloned(),
        provider_id: provider_id(object),
    }
}

fn provider_id(object: &DynamicObject) -> Option<String> {
    let id = text(&object.data["spec"]["providerID"]);
    (!id.is_empty()).then_some(id)
}

pub(super) fn object_name(object: &DynamicObject) -> ObjectName {
    ObjectName::new(object.namespace().unwrap_or_default(), object.name_any())
}

/// v1beta2 has group, kind and name, and means the Machine's namespace; v1beta1 has an object reference.
fn infra(reference: &Value, namespace: &str) -> Option<InfraRef> {
    let name = text(&reference["name"]);
    if name.is_empty() {
        return None;
    }
    let group = match (reference["apiGroup"].as_str(), &reference["apiVersion"]) {
        (Some(group), _) => group.to_owned(),
        (None, version) => group_of(&text(version)),
    };
    let there = text(&reference["namespace"]);
    let there = if there.is_empty() { namespace } else { &there };
    Some(InfraRef {
        group,
        kind: text(&reference["kind"]),
        object: ObjectName::new(there, name),
    })
}

fn group_of(api_version: &str) -> String {
    let parts = api_version.split_once('/');
    parts.map_or_else(String::new, |(group, _)| group.to_owned())
}

fn is_control_plane(object: &DynamicObject) -> bool {
    let labels = object.labels();
    let role = labels.get(ROLE).map(String::as_str);
    labels.contains_key(CONTROL_PLANE) || role.is_some_and(|it| CONTROL_PLANE_ROLES.contains(&it))
}

/// Ours, from `status.conditions`: all forms have type, status, reason and message there.
fn conditions(object: &DynamicObject) -> Vec<Condition> {
    let all = object.data["status"]["conditions"].as_array();
    let ours = all.into_iter().flatten().filter(|it| {
        let kind = it["type"].as_str();
        kind.is_some_and(|kind| [REMEDIATION, OWNER_REMEDIATED].contains(&kind))
    });
    let last_write = last_status_write(&object.metadata, CONTROLLER);
    ours.map(|it| condition::read(it, last_write)).collect()
}
