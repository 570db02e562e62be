//! Derives the schemas of the kinds, for the test that writes `deploy/crds` and `docs/reference`. The programs contain
//! none of it: they use the written files.
//!
//! In a `spec`, each text and each list has a maximum size, or the API server would refuse the
//! rules (it adds up what they could cost). A rule's message says what to write; the API server
//! names the field before it. A `status` has no rules: its writer must never be refused.

pub(crate) mod check;
mod crd_definition;
mod generated_manifests;
mod parts;
mod reference_page;
mod structural;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

pub(crate) use crd_definition::{AGE_COLUMN, CrdDefinition, PrinterColumn};
pub(crate) use parts::*;

/// The structural schema of a kind.
pub(crate) fn schema_of_kind<Kind: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<Kind>()
        .to_value();
    structural::make_structural(&mut schema);
    if let Some(metadata) = schema["properties"]["metadata"].as_object_mut() {
        metadata.remove("description");
    }
    schema
}
