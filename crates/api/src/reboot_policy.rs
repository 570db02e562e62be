//! `RebootPolicy` (`dogwatch.dev/v1alpha1`, cluster-scoped): the rules for the planned reboots of
//! some nodes. Its name is the name of their group. Source: specification §2.6.
//!
//! The types are written by hand beside the schema ([`policy_crd`]), and a test checks that they
//! agree: a derived schema would bring a second model of every Kubernetes type into each build.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::kind::{api_version, kind};

mod crd;
mod policy_name;
pub(crate) mod schema;
mod spec;
mod status;
#[cfg(test)]
mod tests;

pub use crate::kind::{API_VERSION, GROUP, VERSION};
pub use crd::policy_crd;
pub use policy_name::{POLICY_NAME_RULE, policy_name_problem};
pub use spec::{
    AlertsSpec, DrainSpec, GateSpec, MaxUnavailable, OnDrainTimeoutSpec, OnGateTimeoutSpec,
    PausedSpec, PodsGateSpec, PolicyWindow, PrometheusGateSpec, RebootPolicySpec, RebootSpec,
    ReturnGate, ReturnSpec,
};
pub use status::{
    OutNode, PolicyConflictStatus, RebootPolicyStatus, STATUS_LIST_LIMIT, WaitingNode, condition,
};

/// Kind of a policy.
pub const KIND: &str = "RebootPolicy";
/// Plural, as in URLs and RBAC rules.
pub const PLURAL: &str = "rebootpolicies";
/// Name of the CustomResourceDefinition.
pub const CRD_NAME: &str = "rebootpolicies.dogwatch.dev";

/// One policy, as the API server stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RebootPolicy {
    /// [`API_VERSION`].
    #[serde(default = "api_version::<RebootPolicy>")]
    pub api_version: String,
    /// [`KIND`].
    #[serde(default = "kind::<RebootPolicy>")]
    pub kind: String,
    /// Its name is also the name of its group.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Written by a person.
    #[serde(default)]
    pub spec: RebootPolicySpec,
    /// Written by the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RebootPolicyStatus>,
}

impl RebootPolicy {
    /// A new policy without status.
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
