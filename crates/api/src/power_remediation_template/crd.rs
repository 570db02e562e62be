//! The CustomResourceDefinition.

use serde_json::Value;

use super::{KIND, PLURAL, PowerRemediationTemplate};
use crate::power_remediation::crd::contract_labels;
use crate::schema::{AGE_COLUMN, CrdDefinition, PrinterColumn, schema_of_kind};

pub(crate) fn derived_crd() -> Value {
    CrdDefinition {
        kind: KIND,
        plural: PLURAL,
        labels: contract_labels(),
        short_names: &["premt"],
        columns: PRINTER_COLUMNS,
        schema: schema_of_kind::<PowerRemediationTemplate>(),
        ..CrdDefinition::dogwatch_defaults()
    }
    .into_crd()
}

/// Columns of `kubectl get powerremediationtemplates`: heading, type, path, meaning.
const PRINTER_COLUMNS: &[PrinterColumn] = &[
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
    AGE_COLUMN,
];
