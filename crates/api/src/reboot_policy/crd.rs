//! The CustomResourceDefinition.

use serde_json::Value;

use super::{KIND, PLURAL, schema};
use crate::definition::{AGE, Column, Definition};

/// The whole CustomResourceDefinition, as `deploy/crds` has it.
pub fn crd() -> Value {
    Definition {
        kind: KIND,
        plural: PLURAL,
        scope: "Cluster",
        short_names: &["rp"],
        columns: COLUMNS,
        wide: WIDE,
        schema: schema::root(),
        ..Definition::ours()
    }
    .crd()
}

/// What `kubectl get rebootpolicies` shows: heading, type, path, meaning.
const COLUMNS: &[Column] = &[
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
    AGE,
];

/// Those that only `-o wide` shows.
const WIDE: &[&str] = &["Accepted", "Priority"];
