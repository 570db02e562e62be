//! What each kind does to an object before it is stored: defaults, and which part a write may touch.
//!
//! Defaults are those that Dogwatch, its demo or kubectl can see; the real server fills in more.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::kinds::{Resource, Subresource};
use super::value::{at, items, meta, meta_mut, number, object_mut, text};

/// Prepares a new object.
pub(crate) fn prepare_create(resource: &Resource, object: &mut Value, now: &str) {
    // A Node brings its status along (a kubelet registers itself with it); others start without.
    let keeps_status = resource.is("", "nodes") || !resource.has(Subresource::Status);
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
        ("", "namespaces") => namespace(object),
        ("storage.k8s.io", "volumeattachments") => object["status"] = json!({ "attached": false }),
        ("", "persistentvolumes" | "persistentvolumeclaims") => {
            object["status"] = json!({ "phase": "Pending" });
        }
        ("apps", _) => workload(resource, object),
        ("policy", _) => budget(object),
        ("apiextensions.k8s.io", _) => definition(object, now),
        _ => {}
    }
    ensure_structs(resource, object);
}

/// Go writes the structs of built-in kinds out even when nothing is in them.
pub(crate) fn ensure_structs(resource: &Resource, object: &mut Value) {
    if resource.is("", "events") || resource.is("events.k8s.io", "events") {
        event(object);
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
    ensure(object, "spec");
    if resource.is("", "pods") {
        pod(&mut object["spec"]);
    }
    if resource.has(Subresource::Status) {
        ensure(object, "status");
        fill_conditions(resource, &mut object["status"]);
    }
    if resource.is("", "nodes") {
        node_status(&mut object["status"]);
        if object["spec"]["unschedulable"] == false {
            object_mut(&mut object["spec"]).remove("unschedulable");
        }
    }
    let capacity = object
        .get("status")
        .and_then(|status| status.get("capacity"))
        .cloned();
    if let Some(capacity) = capacity.filter(|_| resource.is("", "nodes")) {
        default(&mut object["status"], "allocatable", capacity);
    }
}

/// What a Node says of its system is written out even where no kubelet has spoken yet.
fn node_status(status: &mut Value) {
    const SAID: [&str; 10] = [
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
    for field in SAID {
        default(&mut status["nodeInfo"], field, "".into());
    }
    let port = &mut status["daemonEndpoints"]["kubeletEndpoint"];
    default(port, "Port", 0.into());
}

fn event(object: &mut Value) {
    for field in ["involvedObject", "source"] {
        ensure(object, field);
    }
    for field in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        default(object, field, Value::Null);
    }
    for field in ["reportingComponent", "reportingInstance"] {
        default(object, field, "".into());
    }
}

/// Times of conditions are written out even when they were never set.
fn fill_conditions(resource: &Resource, status: &mut Value) {
    let times: &[&str] = match resource.plural.as_str() {
        "nodes" => &["lastHeartbeatTime", "lastTransitionTime"],
        "pods" => &["lastProbeTime", "lastTransitionTime"],
        _ => &["lastTransitionTime"],
    };
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        for time in times {
            default(condition, time, Value::Null);
        }
    }
}

fn ensure(object: &mut Value, field: &str) {
    object_mut(&mut object[field]);
}

/// Sets a field that is not there.
fn default(map: &mut Value, field: &str, value: Value) {
    object_mut(map).entry(field.to_owned()).or_insert(value);
}

/// What a pod's spec is given whenever it is written without it.
fn pod(spec: &mut Value) {
    pod_spec(spec);
    default(spec, "enableServiceLinks", true.into());
    default(spec, "preemptionPolicy", "PreemptLowerPriority".into());
    default(spec, "priority", 0.into());
}

fn pod_spec(spec: &mut Value) {
    default(spec, "restartPolicy", "Always".into());
    default(spec, "dnsPolicy", "ClusterFirst".into());
    default(spec, "schedulerName", "default-scheduler".into());
    default(spec, "terminationGracePeriodSeconds", 30.into());
    default(spec, "securityContext", json!({}));
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        default(container, "resources", json!({}));
        default(
            container,
            "terminationMessagePath",
            "/dev/termination-log".into(),
        );
        default(container, "terminationMessagePolicy", "File".into());
        let image = text(container, &["image"]);
        let latest = image.ends_with(":latest")
            || !image
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .contains([':', '@']);
        let policy = if latest { "Always" } else { "IfNotPresent" };
        default(container, "imagePullPolicy", policy.into());
    }
}

