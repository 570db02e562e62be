//! `RebootPolicy` (`dogwatch.dev/v1alpha1`, cluster-scoped): the rules for the planned reboots of
//! some nodes. Its name is the name of their group. Source: specification §2.6.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kind::{api_version, kind};
use crate::manifest::parse_manifest;

#[cfg(test)]
pub(crate) mod crd;
mod drain_rules;
mod policy_name;
mod return_spec;
mod rollout;
mod spec;
mod status;
#[cfg(test)]
mod tests;

pub use crate::kind::{API_VERSION, GROUP, VERSION};
pub use drain_rules::{DrainRuleAction, DrainRulePods, DrainRuleSpec, HonoredMark};
pub use policy_name::{POLICY_NAME_RULE, policy_name_problem};
pub use return_spec::{
    CORDON_TAINT, OnGateTimeoutSpec, OnReadyTimeoutSpec, ReadyCheckSpec, ReadyConditionSpec,
    ReadyConditionStatus, ReturnGate, ReturnSpec, is_ready_resource,
};
pub use rollout::{
    CanaryNode, CanarySpec, FailedRolloutNode, PolicyRolloutState, RolloutHalt, RolloutNode,
    RolloutPhase, RolloutSpec,
};
pub use spec::{
    AlertsSpec, DrainSpec, GateSpec, MaxUnavailable, OnDrainTimeoutSpec, PausedSpec, PodsGateSpec,
    PolicyWindow, PrometheusGateSpec, RebootPolicySpec, RebootSpec,
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
/// The CustomResourceDefinition, a YAML document.
pub const CRD_MANIFEST: &str = include_str!("../../../deploy/crds/rebootpolicies.yaml");

/// The rules for the planned reboots of the nodes that it selects. The policy's name is also the
/// name of their group, which shares a lock and a budget. The coordinator's flags apply to each
/// field that is not set. https://dogwatch.dev/reboot-policy
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(
    extend("required" = ["spec"]),
    extend("x-kubernetes-validations" = crd::policy_rules()),
))]
#[serde(rename_all = "camelCase")]
pub struct RebootPolicy {
    /// dogwatch.dev/v1alpha1
    #[serde(default = "api_version::<RebootPolicy>")]
    pub api_version: String,
    /// RebootPolicy
    #[serde(default = "kind::<RebootPolicy>")]
    pub kind: String,
    /// Its name is also the name of its group.
    #[cfg_attr(test, schemars(schema_with = "crd::policy_metadata"))]
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The desired rules. Changes apply at once, also to reboots under way.
    #[serde(default)]
    pub spec: RebootPolicySpec,
    /// What the controller observed. Each list has at most 10 entries; its true length is given
    /// beside it.
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

/// The CustomResourceDefinition.
pub fn policy_crd() -> Value {
    parse_manifest(CRD_MANIFEST)
}

crate::is_sent_for!(RebootPolicy, crate::reboot_policy, ClusterResourceScope);
