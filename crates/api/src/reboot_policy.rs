//! `RebootPolicy` (`dogwatch.dev/v1alpha1`, cluster-scoped): what rules the planned reboots of some
//! nodes. Its name is the name of their group. Source: specification §2.6.
//!
//! The types are written by hand beside the schema ([`crd()`]), and a test holds them equal: a
//! derived schema would bring a second model of every Kubernetes type into each build.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

mod crd;
mod name;
pub(crate) mod schema;
mod spec;
mod status;
#[cfg(test)]
mod tests;

pub use crd::crd;
pub use name::{NAME_RULE, name_problem};
pub use spec::{
    Alerts, Drain, Gate, MaxUnavailable, OnGateTimeout, OnTimeout, Paused, PodsGate,
    PrometheusGate, Reboot, RebootPolicySpec, Return, Window,
};
pub use status::{
    Conflict, OutNode, RebootPolicyStatus, STATUS_LIST_LIMIT, WaitingNode, condition,
};

/// Its group and version.
pub const API_VERSION: &str = "dogwatch.dev/v1alpha1";
/// Its kind.
pub const KIND: &str = "RebootPolicy";
/// Its plural, as in URLs and RBAC rules.
pub const PLURAL: &str = "rebootpolicies";
/// The name of its CustomResourceDefinition.
pub const CRD_NAME: &str = "rebootpolicies.dogwatch.dev";

/// One policy, as the API server has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RebootPolicy {
    /// [`API_VERSION`].
    #[serde(default = "api_version")]
    pub api_version: String,
    /// [`KIND`].
    #[serde(default = "kind")]
    pub kind: String,
    /// Its name, which is also the name of its group.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What a person wrote.
    #[serde(default)]
    pub spec: RebootPolicySpec,
    /// What the controller saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RebootPolicyStatus>,
}

impl RebootPolicy {
    /// One to be sent.
    pub fn new(name: impl Into<String>, spec: RebootPolicySpec) -> Self {
        Self {
            api_version: api_version(),
            kind: kind(),
            metadata: ObjectMeta {
                name: Some(name.into()),
                ..ObjectMeta::default()
            },
            spec,
            status: None,
        }
    }
}

impl k8s_openapi::Resource for RebootPolicy {
    const API_VERSION: &'static str = API_VERSION;
    const GROUP: &'static str = "dogwatch.dev";
    const KIND: &'static str = KIND;
    const VERSION: &'static str = "v1alpha1";
    const URL_PATH_SEGMENT: &'static str = PLURAL;
    type Scope = k8s_openapi::ClusterResourceScope;
}

impl k8s_openapi::Metadata for RebootPolicy {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn api_version() -> String {
    API_VERSION.to_owned()
}

fn kind() -> String {
    KIND.to_owned()
}
