//! Manifests of a workload's objects.

use std::time::Duration;

use k8s_openapi::api::core::v1::Taint;
use serde_json::{Value, json};

use super::spec::{SimulatedWorkload, WorkloadBudget, WorkloadKind};
use crate::world::annotation::{self, STARTS_AFTER, STOPS_AFTER};
use crate::world::controllers::attach_detach::ATTACHER;

pub fn namespace_manifest(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// The taint that keeps ordinary pods off the control plane.
pub fn control_plane_taints() -> Vec<Taint> {
    vec![Taint {
        key: super::CONTROL_PLANE_LABEL.into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    }]
}

/// The owner of the workload's pods.
pub fn workload_manifest(workload: &SimulatedWorkload) -> Value {
    let (kind, replicas) = match workload.kind {
        WorkloadKind::ReplicaSet { replicas } => ("ReplicaSet", Some(replicas)),
        WorkloadKind::Deployment { replicas } => ("Deployment", Some(replicas)),
        WorkloadKind::DaemonSet => ("DaemonSet", None),
    };
    let mut owner = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": workload_metadata(workload),
        "spec": { "selector": workload_selector(workload), "template": pod_template(workload) },
    });
    if let Some(replicas) = replicas {
        owner["spec"]["replicas"] = json!(replicas);
    }
    owner
}

fn workload_metadata(workload: &SimulatedWorkload) -> Value {
    json!({ "name": workload.name, "namespace": workload.namespace })
}

fn workload_selector(workload: &SimulatedWorkload) -> Value {
    json!({ "matchLabels": { "app": workload.name } })
}

fn pod_template(workload: &SimulatedWorkload) -> Value {
    let timing = [
        (STARTS_AFTER, workload.starts_after),
        (STOPS_AFTER, workload.stops_after),
    ];
    let annotations: serde_json::Map<_, _> = timing
        .into_iter()
        .filter_map(|(name, time)| Some((name.to_owned(), duration_value(time?))))
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
    if workload.anti_affinity {
        let term = json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": workload_selector(workload) });
        spec["affinity"] = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } });
    }
    json!({
        "metadata": { "labels": { "app": workload.name }, "annotations": annotations },
        "spec": spec,
    })
}

fn duration_value(time: Duration) -> Value {
    json!(annotation::format_duration(time))
}

pub fn budget_manifest(workload: &SimulatedWorkload, budget: &WorkloadBudget) -> Value {
    let (field, value) = match budget {
        WorkloadBudget::MinAvailable(value) => ("minAvailable", value),
        WorkloadBudget::MaxUnavailable(value) => ("maxUnavailable", value),
    };
    let value = value
        .parse::<u32>()
        .map_or_else(|_| json!(value), |number| json!(number));
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": workload_metadata(workload),
        "spec": { "selector": workload_selector(workload), field: value },
    })
}

/// The workload's volume, bound to its claim.
pub fn volume_manifest(workload: &SimulatedWorkload) -> Value {
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
pub fn claim_manifest(workload: &SimulatedWorkload) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": workload_metadata(workload),
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "volumeName": volume_name(workload),
            "resources": { "requests": { "storage": "1Gi" } },
            "storageClassName": "",
        },
    })
}

fn volume_name(workload: &SimulatedWorkload) -> String {
    format!("pv-{}-{}", workload.namespace, workload.name)
}