fn namespace(object: &mut Value) {
    let name = meta(object, "name").to_owned();
    let labels = meta_mut(object)
        .entry("labels")
        .or_insert_with(|| json!({}));
    labels["kubernetes.io/metadata.name"] = name.into();
    object["spec"] = json!({ "finalizers": ["kubernetes"] });
    object["status"] = json!({ "phase": "Active" });
}

/// How often a DaemonSet's template changed, where apps/v1 keeps it.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn workload(resource: &Resource, object: &mut Value) {
    let spec = &mut object["spec"];
    if resource.plural != "daemonsets" {
        default(spec, "replicas", 1.into());
    }
    pod_spec(&mut spec["template"]["spec"]);
    object_mut(&mut spec["template"]["metadata"]);
    match resource.plural.as_str() {
        "daemonsets" => {
            default(spec, "revisionHistoryLimit", 10.into());
            object["metadata"]["annotations"][TEMPLATE_GENERATION] = "1".into();
            let spec = &mut object["spec"];
            let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1, "maxSurge": 0 } });
            default(spec, "updateStrategy", rolling);
            let numbers = [
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
            ];
            object["status"] = zeros(&numbers);
        }
        "replicasets" => object["status"] = zeros(&["replicas"]),
        "deployments" => {
            default(spec, "revisionHistoryLimit", 10.into());
            default(spec, "progressDeadlineSeconds", 600.into());
            let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "25%", "maxSurge": "25%" } });
            default(spec, "strategy", rolling);
            object["status"] = json!({});
        }
        _ => {
            default(spec, "revisionHistoryLimit", 10.into());
            default(spec, "podManagementPolicy", "OrderedReady".into());
            default(
                spec,
                "updateStrategy",
                json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } }),
            );
            default(
                spec,
                "persistentVolumeClaimRetentionPolicy",
                json!({ "whenDeleted": "Retain", "whenScaled": "Retain" }),
            );
            object["status"] = zeros(&["replicas", "availableReplicas"]);
        }
    }
}

fn budget(object: &mut Value) {
    ensure(object, "spec");
    object["status"] = zeros(&[
        "disruptionsAllowed",
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
    ]);
}

fn zeros(names: &[&str]) -> Value {
    let fields: Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), 0.into()))
        .collect();
    Value::Object(fields)
}

/// A definition is established at once.
fn definition(object: &mut Value, now: &str) {
    let names = &mut object["spec"]["names"];
    let kind = text(names, &["kind"]).to_owned();
    default(names, "singular", kind.to_lowercase().into());
    default(names, "listKind", format!("{kind}List").into());
    default(
        &mut object["spec"],
        "conversion",
        json!({ "strategy": "None" }),
    );
    let stored = items(object, &["spec", "versions"])
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

/// Prepares a changed object: the part that this path may not touch stays, and the generation
/// counts.
pub(crate) fn prepare_update(
    resource: &Resource,
    subresource: Option<Subresource>,
    live: &Value,
    object: &mut Value,
) {
    match subresource {
        Some(_) => keep_all_but_status(resource, live, object),
        None if resource.has(Subresource::Status) => keep(live, object, "status"),
        None => {}
    }
    ensure_structs(resource, object);
    if subresource.is_none() && wants_differ(resource, live, object) {
        let generation = number(live, &["metadata", "generation"]) + 1;
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

fn keep(live: &Value, object: &mut Value, field: &str) {
    match live.get(field) {
        Some(value) => drop(object_mut(object).insert(field.into(), value.clone())),
        None => drop(object_mut(object).remove(field)),
    }
}

fn keep_all_but_status(resource: &Resource, live: &Value, object: &mut Value) {
    // Custom resources and a few others keep their metadata too; the older kinds let it through.
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
                keep(live, object, "metadata");
                if let Some(managed) = managed {
                    meta_mut(object).insert("managedFields".into(), managed);
                }
            }
            other => keep(live, object, other),
        }
    }
    if resource.is("", "pods") {
        let owners = at(live, &["metadata", "ownerReferences"]).cloned();
        match owners {
            Some(owners) => drop(meta_mut(object).insert("ownerReferences".into(), owners)),
            None => drop(meta_mut(object).remove("ownerReferences")),
        }
    }
}

/// Whether what the user wants is another thing now.
fn wants_differ(resource: &Resource, live: &Value, object: &Value) -> bool {
    if !resource.generation {
        return false;
    }
    if resource.custom.is_none() {
        return live.get("spec") != object.get("spec");
    }
    let wanted = |value: &Value| {
        let mut map = value.as_object().cloned().unwrap_or_default();
        map.remove("metadata");
        if resource.has(Subresource::Status) {
            map.remove("status");
        }
        map
    };
    wanted(live) != wanted(object)
}
