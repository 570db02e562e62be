//! The CustomResourceDefinition.

use serde_json::{Value, json};

use super::{CRD_NAME, KIND, PLURAL};
use crate::power_remediation::labels;
use crate::power_remediation::schema::spec::{Of, spec};
use crate::schema_words::{conditions, object, with};

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
                "listKind": "PowerRemediationTemplateList",
                "plural": PLURAL,
                "singular": "powerremediationtemplate",
                "shortNames": ["premt"],
                "categories": ["dogwatch"],
            },
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": columns(),
                "schema": { "openAPIV3Schema": root() },
            }],
        },
    })
}

/// What `kubectl get powerremediationtemplates` shows: heading, type, path, meaning.
const COLUMNS: [(&str, &str, &str, &str); 4] = [
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
    (
        "Age",
        "date",
        ".metadata.creationTimestamp",
        "Since when there is one",
    ),
];

fn columns() -> Vec<Value> {
    let column = |(name, kind, path, meaning)| json!({ "name": name, "type": kind, "jsonPath": path, "description": meaning });
    COLUMNS.into_iter().map(column).collect()
}

fn root() -> Value {
    object(
        "What a health check makes PowerRemediations of. https://dogwatch.dev/remediation",
        &["spec"],
        [
            (
                "apiVersion",
                json!({ "type": "string", "description": "dogwatch.dev/v1alpha1" }),
            ),
            ("kind", json!({ "type": "string", "description": KIND })),
            ("metadata", json!({ "type": "object" })),
            ("spec", template_spec()),
            ("status", status()),
        ],
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
