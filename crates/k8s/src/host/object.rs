//! The raw BareMetalHost, with a `spec` and a `status` of any form.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Read field by field ([`super::convert`]), so that an object of unexpected form neither vanishes
/// nor breaks the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostObject {
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: Value,
    #[serde(default)]
    pub status: Value,
}

dogwatch_api::is_sent_for!(
    HostObject,
    dogwatch_api::bare_metal_host,
    NamespaceResourceScope
);
