//! The CustomResourceDefinition.

use serde_json::Value;

use super::{KIND, PLURAL, schema};
use crate::definition::{AGE, Column, Definition};

/// The whole CustomResourceDefinition, as `deploy/crds` has it.
pub fn crd() -> Value {
    Definition {
        kind: KIND,
        plural: PLURAL,
        short_names: &["rbs"],
        columns: COLUMNS,
        wide: WIDE,
        schema: schema::root(),
        ..Definition::ours()
    }
    .crd()
}

/// What `kubectl get rebootschedules` shows: heading, type, path, meaning. A date that lies ahead is
/// no age, so that the next one is text.
const COLUMNS: &[Column] = &[
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
    AGE,
];

/// Those that only `-o wide` shows.
const WIDE: &[&str] = &["Reason"];
