//! `PowerRemediation` (`dogwatch.dev/v1alpha1`, namespaced): one machine has failed; its host is
//! held off until that is proved, its Node is released, and the host comes back. Health checks
//! create one from a [`PowerRemediationTemplate`](crate::power_remediation_template). Source:
//! specification §4.2; Cluster API's MachineHealthCheck; medik8s' NodeHealthCheck.
//!
//! The types are written by hand beside the schema ([`remediation_crd`]); a test checks that they
//! agree.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::kind::{api_version, kind, namespaced_meta};

mod crd;
mod phase;
pub(crate) mod schema;
mod spec;
mod status;
#[cfg(test)]
mod tests;

pub use crate::kind::{API_VERSION, GROUP, VERSION};
pub(crate) use crd::contract_labels;
pub use crd::remediation_crd;
pub use phase::PowerRemediationPhase;
pub use spec::{
    DEFAULT_RETRY_LIMIT, DEFAULT_TIMEOUT, MAX_RETRY_LIMIT, PowerRemediationSpec, StrategySpec,
    StrategyType,
};
pub use status::{
    AttemptStatus, HostReference, MAX_TIMELINE_STEPS, NodeReference, OffProofStatus,
    PowerRemediationStatus, TimelineEntry,
};

/// Kind of a request.
pub const KIND: &str = "PowerRemediation";
/// Plural, as in URLs and RBAC rules. Cluster API derives the name of the CustomResourceDefinition
/// from the kind by this rule.
pub const PLURAL: &str = "powerremediations";
/// Name of the CustomResourceDefinition.
pub const CRD_NAME: &str = "powerremediations.dogwatch.dev";
/// Keeps the object until nothing of ours is left on host and Node. Source: specification §4.2.
pub const FINALIZER: &str = "dogwatch.dev/power-remediation";

/// Types of the request's conditions.
pub mod condition {
    /// Whether the remediation is under way. Source: medik8s.
    pub const PROCESSING: &str = "Processing";
    /// True: a new boot is Ready. False: given up, the next remediation may begin. Source: medik8s.
    pub const SUCCEEDED: &str = "Succeeded";
    /// Always False: the Node comes back under its name. Source: medik8s.
    pub const PERMANENT_NODE_DELETION_EXPECTED: &str = "PermanentNodeDeletionExpected";

    /// Every condition type of a request, including the one that Machines and Nodes have as well.
    pub const ALL: [&str; 4] = [
        PROCESSING,
        SUCCEEDED,
        PERMANENT_NODE_DELETION_EXPECTED,
        crate::condition::REMEDIATION,
    ];
}

/// One request, as the API server stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PowerRemediation {
    /// [`API_VERSION`].
    #[serde(default = "api_version::<PowerRemediation>")]
    pub api_version: String,
    /// [`KIND`].
    #[serde(default = "kind::<PowerRemediation>")]
    pub kind: String,
    /// Cluster API sets the Machine's name and owner, medik8s the Node's name in an annotation.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// How the machine is remediated.
    #[serde(default)]
    pub spec: PowerRemediationSpec,
    /// Written by the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PowerRemediationStatus>,
}

impl PowerRemediation {
    /// A new request without status.
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
        spec: PowerRemediationSpec,
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
    PowerRemediation,
    crate::power_remediation,
    NamespaceResourceScope
);
