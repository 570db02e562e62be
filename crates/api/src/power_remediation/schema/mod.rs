//! The schema of a request: structural OpenAPI with CEL rules.

pub(crate) mod spec;
pub(crate) mod status;

use serde_json::Value;

use super::{API_VERSION, KIND};
use crate::crd_definition;

pub(super) fn root_schema() -> Value {
    crd_definition::resource_schema(
        "A machine has failed: its host is held off until that is proved, its Node released, and it comes \
         back. Made by a health check, of a PowerRemediationTemplate; deleting it calls it off. \
         https://dogwatch.dev/remediation",
        (API_VERSION, KIND),
        &[],
        spec::spec_schema(spec::SpecOwner::Request),
        status::status_schema(),
    )
}
