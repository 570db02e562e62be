//! `status` of a schedule, written by the controller.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use crate::schema;

/// How many past occurrences a schedule's status keeps.
pub const MAX_HISTORY_RECORDS: usize = 10;
/// How many targets of an occurrence are listed by name; the others are only counted.
pub const MAX_LISTED_TARGETS: usize = 20;
/// How many reboots of an occurrence that did not succeed are listed by name.
pub const MAX_LISTED_FAILURES: usize = 20;

/// `status` of a schedule.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RebootScheduleStatus {
    /// The metadata.generation that the condition describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the spec of specSinceGeneration was written. A recurrence has no occurrence before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_since: Option<Timestamp>,
    /// The metadata.generation that specSince belongs to. A controller of an older version updates
    /// observedGeneration alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_since_generation: Option<i64>,
    /// The newest write in metadata.managedFields that specSince accounts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_write_seen: Option<Timestamp>,
    /// When it issues next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_occurrence: Option<Timestamp>,
    /// The newest occurrence that was begun or missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_occurrence: Option<Timestamp>,
    /// The occurrence that is being issued, written here before the first request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<CurrentOccurrenceStatus>,
    /// Past occurrences, the newest first.
    #[cfg_attr(test, schemars(length(max = MAX_HISTORY_RECORDS)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<OccurrenceStatus>,
    /// Accepted: whether the schedule is valid. Active: whether an occurrence is left or is being
    /// issued. LastOccurrenceIssued: whether the last one reached all its targets.
    /// LastOccurrenceRebooted: whether all NodeReboots of the last one that made any succeeded.
    #[cfg_attr(test, schemars(schema_with = "schema::condition_list"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// An occurrence that is being issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CurrentOccurrenceStatus {
    /// The appointed time.
    pub at: Timestamp,
    /// When this was written.
    pub begun: Timestamp,
}

/// A past occurrence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OccurrenceStatus {
    /// The appointed time.
    pub at: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// Requested, PartlyRequested, Failed, Missed, Cancelled or NoTargets.
    pub outcome: String,
    /// How many targets were requested.
    #[serde(default)]
    pub requested: u32,
    /// How many targets already had a request, which was left as it is.
    #[serde(default)]
    pub already_requested: u32,
    /// How many targets could not be requested.
    #[serde(default)]
    pub failed: u32,
    /// Some of the targets, failed ones first.
    #[cfg_attr(test, schemars(length(max = MAX_LISTED_TARGETS)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetEndStatus>,
    /// A sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How the NodeReboots of this occurrence ended. Absent if it made none: its nodes were requested
    /// by annotation, or already had a request, or it has hosts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboots: Option<OccurrenceRebootsStatus>,
}

/// How the NodeReboots of an occurrence ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("required" = ["made", "open"])))]
#[serde(rename_all = "camelCase")]
pub struct OccurrenceRebootsStatus {
    /// How many NodeReboots were made.
    #[serde(default)]
    pub made: u32,
    /// How many have not ended.
    #[serde(default)]
    pub open: u32,
    /// How many ended with Succeeded=True.
    #[serde(default)]
    pub succeeded: u32,
    /// How many ended with Succeeded=False although nobody took them back.
    #[serde(default)]
    pub failed: u32,
    /// How many were cancelled, aborted, or not begun by their deadline.
    #[serde(default)]
    pub given_up: u32,
    /// How many were deleted before their end was read.
    #[serde(default)]
    pub unknown: u32,
    /// Some of those that did not succeed, the oldest first.
    #[cfg_attr(test, schemars(length(max = MAX_LISTED_FAILURES)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<RebootFailureStatus>,
    /// When none was open any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// Those that ended so long ago that their NodeReboots may be deleted: they are not counted again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<SettledRebootsStatus>,
}

/// NodeReboots that ended up to a time, and are not counted again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SettledRebootsStatus {
    /// The time.
    pub until: Timestamp,
    /// As in reboots.
    #[serde(default)]
    pub succeeded: u32,
    /// As in reboots.
    #[serde(default)]
    pub failed: u32,
    /// As in reboots.
    #[serde(default)]
    pub given_up: u32,
}

/// A NodeReboot that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RebootFailureStatus {
    /// The node.
    pub node: String,
    /// The NodeReboot.
    pub node_reboot: String,
    /// The reason of its condition Succeeded.
    pub reason: String,
    /// Its message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A node or a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TargetEndStatus {
    /// Node or BareMetalHost.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Requested, AlreadyRequested or Failed.
    pub result: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The NodeReboot that was made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_reboot: Option<String>,
}
