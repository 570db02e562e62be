//! The schema of a schedule: structural OpenAPI with CEL rules.

mod spec;
mod status;

use serde_json::Value;

use super::{API_VERSION, KIND};
use crate::crd_definition;

pub(super) fn root_schema() -> Value {
    crd_definition::resource_schema(
        "Requests reboots at an appointed time, once or repeatedly: of nodes (only in Dogwatch's \
         own namespace), and of hosts in the schedule's namespace. https://dogwatch.dev/schedules",
        (API_VERSION, KIND),
        &["spec"],
        spec::spec_schema(),
        status::status_schema(),
    )
}
