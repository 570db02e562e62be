//! `status`: what the controller observed, and what it intends before it does it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RebootMethod;
#[cfg(test)]
use crate::schema;

/// Types of the conditions.
pub mod condition {
    /// Whether the request can be served at all. False is final.
    pub const ACCEPTED: &str = "Accepted";
    /// Whether something is still to be done, and what it waits for.
    pub const PROGRESSING: &str = "Progressing";
    /// Unknown until the end is known, then True or False, which is final.
    pub const SUCCEEDED: &str = "Succeeded";

    /// Every condition type of a request.
    pub const ALL: [&str; 3] = [ACCEPTED, PROGRESSING, SUCCEEDED];
}

/// `status` of a request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeRebootStatus {
    /// The metadata.generation that the conditions describe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Pending: not on the Node yet. Waiting: the node waits for the lock. Draining, Rebooting,
    /// Returning: what the node does. Held: drained, and kept out of service. Finished: condition
    /// Succeeded has the result.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<NodeRebootPhase>,
    /// What it waits for, or how it ended: one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// UID of the Node when the request was accepted.
    #[serde(default, rename = "nodeUID", skip_serializing_if = "Option::is_none")]
    pub node_uid: Option<String>,
    /// The attempts, the oldest first. Each is written here before the Node is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<RebootAttemptStatus>,
    /// About when the drain begins (median). Absent once it has begun, and while it cannot be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_start: Option<Timestamp>,
    /// About when the node is back in service (median). Absent while it cannot be known, and once the
    /// node is back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_finish: Option<Timestamp>,
    /// Accepted: whether the request can be served. Progressing: whether something is still to be
    /// done. Succeeded: Unknown until the end, then True or False.
    #[cfg_attr(test, schemars(schema_with = "schema::condition_list"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RebootAttemptStatus {
    /// Its method.
    #[cfg_attr(test, schemars(with = "String"))]
    pub method: RebootMethod,
    /// When it was decided; the Node is asked after this.
    pub started_at: Timestamp,
    /// When the drain was seen to be over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained_at: Option<Timestamp>,
    /// When a new boot was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebooted_at: Option<Timestamp>,
    /// When the node was seen back in service; the time for success counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The boot that the attempt ends.
    #[serde(
        default,
        rename = "bootIDBefore",
        skip_serializing_if = "Option::is_none"
    )]
    pub boot_id_before: Option<String>,
    /// The boot after it.
    #[serde(
        default,
        rename = "bootIDAfter",
        skip_serializing_if = "Option::is_none"
    )]
    pub boot_id_after: Option<String>,
    /// With method PowerCycle: the host that is switched off and on. One reboot may serve several
    /// NodeReboots; one of them switches the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerCycleStatus>,
    /// The reason with which it ended, like Rebooted, Released, SuccessNotReached or Aborted. Absent
    /// while it is under way, or while its success is awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// The power cycle of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PowerCycleStatus {
    /// The BareMetalHost, as NAMESPACE/NAME.
    pub host: String,
    /// Its UID: another host of the same name is not switched.
    #[serde(rename = "hostUID")]
    pub host_uid: String,
    /// When it was decided to switch the host off; the key is put on the host after this.
    pub requested_at: Timestamp,
    /// When the host was proved to be off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_at: Option<Timestamp>,
    /// When the key was seen to be gone from the host: nothing of this attempt keeps it off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_at: Option<Timestamp>,
}

/// The phase of a request.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub enum NodeRebootPhase {
    /// The Node does not carry the request yet.
    #[default]
    Pending,
    /// The Node carries the request, and the node waits for the lock.
    Waiting,
    /// The lock is held, the node is cordoned, its pods are leaving.
    Draining,
    /// The reboot command may have been started.
    Rebooting,
    /// A new boot was seen; the node is on its way back into service.
    Returning,
    /// Drained, and kept out of service.
    Held,
    /// Condition Succeeded has the result.
    Finished,
}

impl NodeRebootPhase {
    /// Every phase, in their order.
    pub const ALL: [NodeRebootPhase; 7] = [
        NodeRebootPhase::Pending,
        NodeRebootPhase::Waiting,
        NodeRebootPhase::Draining,
        NodeRebootPhase::Rebooting,
        NodeRebootPhase::Returning,
        NodeRebootPhase::Held,
        NodeRebootPhase::Finished,
    ];

    /// The phase as it is written in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeRebootPhase::Pending => "Pending",
            NodeRebootPhase::Waiting => "Waiting",
            NodeRebootPhase::Draining => "Draining",
            NodeRebootPhase::Rebooting => "Rebooting",
            NodeRebootPhase::Returning => "Returning",
            NodeRebootPhase::Held => "Held",
            NodeRebootPhase::Finished => "Finished",
        }
    }
}
