//! The CustomResourceDefinition.

use serde_json::{Value, json};

use super::{API_VERSION, KIND, PLURAL};
use crate::crd_definition::{self, AGE_COLUMN, CrdDefinition, PrinterColumn};
use crate::power_remediation::contract_labels;
use crate::power_remediation::schema::spec::{SpecOwner, spec_schema};
use crate::schema_parts::{conditions_schema, object_schema, with_keyword};

/// The whole CustomResourceDefinition, as in `deploy/crds`.
pub fn template_crd() -> Value {
    CrdDefinition {
        kind: KIND,
        plural: PLURAL,
        labels: contract_labels(),
        short_names: &["premt"],
        columns: PRINTER_COLUMNS,
        schema: root_schema(),
        ..CrdDefinition::dogwatch_defaults()
    }
    .into_crd()
}

/// Columns of `kubectl get powerremediationtemplates`: heading, type, path, meaning.
const PRINTER_COLUMNS: &[PrinterColumn] = &[
    (
        "Strategy",
        "string",
        ".spec.template.spec.strategy.type",
        "How workloads are released",
    ),
    (
        "Retries",
        "integer",
        ".spec.template.spec.strategy.retryLimit",
        "How often it is tried again",
    ),
    (
        "Timeout",
        "string",
        ".spec.template.spec.strategy.timeout",
        "How long one attempt may take",
    ),
    AGE_COLUMN,
];

fn root_schema() -> Value {
    crd_definition::resource_schema(
        "A template from which a health check creates PowerRemediations. https://dogwatch.dev/remediation",
        (API_VERSION, KIND),
        &["spec"],
        template_spec_schema(),
        status_schema(),
    )
}

/// A template may change; existing requests keep the spec that they were created with.
fn template_spec_schema() -> Value {
    let template = object_schema(
        "A request.",
        &[],
        [
            ("metadata", metadata_schema()),
            ("spec", spec_schema(SpecOwner::Template)),
        ],
    );
    object_schema(
        "The desired requests. A change applies to requests that are created after it.",
        &["template"],
        [("template", template)],
    )
}

fn metadata_schema() -> Value {
    object_schema(
        "What Cluster API adds to each request.",
        &[],
        [
            ("labels", string_map_schema("Labels.")),
            ("annotations", string_map_schema("Annotations.")),
        ],
    )
}

fn string_map_schema(description: &str) -> Value {
    with_keyword(
        object_schema(description, &[], []),
        "additionalProperties",
        json!({ "type": "string", "description": "Its value." }),
    )
}

fn status_schema() -> Value {
    object_schema(
        "What the controller reports about the template.",
        &[],
        [(
            "conditions",
            conditions_schema("The conditions of the template.", "What it is about."),
        )],
    )
}
