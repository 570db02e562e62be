//! `spec`, with unparsed texts: `dogwatch_k8s::policy` converts it to the types that decisions use.
//!
//! An unknown field is an error and is not ignored: the API server keeps only fields of the
//! installed schema, so an unknown one is a rule that this program would break.

use serde::{Deserialize, Serialize};

use crate::selector::LabelSelector;

/// `spec` of a policy. Every part is optional; where it is missing, the coordinator's flags apply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RebootPolicySpec {
    /// The nodes that the policy selects; default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// Of several policies that match a node the highest priority applies; default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// How many nodes of the group may be unavailable at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<MaxUnavailable>,
    /// The lock goes to nodes with the same value of this node label first: an order, and no
    /// barrier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_key: Option<String>,
    /// While paused, nothing begins, and a drain is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PausedSpec>,
    /// When reboots may happen; default always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<PolicyWindow>>,
    /// Minimum time between the end of a node's reboot and the beginning of its next; a Go
    /// duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_interval: Option<String>,
    /// Rules of the drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainSpec>,
    /// Rules of the reboot itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboot: Option<RebootSpec>,
    /// Rules of the return.
    #[serde(default, rename = "return", skip_serializing_if = "Option::is_none")]
    pub on_return: Option<ReturnSpec>,
    /// Checked before a reboot begins, and again right before the reboot command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<GateSpec>>,
}

/// A number of nodes (`2`), or a percentage of the group (`"10%"`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MaxUnavailable {
    /// A number of nodes.
    Count(i64),
    /// A percentage, with the sign.
    Percent(String),
}

/// `spec.paused`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PausedSpec {
    /// Shown wherever the pause holds something up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the pause ends by itself (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// One of `spec.windows`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyWindow {
    /// The days on which the window starts: `Mon`, `Tue`, …; default every day, unless `rrule` is
    /// set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<String>>,
    /// When the window starts, like `22:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// When the window ends, like `04:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Time zone of the times (IANA name); default UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The days on which the window starts, as a recurrence rule (RFC 5545).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rrule: Option<String>,
    /// Dates on which the window does not start, like `2026-12-24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_dates: Option<Vec<String>>,
}

/// `spec.drain`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DrainSpec {
    /// How long the drain may take; a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// What happens after the timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnDrainTimeoutSpec>,
    /// How long the volumes of the drained pods may take to detach; a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_detach_timeout: Option<String>,
    /// Pods that are not evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<LabelSelector>,
}

/// What happens after a drain that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDrainTimeoutSpec {
    /// Undo the drain, release the lock, wait again.
    Abort,
    /// Delete the pods that are left.
    Delete,
    /// Reboot all the same.
    Force,
}

/// `spec.reboot`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RebootSpec {
    /// How long to wait for a new boot; a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How often the reboot command may be run in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Whether a reboot that does not happen is handed over to the power controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate: Option<bool>,
}

/// `spec.return`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReturnSpec {
    /// How long the Node must be Ready; a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<String>,
    /// Gates that must be open before the lock is released; default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<ReturnGate>>,
    /// How long to wait for the gates; a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_timeout: Option<String>,
    /// What happens after the timeout of the gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_gate_timeout: Option<OnGateTimeoutSpec>,
}

/// What must be ready before the lock is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
#[serde(rename_all = "lowercase")]
pub enum OnGateTimeoutSpec {
    /// Keep the lock, and report it.
    Keep,
    /// Release the lock.
    Release,
}

/// One of `spec.gates`: exactly one kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GateSpec {
    /// Open while no pod on the node matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodsGateSpec>,
    /// Open while the result of a Prometheus query is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<PrometheusGateSpec>,
}

/// `spec.gates[].pods`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodsGateSpec {
    /// The pods that close the gate.
    pub selector: LabelSelector,
}

/// `spec.gates[].prometheus`: exactly one of `query` and `alerts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrometheusGateSpec {
    /// URL of the server.
    pub url: String,
    /// A PromQL expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Alerts, selected as in kured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alerts: Option<AlertsSpec>,
}

/// `spec.gates[].prometheus.alerts`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AlertsSpec {
    /// Alert names to ignore; a regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,
    /// Only alert names that match count; a regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// Pending alerts do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firing_only: Option<bool>,
}
