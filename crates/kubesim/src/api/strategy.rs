//! Defaults and write rules of each kind: what is filled in before an object is stored, and which
//! part a write may change.
//!
//! Defaults are those that Dogwatch, its demo or kubectl can see; the real server fills in more.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::kinds::{ServedResource, Subresource};
use super::value::{list_at, meta_mut, meta_text, number_at, object_mut, text_at, value_at};

pub(crate) fn prepare_create(resource: &ServedResource, object: &mut Value, now: &str) {
    // A new Node keeps its status (the kubelet sends it when it registers); other objects start
    // without.
    let keeps_status =
        resource.is_built_in_kind("", "nodes") || !resource.has_subresource(Subresource::Status);
    if !keeps_status {
        object_mut(object).remove("status");
    }
    if resource.custom.is_some() {
        return;
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => {
            object["status"] = json!({ "phase": "Pending", "qosClass": "BestEffort" });
        }
        ("", "namespaces") => default_namespace(object),
        ("storage.k8s.io", "volumeattachments") => object["status"] = json!({ "attached": false }),
        ("", "persistentvolumes" | "persistentvolumeclaims") => {
            object["status"] = json!({ "phase": "Pending" });
        }
        ("apps", _) => default_workload(resource, object),
        ("policy", _) => default_pod_disruption_budget(object),
        ("apiextensions.k8s.io", _) => establish_definition(object, now),
        _ => {}
    }
    ensure_structs(resource, object);
}

/// Go writes out the structs of built-in kinds even when they are empty.
pub(crate) fn ensure_structs(resource: &ServedResource, object: &mut Value) {
    if resource.is_built_in_kind("", "events")
        || resource.is_built_in_kind("events.k8s.io", "events")
    {
        default_event(object);
        return;
    }
    for field in ["data", "binaryData", "stringData"] {
        if object
            .get(field)
            .and_then(Value::as_object)
            .is_some_and(Map::is_empty)
        {
            object_mut(object).remove(field);
        }
    }
    let flat = matches!(
        resource.plural.as_str(),
        "configmaps" | "secrets" | "serviceaccounts"
    );
    if resource.custom.is_some() || flat {
        return;
    }
    ensure_object_field(object, "spec");
    if resource.is_built_in_kind("", "pods") {
        default_pod(&mut object["spec"]);
    }
    if resource.has_subresource(Subresource::Status) {
        ensure_object_field(object, "status");
        fill_conditions(resource, &mut object["status"]);
    }
    if resource.is_built_in_kind("", "nodes") {
        default_node_status(&mut object["status"]);
        if object["spec"]["unschedulable"] == false {
            object_mut(&mut object["spec"]).remove("unschedulable");
        }
    }
    let capacity = object
        .get("status")
        .and_then(|status| status.get("capacity"))
        .cloned();
    if let Some(capacity) = capacity.filter(|_| resource.is_built_in_kind("", "nodes")) {
        set_default(&mut object["status"], "allocatable", capacity);
    }
}

/// `nodeInfo` and the kubelet's port are written out even before a kubelet has reported.
fn default_node_status(status: &mut Value) {
    const NODE_INFO_FIELDS: [&str; 10] = [
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ];
    for field in NODE_INFO_FIELDS {
        set_default(&mut status["nodeInfo"], field, "".into());
    }
    let port = &mut status["daemonEndpoints"]["kubeletEndpoint"];
    set_default(port, "Port", 0.into());
}

fn default_event(object: &mut Value) {
    for field in ["involvedObject", "source"] {
        ensure_object_field(object, field);
    }
    for field in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        set_default(object, field, Value::Null);
    }
    for field in ["reportingComponent", "reportingInstance"] {
        set_default(object, field, "".into());
    }
}

/// Times of conditions are written out even when they were never set.
fn fill_conditions(resource: &ServedResource, status: &mut Value) {
    let times: &[&str] = match resource.plural.as_str() {
        "nodes" => &["lastHeartbeatTime", "lastTransitionTime"],
        "pods" => &["lastProbeTime", "lastTransitionTime"],
        _ => &["lastTransitionTime"],
    };
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        for time in times {
            set_default(condition, time, Value::Null);
        }
    }
}

