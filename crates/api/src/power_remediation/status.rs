//! `status`: what the controller did, and what it intends before it does it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

use super::PowerRemediationPhase;

/// `status` of a request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PowerRemediationStatus {
    /// The `metadata.generation` that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// For people: [`PowerRemediationStatus::current_phase`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PowerRemediationPhase>,
    /// When the controller first saw the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the request ended, with success or without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The present attempt, or the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptStatus>,
    /// The host that is kept off. Another host is refused later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostReference>,
    /// The Node whose workloads are released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeReference>,
    /// `timeAdded` of our taint `node.kubernetes.io/out-of-service`, as long as we have to remove
    /// it. Written before the taint is set; a taint with another time is somebody else's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tainted_at: Option<Timestamp>,
    /// What proved the host off in the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_proof: Option<OffProofStatus>,
    /// The steps, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineEntry>,
    /// Conditions of the types in [`super::condition::ALL`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One attempt: off, release, on, Ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptStatus {
    /// Number of the attempt, from 1.
    pub number: u32,
    /// When the attempt began; its timeout counts from here.
    pub started_at: Timestamp,
    /// When the key was seen on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_at: Option<Timestamp>,
    /// When the host was proved off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_confirmed_at: Option<Timestamp>,
    /// When the workloads were seen to be released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_at: Option<Timestamp>,
    /// When the key was seen to be gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_removed_at: Option<Timestamp>,
}

/// The host that a request is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostReference {
    /// Namespace of the host.
    pub namespace: String,
    /// Name of the host.
    pub name: String,
    /// UID of the host.
    pub uid: String,
}

/// The Node that a request is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReference {
    /// Name of the Node.
    pub name: String,
    /// UID of the Node when the remediation began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Id of the boot that is to be ended.
    #[serde(default, rename = "bootID", skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
}

/// What proved the host off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OffProofStatus {
    /// `OurCommand`, `TheirController` or `Person`.
    pub source: String,
    /// The power command that the BMC accepted, if the source is `OurCommand`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// When the host was proved off.
    pub confirmed_at: Timestamp,
    /// The person, if the source is `Person`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The person's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One step of the remediation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// The step: a name of `dogwatch_core::remediation::RemediationStep`.
    pub what: String,
    /// When the step was done, by the clock of the leader at the time.
    pub at: Timestamp,
}
