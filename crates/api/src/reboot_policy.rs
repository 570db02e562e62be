//! `RebootPolicy` (`dogwatch.dev/v1alpha1`, cluster-scoped): what rules the planned reboots of some
//! nodes. Its name is the name of their group. Source: specification §2.6.
//!
//! The types are written by hand beside the schema ([`crd()`]), and a test holds them equal: a
//! derived schema would bring a second model of every Kubernetes type into each build.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::kind::{api_version, kind};

mod crd;
mod name;
pub(crate) mod schema;
mod spec;
mod status;
#[cfg(test)]
mod tests;

pub use crate::kind::{API_VERSION, GROUP, VERSION};
pub use crd::crd;
pub use name::{NAME_RULE, name_problem};
pub use spec::{
    Alerts, Drain, Gate, MaxUnavailable, OnGateTimeout, OnTimeout, Paused, PodsGate,
    PrometheusGate, Reboot, RebootPolicySpec, Return, Window,
};
pub use status::{
    Conflict, OutNode, RebootPolicyStatus, STATUS_LIST_LIMIT, WaitingNode, condition,
};

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
    #[serde(default = "api_version::<RebootPolicy>")]
    pub api_version: String,
    /// [`KIND`].
    #[serde(default = "kind::<RebootPolicy>")]
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

crate::is_sent_for!(RebootPolicy, crate::reboot_policy, ClusterResourceScope);
