//! The CustomResourceDefinition.

use serde_json::{Value, json};

use super::{API_VERSION, KIND, PLURAL};
use crate::definition::{self, AGE, Column, Definition};
use crate::power_remediation::labels;
use crate::power_remediation::schema::spec::{Of, spec};
use crate::schema_words::{conditions, object, with};

/// The whole CustomResourceDefinition, as `deploy/crds` has it.
pub fn crd() -> Value {
    Definition {
        kind: KIND,
        plural: PLURAL,
        labels: labels(),
        short_names: &["premt"],
        columns: COLUMNS,
        schema: root(),
        ..Definition::ours()
    }
    .crd()
}

/// What `kubectl get powerremediationtemplates` shows: heading, type, path, meaning.
const COLUMNS: &[Column] = &[
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
    AGE,
];

fn root() -> Value {
    definition::root(
        "What a health check makes PowerRemediations of. https://dogwatch.dev/remediation",
        (API_VERSION, KIND),
        &["spec"],
        template_spec(),
        status(),
    )
}

/// A request that was made keeps what it was made with.
fn template_spec() -> Value {
    let template = object(
        "A request.",
        &[],
        [("metadata", metadata()), ("spec", spec(Of::Template))],
    );
    object(
        "What a person wrote. A change holds for requests that are made after it.",
        &["template"],
        [("template", template)],
    )
}

fn metadata() -> Value {
    object(
        "What Cluster API puts onto each request.",
        &[],
        [
            ("labels", texts("Labels.")),
            ("annotations", texts("Annotations.")),
        ],
    )
}

fn texts(description: &str) -> Value {
    with(
        object(description, &[], []),
        "additionalProperties",
        json!({ "type": "string", "description": "Its value." }),
    )
}

fn status() -> Value {
    object(
        "What the controller says of it.",
        &[],
        [(
            "conditions",
            conditions("What is said of it.", "What it is about."),
        )],
    )
}
