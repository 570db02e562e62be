//! `spec.return`, as texts.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use crate::schema::{self, validation_rule};

/// `spec.return`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReturnSpec {
    /// How long the Node must be Ready before it is uncordoned. Default: the coordinator's
    /// --settle.
    #[cfg_attr(test, schemars(schema_with = "schema::duration_text"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<String>,
    /// Return gates that must be open before the lock is released; an empty list means none.
    /// Default: all of them.
    #[cfg_attr(test, schemars(length(max = 3), extend("x-kubernetes-list-type" = "set")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<ReturnGate>>,
    /// How long the return may take. Default: 15m.
    #[cfg_attr(test, schemars(schema_with = "schema::time_limit"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_timeout: Option<String>,
    /// What happens after the timeout. keep: the lock stays held, and a Warning Event reports it.
    /// release: the lock is released. Default: keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_gate_timeout: Option<OnGateTimeoutSpec>,
    /// What must hold on the Node before it is uncordoned, all of it: devices that are registered,
    /// conditions of a health checker, startup taints that are gone. Do not list what needs the node
    /// schedulable: it would never come. Default: none.
    #[cfg_attr(test, schemars(length(min = 1, max = 16), extend("x-kubernetes-validations" = [
        validation_rule("self.all(a, self.exists_one(b, b == a))", "write each check once"),
    ])))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Vec<ReadyCheckSpec>>,
    /// How long that may take, from when the Node has been Ready for `settle`. Default: 15m.
    #[cfg_attr(test, schemars(schema_with = "schema::time_limit"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_timeout: Option<String>,
    /// What happens after the timeout. Keep: the node stays cordoned and its lock held, and a
    /// Warning Event reports it. Proceed: the node is uncordoned. Default: Keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_ready_timeout: Option<OnReadyTimeoutSpec>,
}

/// DaemonSetPods: the node's DaemonSet pods are ready. DisruptionBudgets: no PodDisruptionBudget
/// that covered a drained pod lacks healthy pods. Volumes: the node's volumes are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum ReturnGate {
    /// The node's DaemonSet pods are ready.
    DaemonSetPods,
    /// No PodDisruptionBudget that covered a pod of the drain lacks healthy pods.
    DisruptionBudgets,
    /// The node's volumes are attached.
    Volumes,
}

impl ReturnGate {
    /// Every gate.
    pub const ALL: [ReturnGate; 3] = [
        ReturnGate::DaemonSetPods,
        ReturnGate::DisruptionBudgets,
        ReturnGate::Volumes,
    ];
}

/// What happens if return gates stay shut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OnGateTimeoutSpec {
    /// Keep the lock, and report it.
    Keep,
    /// Release the lock.
    Release,
}

/// What happens if a node does not become usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum OnReadyTimeoutSpec {
    /// Keep cordon and lock, and report it.
    Keep,
    /// Uncordon.
    Proceed,
}

/// One check of the Node. Exactly one field is set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("x-kubernetes-validations" = [validation_rule(
    "[has(self.condition), has(self.noTaint), has(self.resource)].filter(x, x).size() == 1",
    "write exactly one of condition, noTaint and resource",
), validation_rule(
    "!has(self.noTaint) || self.noTaint != 'node.kubernetes.io/unschedulable'",
    "leave this taint out: it is the cordon, which stays until the checks are met",
)])))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadyCheckSpec {
    /// A condition of the Node that was written since the boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<ReadyConditionSpec>,
    /// The Node has no taint with this key.
    #[cfg_attr(test, schemars(schema_with = "schema::label_key"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_taint: Option<String>,
    /// The Node has some of this resource allocatable, like nvidia.com/gpu.
    #[cfg_attr(test, schemars(length(max = 317), extend("x-kubernetes-validations" = [
        validation_rule(
            "self.matches(r'^([a-z0-9][-a-z0-9.]*/[A-Za-z0-9][-A-Za-z0-9_.]*|hugepages-[0-9]+[KMGT]i)$')",
            "write an extended resource like nvidia.com/gpu, or hugepages-1Gi",
        ),
    ])))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
}

/// The taint of a cordon, which stays until the checks are met.
pub const CORDON_TAINT: &str = "node.kubernetes.io/unschedulable";

/// Whether a resource can be asked for: every Node has the others.
pub fn is_ready_resource(name: &str) -> bool {
    name.contains('/') || name.starts_with("hugepages-")
}

/// `spec.return.ready[].condition`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReadyConditionSpec {
    /// The condition's type, like GpuHealthy.
    #[cfg_attr(test, schemars(schema_with = "schema::label_key"))]
    #[serde(rename = "type")]
    pub kind: String,
    /// The status that it must have. There are conditions where True means healthy, and others
    /// where it means a fault.
    pub status: ReadyConditionStatus,
}

/// A condition's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum ReadyConditionStatus {
    /// True.
    True,
    /// False.
    False,
    /// Unknown.
    Unknown,
}

impl ReadyConditionStatus {
    /// The Kubernetes spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            ReadyConditionStatus::True => "True",
            ReadyConditionStatus::False => "False",
            ReadyConditionStatus::Unknown => "Unknown",
        }
    }
}
