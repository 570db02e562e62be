//! The CustomResourceDefinition.

use serde_json::{Value, json};

use super::{KIND, PLURAL, PowerRemediation};
use crate::schema::{AGE_COLUMN, CrdDefinition, PrinterColumn, schema_of_kind, validation_rule};

pub(crate) fn derived_crd() -> Value {
    let mut schema = schema_of_kind::<PowerRemediation>();
    // A template may change: existing requests keep their strategy.
    let strategy = &mut schema["properties"]["spec"]["properties"]["strategy"]["properties"];
    strategy["type"]["x-kubernetes-validations"] = json!([validation_rule(
        "self == oldSelf",
        "this field cannot be changed, because the remediation may be half done; delete this request and \
         create another one",
    )]);
    CrdDefinition {
        kind: KIND,
        plural: PLURAL,
        labels: contract_labels(),
        short_names: &["prem"],
        columns: PRINTER_COLUMNS,
        wide: WIDE_COLUMNS,
        schema,
        ..CrdDefinition::dogwatch_defaults()
    }
    .into_crd()
}

/// The label from which Cluster API reads which of our versions implements which version of its
/// contract. Source: Cluster API's provider contract; kind and template have the same label.
pub(crate) fn contract_labels() -> Value {
    json!({
        "app.kubernetes.io/part-of": "dogwatch",
        "cluster.x-k8s.io/v1beta1": "v1alpha1",
        "cluster.x-k8s.io/v1beta2": "v1alpha1",
    })
}

/// Columns of `kubectl get powerremediations`: heading, type, path, meaning.
const PRINTER_COLUMNS: &[PrinterColumn] = &[
    (
        "Phase",
        "string",
        ".status.phase",
        "The step that it has reached",
    ),
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
        "The host that is kept off",
    ),
    (
        "Attempt",
        "integer",
        ".status.attempt.number",
        "The number of the attempt",
    ),
    (
        "Reason",
        "string",
        ".status.conditions[?(@.type==\"Remediation\")].reason",
        "Why it is in this step",
    ),
    AGE_COLUMN,
];

/// Columns that only `-o wide` shows.
const WIDE_COLUMNS: &[&str] = &["Reason"];
