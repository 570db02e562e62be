//! The raw NodeReboot, with a `spec` of any form.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The fields are read later ([`super::convert`]), so that an object of unexpected form neither
/// vanishes nor breaks the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeRebootObject {
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub status: Value,
}

dogwatch_api::is_sent_for!(
    NodeRebootObject,
    dogwatch_api::node_reboot,
    ClusterResourceScope
);
