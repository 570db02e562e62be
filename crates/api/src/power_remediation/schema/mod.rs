//! The schema that the API server holds every request to: structural OpenAPI with CEL rules.

pub(crate) mod spec;
pub(crate) mod status;

use serde_json::{Value, json};

use super::KIND;
use crate::schema_words::object;

/// The schema of the whole object.
pub(super) fn root() -> Value {
    object(
        "A machine has failed: its host is held off until that is proved, its Node released, and it comes \
         back. Made by a health check, of a PowerRemediationTemplate; deleting it calls it off. \
         https://dogwatch.dev/remediation",
        &[],
        [
            (
                "apiVersion",
                json!({ "type": "string", "description": "dogwatch.dev/v1alpha1" }),
            ),
            ("kind", json!({ "type": "string", "description": KIND })),
            ("metadata", json!({ "type": "object" })),
            ("spec", spec::spec(spec::Of::Request)),
            ("status", status::status()),
        ],
    )
}
