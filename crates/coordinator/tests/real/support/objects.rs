//! Builds the objects of tests.

use serde_json::{Value, json};

pub const POLICIES: &str = "/apis/dogwatch.dev/v1alpha1/rebootpolicies";

/// A policy for every node. Its name is the name of their group.
pub fn reboot_policy(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicy",
        "metadata": { "name": name },
        "spec": spec,
    })
}

/// A pod that is bound already: there is no scheduler.
pub fn pod(name: &str, node: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": app } },
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 1,
            "containers": [{ "name": "main", "image": "none" }],
        },
    })
}

/// A PodDisruptionBudget that blocks evictions of `app` while fewer than `min` pods would remain
/// healthy.
pub fn budget(name: &str, app: &str, min: u32) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": name },
        "spec": { "minAvailable": min, "selector": { "matchLabels": { "app": app } } },
    })
}

/// The group's only slot, held.
pub fn held_lease(holder: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "dogwatch-default-0", "labels": { "dogwatch.dev/group": "default" } },
        "spec": { "holderIdentity": holder },
    })
}

/// A DaemonSet whose pods become ready this long after their start.
pub fn daemon_set(name: &str, starts_after: &str) -> Value {
    let labels = json!({ "daemon": name });
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels, "annotations": { "sim.dogwatch.dev/starts-after": starts_after } },
                "spec": { "containers": [{ "name": "main", "image": "none" }] },
            },
        },
    })
}

/// A PersistentVolume that is bound to this claim.
pub fn volume(name: &str, namespace: &str, claim: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteOnce"],
            "claimRef": { "namespace": namespace, "name": claim },
            "hostPath": { "path": "/nonexistent" },
        },
    })
}
