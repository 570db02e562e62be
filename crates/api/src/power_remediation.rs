//! `PowerRemediation` (`dogwatch.dev/v1alpha1`, namespaced): one machine has failed; its host is
//! held off until that is proved, its Node is released, and the host comes back. Health checks
//! create one from a [`PowerRemediationTemplate`](crate::power_remediation_template). Source:
//! specification §4.2; Cluster API's MachineHealthCheck; medik8s' NodeHealthCheck.

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
mod phase;
mod spec;
mod status;
#[cfg(test)]
mod tests;

pub use crate::kind::{API_VERSION, GROUP, VERSION};
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
/// The CustomResourceDefinition, a YAML document.
pub const CRD_MANIFEST: &str = include_str!("../../../deploy/crds/powerremediations.yaml");
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

/// A request to remediate a failed machine: its host is kept off until that is proved, its Node is
/// released, and the host is powered on again. A health check creates it from a
/// PowerRemediationTemplate; deleting it cancels the remediation. https://dogwatch.dev/remediation
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PowerRemediation {
    /// dogwatch.dev/v1alpha1
    #[serde(default = "api_version::<PowerRemediation>")]
    pub api_version: String,
    /// PowerRemediation
    #[serde(default = "kind::<PowerRemediation>")]
    pub kind: String,
    /// Cluster API sets the Machine's name and owner, medik8s the Node's name in an annotation.
    #[cfg_attr(test, schemars(schema_with = "schema::object_metadata"))]
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What a person or a health check requested.
    #[cfg_attr(test, schemars(extend("x-default" = {})))]
    #[serde(default)]
    pub spec: PowerRemediationSpec,
    /// What the controller did.
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

/// The CustomResourceDefinition.
pub fn remediation_crd() -> Value {
    parse_manifest(CRD_MANIFEST)
}

crate::is_sent_for!(
    PowerRemediation,
    crate::power_remediation,
    NamespaceResourceScope
);
