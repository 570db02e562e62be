//! `status`: what the controller did.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

/// `status`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RebootScheduleStatus {
    /// The `metadata.generation` that it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When it issues next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_occurrence: Option<Timestamp>,
    /// The newest occurrence that was begun or missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_occurrence: Option<Timestamp>,
    /// The occurrence that is being issued: it stands here before the first request goes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Current>,
    /// Past occurrences, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Occurrence>,
    /// `Accepted`, `Active`, `LastOccurrenceIssued`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// An occurrence that is being issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Current {
    /// The appointed time.
    pub at: Timestamp,
    /// When that was written down.
    pub begun: Timestamp,
}

/// What is left of a past occurrence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Occurrence {
    /// The appointed time.
    pub at: Timestamp,
    /// When it was done with.
    pub ended: Timestamp,
    /// `Requested`, `PartlyRequested`, `Failed`, `Missed`, `Cancelled` or `NoTargets`.
    pub outcome: String,
    /// How many targets were asked.
    #[serde(default)]
    pub requested: u32,
    /// How many had a request already.
    #[serde(default)]
    pub already_requested: u32,
    /// How many could not be asked.
    #[serde(default)]
    pub failed: u32,
    /// Some of them, those that failed first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetEnd>,
    /// A sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What came of one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetEnd {
    /// `Node` or `BareMetalHost`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// `Requested`, `AlreadyRequested` or `Failed`.
    pub result: String,
    /// Why, where that is worth a word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
