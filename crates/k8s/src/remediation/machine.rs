//! Converts Machines of each API and Metal3Machines.

use dogwatch_api::CONTROLLER;
use dogwatch_api::annotation::{BARE_METAL_HOST, EXTERNAL_REMEDIATION};
use dogwatch_api::condition::{OWNER_REMEDIATED, REMEDIATION};
use dogwatch_core::condition::CurrentCondition;
use dogwatch_core::remediation::{
    InfraMachine, InfraRef, MachineApi, MachineName, ObjectName, ObservedMachine,
};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::condition;
use crate::json_field::{last_status_write, parse_text};

/// Label of a control-plane Machine of Cluster API; its value has no meaning.
const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Label of OpenShift's Machines: the machine's role.
const ROLE_LABEL: &str = "machine.openshift.io/cluster-api-machine-role";
/// The roles of control-plane machines.
const CONTROL_PLANE_ROLES: [&str; 2] = ["master", "control-plane"];
/// Annotation of Cluster API: controllers leave the object alone.
pub(super) const PAUSED_ANNOTATION: &str = "cluster.x-k8s.io/paused";

/// Converts a Machine of either API. An unreadable link is left out: without a host, nothing is
/// done, and the status says so.
pub(super) fn parse_machine(object: &DynamicObject, api: MachineApi) -> ObservedMachine {
    let name = object_name(object);
    let annotation = |key: &str| object.annotations().get(key).cloned();
    let data = &object.data;
    let node = parse_text(&data["status"]["nodeRef"]["name"]);
    ObservedMachine {
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        deleting: object.metadata.deletion_timestamp.is_some(),
        need: annotation(EXTERNAL_REMEDIATION),
        host: annotation(BARE_METAL_HOST),
        infra: parse_infra_ref(&data["spec"]["infrastructureRef"], &name.namespace),
        provider_id: provider_id(object),
        cluster: cluster_name(object, api),
        node: (!node.is_empty()).then_some(node),
        control_plane: is_control_plane(object),
        paused: annotation(PAUSED_ANNOTATION).is_some(),
        cluster_paused: false,
        conditions: own_conditions(object),
        name: MachineName { api, object: name },
    }
}

pub(super) fn parse_infra_machine(object: &DynamicObject) -> InfraMachine {
    InfraMachine {
        name: object_name(object),
        uid: object.uid().unwrap_or_default(),
        host: object.annotations().get(BARE_METAL_HOST).cloned(),
        provider_id: provider_id(object),
    }
}

/// A Cluster of Cluster API, and whether all that belongs to it is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObservedCluster {
    pub(super) name: ObjectName,
    pub(super) paused: bool,
}

pub(super) fn parse_cluster(object: &DynamicObject) -> ObservedCluster {
    ObservedCluster {
        name: object_name(object),
        paused: object.data["spec"]["paused"] == Value::Bool(true),
    }
}

/// The Cluster of a Machine of Cluster API.
fn cluster_name(object: &DynamicObject, api: MachineApi) -> Option<String> {
    let name = parse_text(&object.data["spec"]["clusterName"]);
    match api {
        MachineApi::OpenShift => None,
        MachineApi::ClusterApi => (!name.is_empty()).then_some(name),
    }
}

fn provider_id(object: &DynamicObject) -> Option<String> {
    let id = parse_text(&object.data["spec"]["providerID"]);
    (!id.is_empty()).then_some(id)
}

pub(super) fn object_name(object: &DynamicObject) -> ObjectName {
    ObjectName::new(object.namespace().unwrap_or_default(), object.name_any())
}

/// v1beta2 has group, kind and name, and implies the Machine's namespace; v1beta1 has an object
/// reference.
fn parse_infra_ref(reference: &Value, namespace: &str) -> Option<InfraRef> {
    let name = parse_text(&reference["name"]);
    if name.is_empty() {
        return None;
    }
    let group = match (reference["apiGroup"].as_str(), &reference["apiVersion"]) {
        (Some(group), _) => group.to_owned(),
        (None, version) => group_of_api_version(&parse_text(version)),
    };
    let there = parse_text(&reference["namespace"]);
    let there = if there.is_empty() { namespace } else { &there };
    Some(InfraRef {
        group,
        kind: parse_text(&reference["kind"]),
        object: ObjectName::new(there, name),
    })
}

fn group_of_api_version(api_version: &str) -> String {
    let parts = api_version.split_once('/');
    parts.map_or_else(String::new, |(group, _)| group.to_owned())
}

fn is_control_plane(object: &DynamicObject) -> bool {
    let labels = object.labels();
    let role = labels.get(ROLE_LABEL).map(String::as_str);
    labels.contains_key(CONTROL_PLANE_LABEL)
        || role.is_some_and(|it| CONTROL_PLANE_ROLES.contains(&it))
}

/// Our conditions from `status.conditions`: in every API version they have type, status, reason and
/// message there.
fn own_conditions(object: &DynamicObject) -> Vec<CurrentCondition> {
    let all = object.data["status"]["conditions"].as_array();
    let ours = all.into_iter().flatten().filter(|it| {
        let kind = it["type"].as_str();
        kind.is_some_and(|kind| [REMEDIATION, OWNER_REMEDIATED].contains(&kind))
    });
    let last_write = last_status_write(&object.metadata, CONTROLLER);
    ours.map(|it| condition::parse_condition(it, last_write))
        .collect()
}
