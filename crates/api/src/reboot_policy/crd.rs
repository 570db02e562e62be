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

/// What `kubectl get rebootpolicies` shows; those of priority 1 with `-o wide` only.
fn columns() -> Value {
    let column = |name: &str, kind: &str, path: &str, description: &str, priority: u8| {
        json!({
            "name": name, "type": kind, "jsonPath": path, "description": description, "priority": priority,
        })
    };
    json!([
        column(
            "Nodes",
            "integer",
            ".status.nodes",
            "How many nodes it rules",
            0
        ),
        column(
            "Out",
            "integer",
            ".status.outTotal",
            "How many of them are out of service on Dogwatch's account",
            0
        ),
        column(
            "Waiting",
            "integer",
            ".status.waitingTotal",
            "How many of them wait",
            0
        ),
        column(
            "Max",
            "string",
            ".spec.maxUnavailable",
            "How many may be out at once",
            0
        ),
        column(
            "Paused",
            "string",
            ".spec.paused.reason",
            "Why it is paused",
            0
        ),
        column(
            "Blocked",
            "string",
            ".status.conditions[?(@.type==\"Blocked\")].status",
            "Whether nodes wait and none may go",
            0
        ),
        column(
            "Reason",
            "string",
            ".status.conditions[?(@.type==\"Blocked\")].reason",
            "What the one that waits longest waits for",
            0
        ),
        column(
            "Accepted",
            "string",
            ".status.conditions[?(@.type==\"Accepted\")].status",
            "Whether it is understood",
            1
        ),
        column(
            "Priority",
            "integer",
            ".spec.priority",
            "Of several that match a node the highest rules it",
            1
        ),
        column(
            "Age",
            "date",
            ".metadata.creationTimestamp",
            "Since when there is one",
            0
        ),
    ])
}
