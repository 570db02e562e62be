//! The CustomResourceDefinition.

use serde_json::{Value, json};

use super::{KIND, PLURAL, schema};
use crate::definition::{AGE, Column, Definition};

/// The whole CustomResourceDefinition, as `deploy/crds` has it.
pub fn crd() -> Value {
    Definition {
        kind: KIND,
        plural: PLURAL,
        labels: labels(),
        short_names: &["prem"],
        columns: COLUMNS,
        wide: WIDE,
        schema: schema::root(),
        ..Definition::ours()
    }
    .crd()
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
const COLUMNS: &[Column] = &[
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
    AGE,
];

/// Those that only `-o wide` shows.
const WIDE: &[&str] = &["Reason"];