fn ensure_object_field(object: &mut Value, field: &str) {
    object_mut(&mut object[field]);
}

fn set_default(map: &mut Value, field: &str, value: Value) {
    object_mut(map).entry(field.to_owned()).or_insert(value);
}

/// Sets the defaults of a pod's spec.
fn default_pod(spec: &mut Value) {
    default_pod_spec(spec);
    set_default(spec, "enableServiceLinks", true.into());
    set_default(spec, "preemptionPolicy", "PreemptLowerPriority".into());
    set_default(spec, "priority", 0.into());
}

fn default_pod_spec(spec: &mut Value) {
    set_default(spec, "restartPolicy", "Always".into());
    set_default(spec, "dnsPolicy", "ClusterFirst".into());
    set_default(spec, "schedulerName", "default-scheduler".into());
    set_default(spec, "terminationGracePeriodSeconds", 30.into());
    set_default(spec, "securityContext", json!({}));
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        set_default(container, "resources", json!({}));
        set_default(
            container,
            "terminationMessagePath",
            "/dev/termination-log".into(),
        );
        set_default(container, "terminationMessagePolicy", "File".into());
        let image = text_at(container, &["image"]);
        let latest = image.ends_with(":latest")
            || !image
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .contains([':', '@']);
        let policy = if latest { "Always" } else { "IfNotPresent" };
        set_default(container, "imagePullPolicy", policy.into());
    }
}

fn default_namespace(object: &mut Value) {
    let name = meta_text(object, "name").to_owned();
    let labels = meta_mut(object)
        .entry("labels")
        .or_insert_with(|| json!({}));
    labels["kubernetes.io/metadata.name"] = name.into();
    object["spec"] = json!({ "finalizers": ["kubernetes"] });
    object["status"] = json!({ "phase": "Active" });
}

/// The generation of a DaemonSet's template, as apps/v1 stores it.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn default_workload(resource: &ServedResource, object: &mut Value) {
    let spec = &mut object["spec"];
    if resource.plural != "daemonsets" {
        set_default(spec, "replicas", 1.into());
    }
    default_pod_spec(&mut spec["template"]["spec"]);
    object_mut(&mut spec["template"]["metadata"]);
    match resource.plural.as_str() {
        "daemonsets" => {
            set_default(spec, "revisionHistoryLimit", 10.into());
            object["metadata"]["annotations"][TEMPLATE_GENERATION] = "1".into();
            let spec = &mut object["spec"];
            let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1, "maxSurge": 0 } });
            set_default(spec, "updateStrategy", rolling);
            let numbers = [
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
            ];
            object["status"] = zero_fields(&numbers);
        }
        "replicasets" => object["status"] = zero_fields(&["replicas"]),
        "deployments" => {
            set_default(spec, "revisionHistoryLimit", 10.into());
            set_default(spec, "progressDeadlineSeconds", 600.into());
            let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "25%", "maxSurge": "25%" } });
            set_default(spec, "strategy", rolling);
            object["status"] = json!({});
        }
        _ => {
            set_default(spec, "revisionHistoryLimit", 10.into());
            set_default(spec, "podManagementPolicy", "OrderedReady".into());
            set_default(
                spec,
                "updateStrategy",
                json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } }),
            );
            set_default(
                spec,
                "persistentVolumeClaimRetentionPolicy",
                json!({ "whenDeleted": "Retain", "whenScaled": "Retain" }),
            );
            object["status"] = zero_fields(&["replicas", "availableReplicas"]);
        }
    }
}

fn default_pod_disruption_budget(object: &mut Value) {
    ensure_object_field(object, "spec");
    object["status"] = zero_fields(&[
        "disruptionsAllowed",
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
    ]);
}

fn zero_fields(names: &[&str]) -> Value {
    let fields: Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), 0.into()))
        .collect();
    Value::Object(fields)
}

