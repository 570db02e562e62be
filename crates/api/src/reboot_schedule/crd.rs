//! The CustomResourceDefinition.

use serde_json::Value;

use super::{KIND, PLURAL, RebootSchedule};
use crate::schema::{AGE_COLUMN, CrdDefinition, PrinterColumn, schema_of_kind};

pub(crate) fn derived_crd() -> Value {
    CrdDefinition {
        kind: KIND,
        plural: PLURAL,
        short_names: &["rbs"],
        columns: PRINTER_COLUMNS,
        wide: WIDE_COLUMNS,
        schema: schema_of_kind::<RebootSchedule>(),
        ..CrdDefinition::dogwatch_defaults()
    }
    .into_crd()
}

/// Columns of `kubectl get rebootschedules`: heading, type, path, meaning. kubectl shows a date
/// column as an age, so the next occurrence, a date in the future, is a text column.
const PRINTER_COLUMNS: &[PrinterColumn] = &[
    (
        "Next",
        "string",
        ".status.nextOccurrence",
        "The time of the next occurrence",
    ),
    (
        "Last",
        "date",
        ".status.lastOccurrence",
        "How long ago the newest occurrence began or was missed",
    ),
    (
        "Outcome",
        "string",
        ".status.history[0].outcome",
        "How the last occurrence ended",
    ),
    (
        "Reboots",
        "string",
        ".status.conditions[?(@.type==\"LastOccurrenceRebooted\")].reason",
        "How the reboots of the last occurrence ended",
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
        "What the schedule does now",
    ),
    (
        "Reason",
        "string",
        ".spec.reason",
        "Why the reboots are requested",
    ),
    AGE_COLUMN,
];

/// Columns that only `-o wide` shows.
const WIDE_COLUMNS: &[&str] = &["Reason"];
