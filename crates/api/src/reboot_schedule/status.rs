//! `status` of a schedule, written by the controller.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

/// How many past occurrences a schedule's status keeps.
pub const MAX_HISTORY_RECORDS: usize = 10;
/// How many targets of an occurrence are listed by name; the others are only counted.
pub const MAX_LISTED_TARGETS: usize = 20;

/// `status` of a schedule.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RebootScheduleStatus {
    /// The `metadata.generation` that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the schedule issues requests next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_occurrence: Option<Timestamp>,
    /// The newest occurrence that was begun or missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_occurrence: Option<Timestamp>,
    /// The occurrence that is being issued, written before its first request is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<CurrentOccurrenceStatus>,
    /// Past occurrences, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<OccurrenceStatus>,
    /// `Accepted`, `Active`, `LastOccurrenceIssued`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// An occurrence that is being issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CurrentOccurrenceStatus {
    /// The scheduled time.
    pub at: Timestamp,
    /// When the controller wrote this entry.
    pub begun: Timestamp,
}

/// The result of a past occurrence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OccurrenceStatus {
    /// The scheduled time.
    pub at: Timestamp,
    /// When the occurrence ended.
    pub ended: Timestamp,
    /// `Requested`, `PartlyRequested`, `Failed`, `Missed`, `Cancelled` or `NoTargets`.
    pub outcome: String,
    /// How many targets got a request.
    #[serde(default)]
    pub requested: u32,
    /// How many targets had a request already.
    #[serde(default)]
    pub already_requested: u32,
    /// For how many targets the request could not be written.
    #[serde(default)]
    pub failed: u32,
    /// Some of the targets, failed ones first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetEndStatus>,
    /// The result as a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The result for one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetEndStatus {
    /// `Node` or `BareMetalHost`.
    pub kind: String,
    /// Name of the Node or host.
    pub name: String,
    /// `Requested`, `AlreadyRequested` or `Failed`.
    pub result: String,
    /// Why, if there is more to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
