//! The schema: metal3's fields about power, and ours. `spec`, `status` and `status.provisioning`
//! preserve unknown fields, for metal3's other clients.

mod spec;
mod status;

use serde_json::{Value, json};

use super::{API_VERSION, KIND};
use crate::crd_definition;

pub(super) fn root_schema() -> Value {
    crd_definition::resource_schema(
        "A physical machine, as metal3 describes it, and its power.",
        (API_VERSION, KIND),
        &["spec"],
        spec::spec_schema(),
        status::status_schema(),
    )
}

/// Preserves the fields of metal3 that are not listed.
fn preserve_unknown_fields(mut schema: Value) -> Value {
    schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    schema
}
