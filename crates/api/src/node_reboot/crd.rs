//! The CustomResourceDefinition.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::{KIND, MAX_ESCALATIONS, NodeReboot, PLURAL};
use crate::schema::{
    AGE_COLUMN, CrdDefinition, PrinterColumn, rule_at, schema_of_kind, validation_rule,
};

pub(crate) fn derived_crd() -> Value {
    CrdDefinition {
        kind: KIND,
        plural: PLURAL,
        scope: "Cluster",
        short_names: &["nr"],
        columns: PRINTER_COLUMNS,
        wide: WIDE_COLUMNS,
        schema: schema_of_kind::<NodeReboot>(),
        ..CrdDefinition::dogwatch_defaults()
    }
    .into_crd()
}

pub(super) fn served_method(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["Reboot", "PowerCycle", "Hold"] })
}

pub(super) fn escalation_methods(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": MAX_ESCALATIONS,
        "items": { "type": "string", "enum": ["Reboot", "PowerCycle"], "description": "A method." },
    })
}

/// Fields that may be absent, and never change.
const FIXED_FIELDS: [&str; 9] = [
    "nodeUID",
    "method",
    "reason",
    "requester",
    "notBefore",
    "deadline",
    "success",
    "escalation",
    "ttlAfterFinished",
];
const FIXED_HINT: &str = "this field cannot be changed, because the node may have been asked \
                          already; cancel this NodeReboot and create another one";

/// Rules over several fields, and over a change.
pub(super) fn spec_rules() -> Vec<Value> {
    let mut rules = vec![
        rule_at(
            ".deadline",
            "!has(self.deadline) || !has(self.notBefore) || self.deadline > self.notBefore",
            "write a deadline later than notBefore",
        ),
        rule_at(
            ".escalation",
            "!has(self.escalation) || has(self.success)",
            "write success as well: without it the first attempt is the last",
        ),
        rule_at(
            ".success",
            "!has(self.success) || !has(self.method) || self.method != 'Hold'",
            "leave out success: a hold ends when its NodeReboot is deleted or cancelled",
        ),
        rule_at(".nodeName", "self.nodeName == oldSelf.nodeName", FIXED_HINT),
        rule_at(
            ".cancel",
            "!has(oldSelf.cancel) || !oldSelf.cancel || (has(self.cancel) && self.cancel)",
            "a cancel cannot be taken back; create another NodeReboot",
        ),
    ];
    rules.extend(FIXED_FIELDS.map(|field| {
        // A field that is added or removed has no old value, or no new one.
        let rule = format!(
            "has(self.{field}) ? has(oldSelf.{field}) && self.{field} == oldSelf.{field} : \
             !has(oldSelf.{field})"
        );
        validation_rule(&rule, &format!("{field}: {FIXED_HINT}"))
    }));
    rules
}

/// Columns of `kubectl get nr`: heading, type, path, meaning.
const PRINTER_COLUMNS: &[PrinterColumn] = &[
    ("Node", "string", ".spec.nodeName", "The node"),
    ("Method", "string", ".spec.method", "What is asked for"),
    (
        "Phase",
        "string",
        ".status.phase",
        "How far the request has come",
    ),
    (
        "Succeeded",
        "string",
        ".status.conditions[?(@.type==\"Succeeded\")].status",
        "Unknown until the end, then True or False",
    ),
    (
        "Reason",
        "string",
        ".status.conditions[?(@.type==\"Progressing\")].reason",
        "What it waits for, or how it ended",
    ),
    AGE_COLUMN,
    (
        "Starts",
        "string",
        ".status.estimatedStart",
        "About when the drain begins",
    ),
    (
        "Finishes",
        "string",
        ".status.estimatedFinish",
        "About when the node is back in service",
    ),
    (
        "Message",
        "string",
        ".status.message",
        "The same in a sentence",
    ),
];

/// Columns that only `-o wide` shows.
const WIDE_COLUMNS: &[&str] = &["Starts", "Finishes", "Message"];
