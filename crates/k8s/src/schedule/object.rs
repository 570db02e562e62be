//! A schedule as it came, with a `spec` of any form.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One object of the kind. Its parts are read later ([`super::convert`]), so that one which does not
/// have the expected form neither vanishes nor spoils the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleObject {
    /// Name, UID, generation.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Whatever stands there.
    #[serde(default)]
    pub spec: Value,
    /// What the controller wrote of it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub status: Value,
}

dogwatch_api::is_sent_for!(
    ScheduleObject,
    dogwatch_api::reboot_schedule,
    NamespaceResourceScope
);
