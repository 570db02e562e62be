//! The schema that the API server holds every schedule to: structural OpenAPI with CEL rules.

mod spec;
mod status;

use serde_json::Value;

use super::{API_VERSION, KIND};
use crate::definition;

/// The schema of the whole object.
pub(super) fn root() -> Value {
    definition::root(
        "Reboots at an appointed time, once or again and again: of nodes (only in Dogwatch's own \
         namespace), and of hosts in its namespace. https://dogwatch.dev/schedules",
        (API_VERSION, KIND),
        &["spec"],
        spec::spec(),
        status::status(),
    )
}
