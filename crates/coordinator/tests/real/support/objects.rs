//! Objects that tests make.

use serde_json::{Value, json};

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

/// A budget that lets no pod of `app` go while fewer than `min` others are healthy.
pub fn budget(name: &str, app: &str, min: u32) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": name },
        "spec": { "minAvailable": min, "selector": { "matchLabels": { "app": app } } },
    })
}
