//! The schema that the API server holds every request to: structural OpenAPI with CEL rules.

pub(crate) mod spec;
pub(crate) mod status;

use serde_json::Value;

use super::{API_VERSION, KIND};
use crate::definition;

/// The schema of the whole object.
pub(super) fn root() -> Value {
    definition::root(
        "A machine has failed: its host is held off until that is proved, its Node released, and it comes \
         back. Made by a health check, of a PowerRemediationTemplate; deleting it calls it off. \
         https://dogwatch.dev/remediation",
        (API_VERSION, KIND),
        &[],
        spec::spec(spec::Of::Request),
        status::status(),
    )
}
