//! `RebootSchedule` (`dogwatch.dev/v1alpha1`, namespaced): reboots at an appointed time, of nodes and
//! of hosts in its namespace. Source: specification §5.
//!
//! The types are written by hand beside the schema ([`crd()`]), and a test holds them equal.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::kind::{api_version, kind, placed};

mod crd;
mod schema;
mod spec;
mod status;
#[cfg(test)]
mod tests;

pub use crate::kind::{API_VERSION, GROUP, VERSION};
pub use crd::crd;
pub use spec::{Chosen, Mode, RebootScheduleSpec, Recurrence};
pub use status::{Current, Occurrence, RebootScheduleStatus, TargetEnd};

/// Its kind.
pub const KIND: &str = "RebootSchedule";
/// Its plural, as in URLs and RBAC rules.
pub const PLURAL: &str = "rebootschedules";
/// The name of its CustomResourceDefinition.
pub const CRD_NAME: &str = "rebootschedules.dogwatch.dev";

/// One schedule, as the API server has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RebootSchedule {
    /// [`API_VERSION`].
    #[serde(default = "api_version::<RebootSchedule>")]
    pub api_version: String,
    /// [`KIND`].
    #[serde(default = "kind::<RebootSchedule>")]
    pub kind: String,
    /// Its name and namespace; its hosts live there too.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What a person wrote.
    #[serde(default)]
    pub spec: RebootScheduleSpec,
    /// What the controller did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RebootScheduleStatus>,
}

impl RebootSchedule {
    /// One to be sent.
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
        spec: RebootScheduleSpec,
    ) -> Self {
        Self {
            api_version: api_version::<Self>(),
            kind: kind::<Self>(),
            metadata: placed(namespace, name),
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
