//! `PowerRemediation` (`dogwatch.dev/v1alpha1`, namespaced): one machine has failed; its host is held off until
//! that is proved, its Node released, and it comes back. Health checks make one from a
//! [`PowerRemediationTemplate`](crate::power_remediation_template). Source: specification §4.2;
//! Cluster API's MachineHealthCheck; medik8s' NodeHealthCheck.
//!
//! The types are written by hand beside the schema ([`crd()`]), and a test holds them equal.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::kind::{api_version, kind, placed};

mod crd;
mod phase;
pub(crate) mod schema;
mod spec;
mod status;
#[cfg(test)]
mod tests;

pub use crate::kind::{API_VERSION, GROUP, VERSION};
pub use crd::crd;
pub(crate) use crd::labels;
pub use phase::Phase;
pub use spec::{
    DEFAULT_RETRY_LIMIT, DEFAULT_TIMEOUT, MAX_RETRY_LIMIT, PowerRemediationSpec, Strategy,
    StrategyType,
};
pub use status::{
    Attempt, HostReference, NodeReference, OffProof, PowerRemediationStatus, TimelineEntry,
};

/// Its kind.
pub const KIND: &str = "PowerRemediation";
/// Its plural, as in URLs and RBAC rules. Cluster API makes the name of the CustomResourceDefinition of
/// the kind, by this rule.
pub const PLURAL: &str = "powerremediations";
/// The name of its CustomResourceDefinition.
pub const CRD_NAME: &str = "powerremediations.dogwatch.dev";
/// Keeps it until nothing of ours is left on host and Node. Source: specification §4.2.
pub const FINALIZER: &str = "dogwatch.dev/power-remediation";

/// Types of its conditions.
pub mod condition {
    /// Whether it is being worked on. Source: medik8s.
    pub const PROCESSING: &str = "Processing";
    /// True: a new boot is Ready. False: given up, the next remediation may begin. Source: medik8s.
    pub const SUCCEEDED: &str = "Succeeded";
    /// Always False: the Node comes back under its name. Source: medik8s.
    pub const PERMANENT_NODE_DELETION_EXPECTED: &str = "PermanentNodeDeletionExpected";

    /// All of them, with the one that Machines and Nodes have as well.
    pub const ALL: [&str; 4] = [
        PROCESSING,
        SUCCEEDED,
        PERMANENT_NODE_DELETION_EXPECTED,
        crate::condition::REMEDIATION,
    ];
}

/// One request, as the API server has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PowerRemediation {
    /// [`API_VERSION`].
    #[serde(default = "api_version::<PowerRemediation>")]
    pub api_version: String,
    /// [`KIND`].
    #[serde(default = "kind::<PowerRemediation>")]
    pub kind: String,
    /// Cluster API gives it its Machine's name and owner, medik8s its Node's name by annotation.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// How.
    #[serde(default)]
    pub spec: PowerRemediationSpec,
    /// What the controller did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PowerRemediationStatus>,
}

impl PowerRemediation {
    /// One to be sent.
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
        spec: PowerRemediationSpec,
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
    PowerRemediation,
    crate::power_remediation,
    NamespaceResourceScope
);
