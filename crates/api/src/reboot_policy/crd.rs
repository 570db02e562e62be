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
        "How many nodes the policy applies to",
    ),
    (
        "Out",
        "integer",
        ".status.outTotal",
        "How many of these nodes are unavailable because of Dogwatch",
    ),
    (
        "Waiting",
        "integer",
        ".status.waitingTotal",
        "How many of these nodes wait",
    ),
    (
        "Max",
        "string",
        ".spec.maxUnavailable",
        "How many nodes may be unavailable at once",
    ),
    (
        "Paused",
        "string",
        ".spec.paused.reason",
        "Why the policy is paused",
    ),
    (
        "Blocked",
        "string",
        ".status.conditions[?(@.type==\"Blocked\")].status",
        "Whether nodes wait and none may begin",
    ),
    (
        "Reason",
        "string",
        ".status.conditions[?(@.type==\"Blocked\")].reason",
        "What the node that has waited longest waits for",
    ),
    (
        "Accepted",
        "string",
        ".status.conditions[?(@.type==\"Accepted\")].status",
        "Whether the specification is valid",
    ),
    (
        "Priority",
        "integer",
        ".spec.priority",
        "If several policies match a node, the highest priority applies",
    ),
    AGE_COLUMN,
];

/// Columns that only `-o wide` shows.
const WIDE_COLUMNS: &[&str] = &["Accepted", "Priority"];
