//! `status`: what the controller did, and what it intends before it does it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PowerRemediationPhase;
#[cfg(test)]
use crate::schema;

/// How many steps a timeline has: the first and the newest.
pub const MAX_TIMELINE_STEPS: usize = 32;

/// `status` of a request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PowerRemediationStatus {
    /// The metadata.generation that the condition describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The current step, for people: one of Waiting, PoweringOff, Releasing, PoweringOn, Succeeded,
    /// Failed, Withdrawn.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PowerRemediationPhase>,
    /// When it was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended, with success or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The attempt under way, or the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptStatus>,
    /// The BareMetalHost that is kept off. If a later attempt finds another host, it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostReference>,
    /// The Node that is released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeReference>,
    /// timeAdded of the taint node.kubernetes.io/out-of-service that this request set, until the
    /// taint is removed. Somebody else set a taint with another time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tainted_at: Option<Timestamp>,
    /// What proved the host off, in the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_proof: Option<OffProofStatus>,
    /// Its steps, the oldest first.
    #[cfg_attr(test, schemars(length(max = MAX_TIMELINE_STEPS)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineEntry>,
    /// Processing: whether the controller works on it. Succeeded: True when the Node is Ready with
    /// a new boot, False when the remediation was given up. PermanentNodeDeletionExpected: False,
    /// because the Node comes back. Remediation: whether it is under way, and the reason for its
    /// current step.
    #[cfg_attr(test, schemars(schema_with = "schema::condition_list"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One attempt: off, release, on, Ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AttemptStatus {
    /// Which, from 1.
    #[cfg_attr(test, schemars(range(min = 1), extend("format" = "int32")))]
    pub number: u32,
    /// When it began; its timeout counts from here.
    pub started_at: Timestamp,
    /// When the reboot key was seen on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_at: Option<Timestamp>,
    /// When the host was proved off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_confirmed_at: Option<Timestamp>,
    /// When the Node was seen deleted, or when its taint was seen and no workload was left on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_at: Option<Timestamp>,
    /// When the reboot key was seen removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_removed_at: Option<Timestamp>,
}

/// The host that a request is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// The Node that a request is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeReference {
    /// Its name.
    pub name: String,
    /// Its UID when this remediation began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The boot that the remediation must end.
    #[serde(default, rename = "bootID", skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
}

/// What proved the host off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OffProofStatus {
    /// OurCommand: the BMC accepted Dogwatch's power-off, and reported off twice. TheirController:
    /// another power controller switches the host, and the BMC reported off twice. Person: a person
    /// confirmed it.
    pub source: String,
    /// Dogwatch's power command that was answered, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// When it was proved.
    pub confirmed_at: Timestamp,
    /// The person who confirmed it, for Person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason that the person gave, for Person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// Requested, KeyAdded, OffProved, Released, KeyRemoved, PoweredOn, NodeReady, Withdrawn or
    /// Failed.
    pub what: String,
    /// When, by the clock of the leader at that time.
    pub at: Timestamp,
}
