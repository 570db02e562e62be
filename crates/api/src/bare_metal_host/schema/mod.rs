//! The schema: metal3's fields that are about power, and ours. `spec`, `status` and
//! `status.provisioning` keep what they do not know, for metal3's other clients.

mod spec;
mod status;

use serde_json::{Value, json};

use crate::schema_words::object;

/// The schema of the whole object.
pub(super) fn root() -> Value {
    object(
        "A physical machine, as metal3 describes it, and its power.",
        &["spec"],
        [
            (
                "apiVersion",
                json!({ "type": "string", "description": "metal3.io/v1alpha1" }),
            ),
            (
                "kind",
                json!({ "type": "string", "description": "BareMetalHost" }),
            ),
            ("metadata", json!({ "type": "object" })),
            ("spec", spec::spec()),
            ("status", status::status()),
        ],
    )
}

/// Keeps the fields of metal3 that are not listed.
fn open(mut schema: Value) -> Value {
    schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    schema
}
