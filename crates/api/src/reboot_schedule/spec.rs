//! `spec`, with unparsed texts: `dogwatch_k8s::schedule` converts it to the types that decisions
//! use.
//!
//! An unknown field is an error and is not ignored: it may be a reason not to reboot.

use dogwatch_core::selector::LabelSelector;
use serde::{Deserialize, Serialize};

/// `spec` of a schedule.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RebootScheduleSpec {
    /// The time of a single reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The times of recurring reboots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurrence: Option<RecurrenceSpec>,
    /// Time zone of the times (IANA name); default UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// How late an occurrence may still begin; a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_deadline: Option<String>,
    /// While true, no request is issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Why the reboots are requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How hosts that carry no Node are switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<HostPowerOffMode>,
    /// Nodes to reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<TargetsSpec>,
    /// Hosts to reboot, in the schedule's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<TargetsSpec>,
}

/// `spec.recurrence`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecurrenceSpec {
    /// The days of the reboots: `Mon`, `Tue`, …; default every day, unless `rrule` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<String>>,
    /// The time of day, like `03:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// The days of the reboots, as a recurrence rule (RFC 5545).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rrule: Option<String>,
    /// Dates without a reboot, like `2026-12-24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_dates: Option<Vec<String>>,
}

/// How a host is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostPowerOffMode {
    /// Ask its operating system to shut down first.
    Soft,
    /// Cut the power at once.
    Hard,
}

/// `spec.nodes` and `spec.hosts`: the objects with these names, and those that the selector
/// matches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TargetsSpec {
    /// Names of Nodes or hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// Labels of Nodes or hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}
