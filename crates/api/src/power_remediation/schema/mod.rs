//! The schema of a request: structural OpenAPI with CEL rules.

pub(crate) mod spec;
pub(crate) mod status;

use serde_json::Value;

use super::{API_VERSION, KIND};
use crate::crd_definition;

pub(super) fn root_schema() -> Value {
    crd_definition::resource_schema(
        "A request to remediate a failed machine: its host is kept off until that is proved, its Node is released, and \
         the host is powered on again. A health check creates it from a PowerRemediationTemplate; deleting it cancels \
         the remediation. https://dogwatch.dev/remediation",
        (API_VERSION, KIND),
        &[],
        spec::spec_schema(spec::SpecOwner::Request),
        status::status_schema(),
    )
}
