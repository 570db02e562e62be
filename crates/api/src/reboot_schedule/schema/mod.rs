//! The schema that the API server holds every schedule to: structural OpenAPI with CEL rules.

mod spec;
mod status;

use serde_json::{Value, json};

use crate::schema_words::object;

/// The schema of the whole object.
pub(super) fn root() -> Value {
    object(
        "Reboots at an appointed time, once or again and again: of nodes (only in Dogwatch's own \
         namespace), and of hosts in its namespace. https://dogwatch.dev/schedules",
        &["spec"],
        [
            (
                "apiVersion",
                json!({ "type": "string", "description": "dogwatch.dev/v1alpha1" }),
            ),
            (
                "kind",
                json!({ "type": "string", "description": "RebootSchedule" }),
            ),
            ("metadata", json!({ "type": "object" })),
            ("spec", spec::spec()),
            ("status", status::status()),
        ],
    )
}
