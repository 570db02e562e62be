//! The CustomResourceDefinition.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::policy_name::MAX_POLICY_NAME_BYTES;
use super::{KIND, PLURAL, POLICY_NAME_RULE, RebootPolicy};
use crate::schema::{AGE_COLUMN, CrdDefinition, PrinterColumn, rule_at, schema_of_kind};

pub(crate) fn derived_crd() -> Value {
    CrdDefinition {
        kind: KIND,
        plural: PLURAL,
        scope: "Cluster",
        short_names: &["rp"],
        columns: PRINTER_COLUMNS,
        wide: WIDE_COLUMNS,
        schema: schema_of_kind::<RebootPolicy>(),
        ..CrdDefinition::dogwatch_defaults()
    }
    .into_crd()
}

/// The name of a policy is as short as a group's.
pub(super) fn policy_metadata(_: &mut SchemaGenerator) -> Schema {
    let name = json_schema!({ "type": "string", "maxLength": MAX_POLICY_NAME_BYTES });
    json_schema!({ "type": "object", "properties": { "name": name } })
}

/// Rules about the name.
pub(super) fn policy_rules() -> [Value; 2] {
    [
        rule_at(
            ".metadata.name",
            "self.metadata.name.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') \
             && self.metadata.name != 'remedy' && !self.metadata.name.startsWith('remedy-')",
            POLICY_NAME_RULE,
        ),
        rule_at(
            ".spec.nodeSelector",
            "self.metadata.name != 'control-plane' || (has(self.spec.nodeSelector) && (\
             (has(self.spec.nodeSelector.matchLabels) && \
             'node-role.kubernetes.io/control-plane' in self.spec.nodeSelector.matchLabels) || \
             (has(self.spec.nodeSelector.matchExpressions) && \
             self.spec.nodeSelector.matchExpressions.exists(e, \
             e.key == 'node-role.kubernetes.io/control-plane' && e.operator in ['In', 'Exists']))))",
            "a policy with the name control-plane must select the label node-role.kubernetes.io/control-plane: \
         its group is the control plane",
        ),
    ]
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
