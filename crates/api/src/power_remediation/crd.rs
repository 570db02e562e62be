//! The CustomResourceDefinition.

use serde_json::{Value, json};

use super::{CRD_NAME, KIND, PLURAL, schema};

/// The whole CustomResourceDefinition, as `deploy/crds` has it.
pub fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": CRD_NAME, "labels": labels() },
        "spec": {
            "group": "dogwatch.dev",
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": "PowerRemediationList",
                "plural": PLURAL,
                "singular": "powerremediation",
                "shortNames": ["prem"],
                "categories": ["dogwatch"],
            },
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": columns(),
                "schema": { "openAPIV3Schema": schema::root() },
            }],
        },
    })
}

/// Cluster API reads which of our versions keeps which version of its contract. Source: Cluster API's
/// provider contract; it is the same label on the kind and on its template.
pub(crate) fn labels() -> Value {
    json!({
        "app.kubernetes.io/part-of": "dogwatch",
        "cluster.x-k8s.io/v1beta1": "v1alpha1",
        "cluster.x-k8s.io/v1beta2": "v1alpha1",
    })
}

/// What `kubectl get powerremediations` shows: heading, type, path, meaning.
const COLUMNS: [(&str, &str, &str, &str); 6] = [
    ("Phase", "string", ".status.phase", "Where it stands"),
    (
        "Node",
        "string",
        ".status.node.name",
        "The Node that is released",
    ),
    (
        "Host",
        "string",
        ".status.host.name",
        "The host that is held off",
    ),
    (
        "Attempt",
        "integer",
        ".status.attempt.number",
        "Which attempt",
    ),
    (
        "Reason",
        "string",
        ".status.conditions[?(@.type==\"Remediation\")].reason",
        "Why it stands there",
    ),
    (
        "Age",
        "date",
        ".metadata.creationTimestamp",
        "Since when there is one",
    ),
];

/// Those that only `-o wide` shows.
const WIDE: [&str; 1] = ["Reason"];

fn columns() -> Vec<Value> {
    let column = |(name, kind, path, meaning)| {
        let priority = u8::from(WIDE.contains(&name));
        json!({
            "name": name, "type": kind, "jsonPath": path, "description": meaning, "priority": priority,
        })
    };
    COLUMNS.into_iter().map(column).collect()
}
