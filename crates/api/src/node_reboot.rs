//! `NodeReboot` (`dogwatch.dev/v1alpha1`, cluster-scoped): a reboot of one node that others ask for
//! and follow. Source: specification §10.1.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kind::{api_version, kind};
use crate::manifest::parse_manifest;
#[cfg(test)]
use crate::schema;

#[cfg(test)]
pub(crate) mod crd;
mod method;
mod spec;
mod status;
#[cfg(test)]
mod tests;

pub use crate::kind::{API_VERSION, GROUP, VERSION};
pub use method::RebootMethod;
pub use spec::{
    DEFAULT_TTL_AFTER_FINISHED, DEFAULT_WITHIN, MAX_ESCALATIONS, NodeRebootSpec, RequiredCondition,
    SuccessSpec,
};
pub use status::{
    NodeRebootPhase, NodeRebootStatus, PowerCycleStatus, RebootAttemptStatus, condition,
};

/// Kind of a request.
pub const KIND: &str = "NodeReboot";
/// Plural, as in URLs and RBAC rules.
pub const PLURAL: &str = "nodereboots";
/// Name of the CustomResourceDefinition.
pub const CRD_NAME: &str = "nodereboots.dogwatch.dev";
/// The CustomResourceDefinition, a YAML document.
pub const CRD_MANIFEST: &str = include_str!("../../../deploy/crds/nodereboots.yaml");
/// Keeps the object while its Node carries the request or is out of service for it.
pub const FINALIZER: &str = "dogwatch.dev/node-reboot";

/// Requests that one node is taken out of service and rebooted, or held, and tells how it ended in
/// condition Succeeded. Deleting it cancels what has not begun. https://dogwatch.dev/ask-for-a-reboot
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("required" = ["spec"])))]
#[serde(rename_all = "camelCase")]
pub struct NodeReboot {
    /// dogwatch.dev/v1alpha1
    #[serde(default = "api_version::<NodeReboot>")]
    pub api_version: String,
    /// NodeReboot
    #[serde(default = "kind::<NodeReboot>")]
    pub kind: String,
    /// Its name; the requester chooses it.
    #[cfg_attr(test, schemars(schema_with = "schema::object_metadata"))]
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is requested. Only cancel can be changed later.
    #[serde(default)]
    pub spec: NodeRebootSpec,
    /// What the controller observed and did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<NodeRebootStatus>,
}

impl NodeReboot {
    /// A new request without status.
    pub fn new(name: impl Into<String>, spec: NodeRebootSpec) -> Self {
        Self {
            api_version: api_version::<Self>(),
            kind: kind::<Self>(),
            metadata: ObjectMeta {
                name: Some(name.into()),
                ..ObjectMeta::default()
            },
            spec,
            status: None,
        }
    }
}

/// The CustomResourceDefinition.
pub fn node_reboot_crd() -> Value {
    parse_manifest(CRD_MANIFEST)
}

crate::is_sent_for!(NodeReboot, crate::node_reboot, ClusterResourceScope);
