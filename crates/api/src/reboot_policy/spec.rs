//! `spec`. Texts stay as they were written: `dogwatch_k8s::policy` makes of them what decisions use.
//!
//! An unknown field is an error and not left out: the API server keeps only fields of the installed
//! schema, so one that this program does not know is a rule that it would break.

use dogwatch_core::policy::ReturnGate;
use dogwatch_core::selector::LabelSelector;
use serde::{Deserialize, Serialize};

/// Every part is optional: the coordinator's flags rule where it is silent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RebootPolicySpec {
    /// Which nodes; all where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// Of several that match a node the highest rules; 0 where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// How many of the group may be out at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<MaxUnavailable>,
    /// The lock goes to nodes with the same value of this node label first: an order, and no barrier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_key: Option<String>,
    /// Nothing begins, and a drain is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// When reboots may happen; always where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<Window>>,
    /// How long after one reboot of a node its next may begin; a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_interval: Option<String>,
    /// The drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
    /// The reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboot: Option<Reboot>,
    /// The return.
    #[serde(default, rename = "return", skip_serializing_if = "Option::is_none")]
    pub on_return: Option<Return>,
    /// What must be so before a reboot begins, and again right before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<Gate>>,
}

/// A number of nodes (`2`), or a percentage of the group (`"10%"`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MaxUnavailable {
    /// So many nodes.
    Count(i64),
    /// So many per cent, with the sign.
    Percent(String),
}

/// `paused`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Paused {
    /// Why; shown wherever the pause holds something up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// It ends by itself then (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// One of `windows`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Window {
    /// The days on which it starts: `Mon`, `Tue`, …; every day where it and `rrule` are absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<String>>,
    /// When it starts, like `22:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// When it ends, like `04:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Whose clock (IANA name); UTC where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The days on which it starts, as a recurrence rule (RFC 5545).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rrule: Option<String>,
    /// Dates on which it does not start, like `2026-12-24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_dates: Option<Vec<String>>,
}

/// `drain`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Drain {
    /// How long it may take; a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// What then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
    /// How long the volumes of the drained pods may take to detach; a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_detach_timeout: Option<String>,
    /// Pods that stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<LabelSelector>,
}

/// What follows a drain that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnTimeout {
    /// Undo it, give the lock back, queue again.
    Abort,
    /// Delete what is left.
    Delete,
    /// Reboot all the same.
    Force,
}

/// `reboot`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reboot {
    /// How long a new boot is waited for; a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How often the command may be run in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// A reboot that does not happen is handed over to the power controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate: Option<bool>,
}

/// `return`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Return {
    /// How long the Node must be Ready; a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<String>,
    /// What must be so before the lock goes; all of them where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<ReturnGate>>,
    /// How long that may take; a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_timeout: Option<String>,
    /// What then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_gate_timeout: Option<OnGateTimeout>,
}

/// What follows return gates that stay shut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnGateTimeout {
    /// Keep the lock, and say so.
    Keep,
    /// Release it.
    Release,
}

/// One of `gates`: exactly one kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gate {
    /// Pods on the node that must not be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodsGate>,
    /// A question to Prometheus whose answer must be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<PrometheusGate>,
}

/// `gates[].pods`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodsGate {
    /// Which pods.
    pub selector: LabelSelector,
}

/// `gates[].prometheus`: exactly one of `query` and `alerts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrometheusGate {
    /// The server.
    pub url: String,
    /// A PromQL expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Alerts, as kured's users know them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alerts: Option<Alerts>,
}

/// `gates[].prometheus.alerts`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Alerts {
    /// Names that do not count; a regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,
    /// Only these count; a regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// Pending ones do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firing_only: Option<bool>,
}