/// A new definition is established at once.
fn establish_definition(object: &mut Value, now: &str) {
    let names = &mut object["spec"]["names"];
    let kind = text_at(names, &["kind"]).to_owned();
    set_default(names, "singular", kind.to_lowercase().into());
    set_default(names, "listKind", format!("{kind}List").into());
    set_default(
        &mut object["spec"],
        "conversion",
        json!({ "strategy": "None" }),
    );
    let stored = list_at(object, &["spec", "versions"])
        .iter()
        .filter(|version| version["storage"] == true);
    let stored: Vec<Value> = stored.map(|version| version["name"].clone()).collect();
    let condition = |kind: &str, reason: &str, message: &str| json!({ "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now });
    object["status"] = json!({
        "acceptedNames": object["spec"]["names"],
        "storedVersions": stored,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    });
}

/// Prepares an update: restores the parts that this path may not change and counts the generation.
pub(crate) fn prepare_update(
    resource: &ServedResource,
    subresource: Option<Subresource>,
    live: &Value,
    object: &mut Value,
) {
    match subresource {
        Some(_) => keep_all_but_status(resource, live, object),
        None if resource.has_subresource(Subresource::Status) => {
            keep_live_field(live, object, "status");
        }
        None => {}
    }
    ensure_structs(resource, object);
    if subresource.is_none() && desired_state_differs(resource, live, object) {
        let generation = number_at(live, &["metadata", "generation"]) + 1;
        meta_mut(object).insert("generation".into(), generation.into());
    }
    if resource.plural == "daemonsets" && live["spec"]["template"] != object["spec"]["template"] {
        let counted = live["metadata"]["annotations"][TEMPLATE_GENERATION]
            .as_str()
            .and_then(|count| count.parse::<i64>().ok());
        object["metadata"]["annotations"][TEMPLATE_GENERATION] =
            (counted.unwrap_or(0) + 1).to_string().into();
    }
}

fn keep_live_field(live: &Value, object: &mut Value, field: &str) {
    match live.get(field) {
        Some(value) => drop(object_mut(object).insert(field.into(), value.clone())),
        None => drop(object_mut(object).remove(field)),
    }
}

fn keep_all_but_status(resource: &ServedResource, live: &Value, object: &mut Value) {
    // Custom resources and a few others also keep their metadata; the older kinds accept changes of
    // it.
    let strict = resource.custom.is_some()
        || matches!(
            resource.group.as_str(),
            "apiextensions.k8s.io" | "storage.k8s.io"
        );
    let names = |value: &Value| {
        value
            .as_object()
            .into_iter()
            .flat_map(|map| map.keys().cloned())
            .collect::<Vec<_>>()
    };
    let all: BTreeSet<String> = names(live).into_iter().chain(names(object)).collect();
    for field in all {
        match field.as_str() {
            "status" => {}
            "metadata" if !strict => {}
            "metadata" => {
                let managed = object["metadata"].get("managedFields").cloned();
                keep_live_field(live, object, "metadata");
                if let Some(managed) = managed {
                    meta_mut(object).insert("managedFields".into(), managed);
                }
            }
            other => keep_live_field(live, object, other),
        }
    }
    if resource.is_built_in_kind("", "pods") {
        let owners = value_at(live, &["metadata", "ownerReferences"]).cloned();
        match owners {
            Some(owners) => drop(meta_mut(object).insert("ownerReferences".into(), owners)),
            None => drop(meta_mut(object).remove("ownerReferences")),
        }
    }
}

/// Whether the desired state changed.
fn desired_state_differs(resource: &ServedResource, live: &Value, object: &Value) -> bool {
    if !resource.generation {
        return false;
    }
    if resource.custom.is_none() {
        return live.get("spec") != object.get("spec");
    }
    let wanted = |value: &Value| {
        let mut map = value.as_object().cloned().unwrap_or_default();
        map.remove("metadata");
        if resource.has_subresource(Subresource::Status) {
            map.remove("status");
        }
        map
    };
    wanted(live) != wanted(object)
}
