//! `status`: what the controller did, and what it intends before it does it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

use super::Phase;

/// `status`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PowerRemediationStatus {
    /// The `metadata.generation` that it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it stands, for people: [`PowerRemediationStatus::phase_now`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// When it was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended, well or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The attempt under way, or the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// The host that is held off. Another one later is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostReference>,
    /// The Node that is released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeReference>,
    /// `timeAdded` of our taint `node.kubernetes.io/out-of-service`, while it is ours to lift. Written before
    /// the taint is set; one with another time is somebody else's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tainted_at: Option<Timestamp>,
    /// What proved the host off in the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_proof: Option<OffProof>,
    /// Its steps, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineEntry>,
    /// Those of [`super::condition::ALL`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One attempt: off, release, on, Ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// When it began; its timeout counts from here.
    pub started_at: Timestamp,
    /// When the key was seen on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_at: Option<Timestamp>,
    /// When the host was proved off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_confirmed_at: Option<Timestamp>,
    /// When the workloads were seen released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_at: Option<Timestamp>,
    /// When the key was seen gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_removed_at: Option<Timestamp>,
}

/// The host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// The Node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReference {
    /// Its name.
    pub name: String,
    /// Its UID as it was when this began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The boot that is to be ended.
    #[serde(default, rename = "bootID", skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
}

/// What proved the host off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OffProof {
    /// `OurCommand`, `TheirController` or `Person`.
    pub source: String,
    /// The power command that was answered, where it was ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// When it was proved.
    pub confirmed_at: Timestamp,
    /// Who, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// Which: a name of [`dogwatch_core::remedy::Step`].
    pub what: String,
    /// When, by the clock of whoever led then.
    pub at: Timestamp,
}
