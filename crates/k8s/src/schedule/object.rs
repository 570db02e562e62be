//! A schedule as it came, with a `spec` of any form.

use dogwatch_api::reboot_schedule::{API_VERSION, KIND, PLURAL, RebootSchedule};
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

impl k8s_openapi::Resource for ScheduleObject {
    const API_VERSION: &'static str = API_VERSION;
    const GROUP: &'static str = <RebootSchedule as k8s_openapi::Resource>::GROUP;
    const KIND: &'static str = KIND;
    const VERSION: &'static str = <RebootSchedule as k8s_openapi::Resource>::VERSION;
    const URL_PATH_SEGMENT: &'static str = PLURAL;
    type Scope = k8s_openapi::NamespaceResourceScope;
}

impl k8s_openapi::Metadata for ScheduleObject {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
