//! A host as it came, with a `spec` and a `status` of any form.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One object of the kind. It is read field by field ([`super::convert`]), so that one which does not
/// have the expected form neither vanishes nor spoils the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostObject {
    /// Name, UID, annotations.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Whatever stands there.
    #[serde(default)]
    pub spec: Value,
    /// Whatever stands there.
    #[serde(default)]
    pub status: Value,
}

dogwatch_api::is_sent_for!(
    HostObject,
    dogwatch_api::bare_metal_host,
    NamespaceResourceScope
);
