//! The CustomResourceDefinition.

use serde_json::Value;

use super::{KIND, PLURAL, schema};
use crate::crd_definition::{AGE_COLUMN, CrdDefinition, PrinterColumn};

/// The whole CustomResourceDefinition, as in `deploy/crds`.
pub fn policy_crd() -> Value {
    CrdDefinition {
        kind: KIND,
        plural: PLURAL,
        scope: "Cluster",
        short_names: &["rp"],
        columns: PRINTER_COLUMNS,
        wide: WIDE_COLUMNS,
        schema: schema::root_schema(),
        ..CrdDefinition::dogwatch_defaults()
    }
    .into_crd()
}

/// Columns of `kubectl get rebootpolicies`: heading, type, path, meaning.
const PRINTER_COLUMNS: &[PrinterColumn] = &[
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
    AGE_COLUMN,
];

/// Columns that only `-o wide` shows.
const WIDE_COLUMNS: &[&str] = &["Accepted", "Priority"];
