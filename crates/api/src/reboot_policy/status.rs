//! `status` of a policy, written by the controller only.
//!
//! Every write of it reaches every coordinator's watch on policies, so it stays small: lists hold
//! at most [`STATUS_LIST_LIMIT`] entries beside their true length, and a writer should let some
//! seconds pass between two writes.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

/// How many entries each list may have.
pub const STATUS_LIST_LIMIT: usize = 10;

/// Types of the policy's conditions; `dogwatch_core::policy::PolicyReason` has their reasons.
pub mod condition {
    /// True: the policy is valid and obeyed. False: part of it is invalid, and nothing that it
    /// rules begins.
    pub const ACCEPTED: &str = "Accepted";
    /// True: Dogwatch has taken a node of the group out of service.
    pub const PROGRESSING: &str = "Progressing";
    /// True: nodes wait and none of them may begin; the reason is that of the node that waits
    /// longest, from its own conditions (`Paused`, `OutsideWindow`, …).
    pub const BLOCKED: &str = "Blocked";
}

/// `status` of a policy.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RebootPolicyStatus {
    /// The `metadata.generation` that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many nodes the policy rules.
    #[serde(default)]
    pub nodes: u32,
    /// How many of these nodes are Ready and schedulable.
    #[serde(default)]
    pub ready: u32,
    /// How many of them wait because of this policy (its windows, gates, interval or pause) and not
    /// only because of the lock.
    #[serde(default)]
    pub blocked: u32,
    /// How many of them Dogwatch has taken out of service.
    #[serde(default)]
    pub out_total: u32,
    /// The nodes that have been out of service longest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out: Vec<OutNode>,
    /// How many of its nodes wait to be rebooted.
    #[serde(default)]
    pub waiting_total: u32,
    /// The nodes that have waited longest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingNode>,
    /// Policies that apply, in place of this one, to nodes that this one matches too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<PolicyConflictStatus>,
    /// Conditions of the types in [`condition`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A node that Dogwatch has taken out of service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutNode {
    /// Name of the Node.
    pub node: String,
    /// `draining`, `rebooting` or `returning`; `locked` through the lock API; `remediation` while
    /// its machine is being remediated.
    pub phase: String,
    /// When that phase began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Why the reboot was requested.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A node that waits to be rebooted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingNode {
    /// Name of the Node.
    pub node: String,
    /// When it began to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What it waits for, in one CamelCase word.
    pub reason: String,
    /// What it waits for, as a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A policy that rules nodes which this one matches too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyConflictStatus {
    /// Name of the other policy.
    pub policy: String,
    /// How many nodes are concerned.
    pub nodes: u32,
    /// Name of one of these nodes.
    pub example: String,
}
