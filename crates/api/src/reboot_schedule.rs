//! `RebootSchedule` (`dogwatch.dev/v1alpha1`, namespaced): reboots of nodes, and of hosts in its
//! namespace, at given times. Source: specification §5.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kind::{api_version, kind, namespaced_meta};
use crate::manifest::parse_manifest;
#[cfg(test)]
use crate::schema;

#[cfg(test)]
pub(crate) mod crd;
mod spec;
mod status;
#[cfg(test)]
mod tests;

pub use crate::kind::{API_VERSION, GROUP, VERSION};
pub use spec::{HostPowerOffMode, RebootScheduleSpec, RecurrenceSpec, TargetsSpec};
pub use status::{
    CurrentOccurrenceStatus, MAX_HISTORY_RECORDS, MAX_LISTED_FAILURES, MAX_LISTED_TARGETS,
    OccurrenceRebootsStatus, OccurrenceStatus, RebootFailureStatus, RebootScheduleStatus,
    SettledRebootsStatus, TargetEndStatus,
};

/// Kind of a schedule.
pub const KIND: &str = "RebootSchedule";
/// Plural, as in URLs and RBAC rules.
pub const PLURAL: &str = "rebootschedules";
/// Name of the CustomResourceDefinition.
pub const CRD_NAME: &str = "rebootschedules.dogwatch.dev";
/// The CustomResourceDefinition, a YAML document.
pub const CRD_MANIFEST: &str = include_str!("../../../deploy/crds/rebootschedules.yaml");

/// Requests reboots at an appointed time, once or repeatedly: of nodes (only in Dogwatch's own
/// namespace), and of hosts in the schedule's namespace. https://dogwatch.dev/schedules
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("required" = ["spec"])))]
#[serde(rename_all = "camelCase")]
pub struct RebootSchedule {
    /// dogwatch.dev/v1alpha1
    #[serde(default = "api_version::<RebootSchedule>")]
    pub api_version: String,
    /// RebootSchedule
    #[serde(default = "kind::<RebootSchedule>")]
    pub kind: String,
    /// Name and namespace; the schedule's hosts are in the same namespace.
    #[cfg_attr(test, schemars(schema_with = "schema::object_metadata"))]
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The desired schedule. A change applies at once; it does not create occurrences in the past.
    #[serde(default)]
    pub spec: RebootScheduleSpec,
    /// What the controller did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RebootScheduleStatus>,
}

impl RebootSchedule {
    /// A new schedule without status.
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
        spec: RebootScheduleSpec,
    ) -> Self {
        Self {
            api_version: api_version::<Self>(),
            kind: kind::<Self>(),
            metadata: namespaced_meta(namespace, name),
            spec,
            status: None,
        }
    }
}

/// The CustomResourceDefinition.
pub fn schedule_crd() -> Value {
    parse_manifest(CRD_MANIFEST)
}

crate::is_sent_for!(
    RebootSchedule,
    crate::reboot_schedule,
    NamespaceResourceScope
);
