//! `status`: written by the controller only.
//!
//! Every write of it reaches every coordinator's watch on policies, so it stays small: lists hold
//! at most [`STATUS_LIST_LIMIT`] entries beside their true length, and a writer should let some
//! seconds pass between two writes.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

/// How many entries each list may have.
pub const STATUS_LIST_LIMIT: usize = 10;

/// Types and reasons of its conditions.
pub mod condition {
    /// True: it is understood and obeyed. False: part of it cannot be understood, and nothing that
    /// it governs begins.
    pub const ACCEPTED: &str = "Accepted";
    /// Reason of [`ACCEPTED`] when it is True.
    pub const VALID: &str = "Valid";
    /// Reason of [`ACCEPTED`] when it is False; the message names the fields.
    pub const INVALID: &str = "Invalid";
    /// True: a node of the group is out of service on Dogwatch's account.
    pub const PROGRESSING: &str = "Progressing";
    /// True: nodes wait and none of them may go; the reason is that of the one that waits longest,
    /// as its own Node conditions have it (`Paused`, `OutsideWindow`, …).
    pub const BLOCKED: &str = "Blocked";
    /// Reason of [`PROGRESSING`] and [`BLOCKED`] when nobody is out or waits.
    pub const IDLE: &str = "Idle";
    /// Reason of [`PROGRESSING`] when it is True.
    pub const NODES_OUT: &str = "NodesOut";
    /// Reason of [`BLOCKED`] when somebody waits only for the one who is out.
    pub const IN_TURN: &str = "InTurn";
}

/// What the controller saw.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RebootPolicyStatus {
    /// The `metadata.generation` that it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many nodes it rules.
    #[serde(default)]
    pub nodes: u32,
    /// How many of them are Ready and schedulable.
    #[serde(default)]
    pub ready: u32,
    /// How many of them wait, held back by this policy (its windows, gates, interval or pause) and
    /// not only by the lock.
    #[serde(default)]
    pub blocked: u32,
    /// How many of them are out of service on Dogwatch's account.
    #[serde(default)]
    pub out_total: u32,
    /// Those that have been out longest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out: Vec<OutNode>,
    /// How many of them wait to be rebooted.
    #[serde(default)]
    pub waiting_total: u32,
    /// Those that wait longest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingNode>,
    /// Policies that rule nodes which this one matches too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
    /// See [`condition`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A node that is out of service on Dogwatch's account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutNode {
    /// The Node's name.
    pub node: String,
    /// `draining`, `rebooting` or `returning`; `locked` through the lock API; `remediation` while its
    /// machine is being remediated.
    pub phase: String,
    /// Since when it is in that phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Why it was to be rebooted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A node that waits to be rebooted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingNode {
    /// The Node's name.
    pub node: String,
    /// Since when it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// For what, in one CamelCase word.
    pub reason: String,
    /// For what, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A policy that this one lost nodes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    /// The one that rules them.
    pub policy: String,
    /// How many nodes.
    pub nodes: u32,
    /// One of them.
    pub example: String,
}
