//! `RebootSchedule` (`dogwatch.dev/v1alpha1`, namespaced): reboots of nodes, and of hosts in its
//! namespace, at given times. Source: specification §5.
//!
//! The types are written by hand beside the schema ([`schedule_crd`]); a test checks that they
//! agree.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::kind::{api_version, kind, namespaced_meta};

mod crd;
mod schema;
mod spec;
mod status;
#[cfg(test)]
mod tests;

pub use crate::kind::{API_VERSION, GROUP, VERSION};
pub use crd::schedule_crd;
pub use spec::{HostPowerOffMode, RebootScheduleSpec, RecurrenceSpec, TargetsSpec};
pub use status::{
    CurrentOccurrenceStatus, MAX_HISTORY_RECORDS, MAX_LISTED_TARGETS, OccurrenceStatus,
    RebootScheduleStatus, TargetEndStatus,
};

/// Kind of a schedule.
pub const KIND: &str = "RebootSchedule";
/// Plural, as in URLs and RBAC rules.
pub const PLURAL: &str = "rebootschedules";
/// Name of the CustomResourceDefinition.
pub const CRD_NAME: &str = "rebootschedules.dogwatch.dev";

/// One schedule, as the API server stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RebootSchedule {
    /// [`API_VERSION`].
    #[serde(default = "api_version::<RebootSchedule>")]
    pub api_version: String,
    /// [`KIND`].
    #[serde(default = "kind::<RebootSchedule>")]
    pub kind: String,
    /// Name and namespace; the schedule's hosts are in the same namespace.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Written by a person.
    #[serde(default)]
    pub spec: RebootScheduleSpec,
    /// Written by the controller.
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

crate::is_sent_for!(
    RebootSchedule,
    crate::reboot_schedule,
    NamespaceResourceScope
);
