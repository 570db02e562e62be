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
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": "RebootScheduleList",
                "plural": PLURAL,
                "singular": "rebootschedule",
                "shortNames": ["rbs"],
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

/// What `kubectl get rebootschedules` shows: heading, type, path, meaning. A date that lies ahead is
/// no age, so that the next one is text.
const COLUMNS: [(&str, &str, &str, &str); 7] = [
    (
        "Next",
        "string",
        ".status.nextOccurrence",
        "When it issues next",
    ),
    (
        "Last",
        "date",
        ".status.lastOccurrence",
        "How long ago the newest occurrence was begun or missed",
    ),
    (
        "Outcome",
        "string",
        ".status.history[0].outcome",
        "How the last one ended",
    ),
    (
        "Suspended",
        "boolean",
        ".spec.suspend",
        "Whether it is suspended",
    ),
    (
        "State",
        "string",
        ".status.conditions[?(@.type==\"Active\")].reason",
        "What it does now",
    ),
    (
        "Reason",
        "string",
        ".spec.reason",
        "Why the reboots are wanted",
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
