//! The schema: metal3's fields that are about power, and ours. `spec`, `status` and
//! `status.provisioning` keep what they do not know, for metal3's other clients.

mod spec;
mod status;

use serde_json::{Value, json};

use super::{API_VERSION, KIND};
use crate::definition;

/// The schema of the whole object.
pub(super) fn root() -> Value {
    definition::root(
        "A physical machine, as metal3 describes it, and its power.",
        (API_VERSION, KIND),
        &["spec"],
        spec::spec(),
        status::status(),
    )
}

/// Keeps the fields of metal3 that are not listed.
fn open(mut schema: Value) -> Value {
    schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    schema
}
