//! The objects of a workload.

use std::time::Duration;

use k8s_openapi::api::core::v1::Taint;
use serde_json::{Value, json};

use super::spec::{Budget, Workload, WorkloadKind};
use crate::world::annotation::{STARTS_AFTER, STOPS_AFTER};
use crate::world::controllers::attach_detach::ATTACHER;

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// What keeps ordinary pods off the control plane.
pub fn control_plane_taints() -> Vec<Taint> {
    vec![Taint {
        key: dogwatch_api::label::CONTROL_PLANE.into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    }]
}

/// The owner of the workload's pods.
pub fn owner(workload: &Workload) -> Value {
    let (kind, replicas) = match workload.kind {
        WorkloadKind::ReplicaSet { replicas } => ("ReplicaSet", Some(replicas)),
        WorkloadKind::Deployment { replicas } => ("Deployment", Some(replicas)),
        WorkloadKind::DaemonSet => ("DaemonSet", None),
    };
    let mut owner = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": named(workload),
        "spec": { "selector": selector(workload), "template": template(workload) },
    });
    if let Some(replicas) = replicas {
        owner["spec"]["replicas"] = json!(replicas);
    }
    owner
}

fn named(workload: &Workload) -> Value {
    json!({ "name": workload.name, "namespace": workload.namespace })
}

fn selector(workload: &Workload) -> Value {
    json!({ "matchLabels": { "app": workload.name } })
}

fn template(workload: &Workload) -> Value {
    let timing = [
        (STARTS_AFTER, workload.starts_after),
        (STOPS_AFTER, workload.stops_after),
    ];
    let annotations: serde_json::Map<_, _> = timing
        .into_iter()
        .filter_map(|(name, time)| Some((name.to_owned(), duration(time?))))
        .collect();
    let mut spec = json!({
        "terminationGracePeriodSeconds": workload.grace.as_secs(),
        "containers": [{ "name": "main", "image": "sim" }],
    });
    if workload.volume {
        spec["volumes"] =
            json!([{ "name": "data", "persistentVolumeClaim": { "claimName": workload.name } }]);
    }
    if workload.tolerates_all {
        spec["tolerations"] = json!([{ "operator": "Exists" }]);
    }
    if workload.apart {
        let term =
            json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": selector(workload) });
        spec["affinity"] = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
    }
    json!({
        "metadata": { "labels": { "app": workload.name }, "annotations": annotations },
        "spec": spec,
    })
}

fn duration(time: Duration) -> Value {
    json!(dogwatch_core::duration::format(time))
}

/// The workload's budget.
pub fn budget(workload: &Workload, budget: &Budget) -> Value {
    let (field, value) = match budget {
        Budget::MinAvailable(value) => ("minAvailable", value),
        Budget::MaxUnavailable(value) => ("maxUnavailable", value),
    };
    let value = value
        .parse::<u32>()
        .map_or_else(|_| json!(value), |number| json!(number));
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": named(workload),
        "spec": { "selector": selector(workload), field: value },
    })
}

/// The workload's volume, bound to its claim.
pub fn volume(workload: &Workload) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": volume_name(workload) },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteOnce"],
            "csi": { "driver": ATTACHER, "volumeHandle": volume_name(workload) },
            "claimRef": { "kind": "PersistentVolumeClaim", "namespace": workload.namespace, "name": workload.name },
        },
    })
}

/// The workload's claim, bound to its volume.
pub fn claim(workload: &Workload) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": named(workload),
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "volumeName": volume_name(workload),
            "resources": { "requests": { "storage": "1Gi" } },
            "storageClassName": "",
        },
    })
}

fn volume_name(workload: &Workload) -> String {
    format!("pv-{}-{}", workload.namespace, workload.name)
}
