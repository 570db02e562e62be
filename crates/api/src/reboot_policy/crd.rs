//! The CustomResourceDefinition.

use serde_json::{Value, json};

use super::{CRD_NAME, KIND, PLURAL, schema};

/// The whole CustomResourceDefinition, as `deploy/crds` has it.
pub fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": CRD_NAME,
            "labels": { "app.kubernetes.io/part-of": "dogwatch" },
        },
        "spec": {
            "group": "dogwatch.dev",
            "scope": "Cluster",
            "names": {
                "kind": KIND,
                "listKind": "RebootPolicyList",
                "plural": PLURAL,
                "singular": "rebootpolicy",
                "shortNames": ["rp"],
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

/// What `kubectl get rebootpolicies` shows: heading, type, path, meaning.
const COLUMNS: [(&str, &str, &str, &str); 10] = [
    (
        "Nodes",
        "integer",
        ".status.nodes",
        "How many nodes it rules",
    ),
    (
        "Out",
        "integer",
        ".status.outTotal",
        "How many of them are out of service on Dogwatch's account",
    ),
    (
        "Waiting",
        "integer",
        ".status.waitingTotal",
        "How many of them wait",
    ),
    (
        "Max",
        "string",
        ".spec.maxUnavailable",
        "How many may be out at once",
    ),
    (
        "Paused",
        "string",
        ".spec.paused.reason",
        "Why it is paused",
    ),
    (
        "Blocked",
        "string",
        ".status.conditions[?(@.type==\"Blocked\")].status",
        "Whether nodes wait and none may go",
    ),
    (
        "Reason",
        "string",
        ".status.conditions[?(@.type==\"Blocked\")].reason",
        "What the one that waits longest waits for",
    ),
    (
        "Accepted",
        "string",
        ".status.conditions[?(@.type==\"Accepted\")].status",
        "Whether it is understood",
    ),
    (
        "Priority",
        "integer",
        ".spec.priority",
        "Of several that match a node the highest rules it",
    ),
    (
        "Age",
        "date",
        ".metadata.creationTimestamp",
        "Since when there is one",
    ),
];

/// Those that only `-o wide` shows.
const WIDE: [&str; 2] = ["Accepted", "Priority"];

fn columns() -> Vec<Value> {
    let column = |(name, kind, path, meaning)| {
        let priority = u8::from(WIDE.contains(&name));
        json!({
            "name": name, "type": kind, "jsonPath": path, "description": meaning, "priority": priority,
        })
    };
    COLUMNS.into_iter().map(column).collect()
}
