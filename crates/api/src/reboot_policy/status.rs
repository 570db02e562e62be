//! `status` of a policy, written by the controller only.
//!
//! Every write of it reaches every coordinator's watch on policies, so it stays small: lists hold
//! at most [`STATUS_LIST_LIMIT`] entries beside their true length, and a writer should let some
//! seconds pass between two writes.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rollout::PolicyRolloutState;
#[cfg(test)]
use crate::schema;

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
    /// True: too many reboots failed, and nothing begins until somebody resumes the policy. Only a
    /// policy with `rollout` has it.
    pub const HALTED: &str = "Halted";
}

/// `status` of a policy.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RebootPolicyStatus {
    /// The metadata.generation that the condition describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many nodes the policy applies to.
    #[serde(default)]
    pub nodes: u32,
    /// How many of these nodes are Ready and schedulable.
    #[serde(default)]
    pub ready: u32,
    /// How many nodes wait because of this policy and not only for the lock.
    #[serde(default)]
    pub blocked: u32,
    /// How many nodes are unavailable because of Dogwatch.
    #[serde(default)]
    pub out_total: u32,
    /// The nodes that have been unavailable longest.
    #[cfg_attr(test, schemars(length(max = STATUS_LIST_LIMIT)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out: Vec<OutNode>,
    /// How many nodes wait to be rebooted.
    #[serde(default)]
    pub waiting_total: u32,
    /// The nodes that have waited longest.
    #[cfg_attr(test, schemars(length(max = STATUS_LIST_LIMIT)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingNode>,
    /// Policies that apply, in place of this one, to nodes that this one matches too.
    #[cfg_attr(test, schemars(length(max = STATUS_LIST_LIMIT)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<PolicyConflictStatus>,
    /// How far the rollout is; only if the policy has spec.rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<PolicyRolloutState>,
    /// Accepted: whether the policy is valid. Progressing: whether a node is unavailable because of
    /// Dogwatch. Blocked: whether nodes wait and none may begin. Halted: whether too many
    /// reboots failed.
    #[cfg_attr(test, schemars(schema_with = "schema::condition_list"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A node that is unavailable because of Dogwatch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutNode {
    /// The Node's name.
    pub node: String,
    /// draining, rebooting, holding or returning; locked while the lock API holds it; remediation
    /// while its machine is being remediated.
    pub phase: String,
    /// Since when it is in that phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Why the reboot was requested.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A node that waits to be rebooted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaitingNode {
    /// The Node's name.
    pub node: String,
    /// Since when it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What it waits for, in one word.
    pub reason: String,
    /// What it waits for, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A policy that overrides this one on some nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyConflictStatus {
    /// The policy that applies to them.
    pub policy: String,
    /// How many nodes.
    pub nodes: u32,
    /// One of them.
    pub example: String,
}
