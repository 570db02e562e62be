//! The view of the fleet, and its JSON.

use jiff::Timestamp;
use serde::Serialize;

use super::FleetEstimate;
use crate::explain::{
    HostRow, LockRow, NodeStatusRow, PolicyRow, RemediationRow, ScheduleRow, WaitingRow,
};

/// Rises when a field of [`FleetView`] goes or changes its meaning; new fields do not raise it.
pub const FLEET_VIEW_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetView {
    /// [`FLEET_VIEW_VERSION`].
    pub version: u32,
    /// When the view was made.
    pub at: Timestamp,
    /// The state of the fleet in a few sentences: "3 of 240 done, 2 out, 235 wait. Finished about
    /// Thu 03:40 UTC (at the latest Thu 05:10 UTC). Nothing needs you."
    pub sentence: String,
    pub counts: FleetCounts,
    /// What only a person can end, the most urgent first. Faces show red only if it is not empty.
    pub needs_person: Vec<PersonTask>,
    /// Nodes that Dogwatch has taken out of service, the longest first.
    pub out: Vec<OutNodeRow>,
    /// Nodes that wait for their reboot, in the order of the queue.
    pub waiting: Vec<WaitingNodeRow>,
    /// Hosts that wait at a lock API.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting_hosts: Vec<WaitingRow>,
    /// Groups by name.
    pub groups: Vec<GroupView>,
    /// All nodes: those under way first, then the queue, then the rest by name.
    pub nodes: Vec<NodeStatusRow>,
    pub locks: Vec<LockRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyRow>,
    /// Absent if hosts cannot be read or the kind is not installed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRow>,
    /// Each with the readings that prove its host off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remediations: Vec<RemediationRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<ScheduleRow>,
    /// Reboots that ended within the last day, the newest first; at most 100.
    pub recent: Vec<RecentOutcome>,
    /// Absent while nothing waits or is out, and before the first estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<FleetEstimate>,
    /// What could not be read, one sentence each: the view is incomplete there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// Numbers of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetCounts {
    pub nodes: usize,
    /// Rebooted since the first of those began to wait that wait or are out now.
    pub done: usize,
    pub out: usize,
    pub waiting: usize,
    /// `done`, `out` and `waiting` together: the size of the rollout.
    pub rollout: usize,
    /// Open NodeReboots that no controller has carried to their nodes yet. Their nodes count as
    /// idle.
    pub requested: usize,
    pub needs_person: usize,
}

/// Something that does not end until a person acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PersonTask {
    /// `node/NAME`, `host/NS/NAME`, `policy/NAME`, the subject of a remediation, or `controller`.
    pub subject: String,
    /// One CamelCase word.
    pub reason: String,
    pub message: String,
    /// The next step for a person, a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step: Option<String>,
    /// A command to type; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A node that Dogwatch has taken out of service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutNodeRow {
    pub name: String,
    pub group: String,
    /// `draining`, `holding`, `rebooting`, `returning`.
    pub phase: &'static str,
    /// Start of the phase, by the node's clock.
    pub since: Timestamp,
    /// When the phase ends at the latest; absent if nothing but its end ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Who or what asked, and why.
    pub asked: String,
    /// What it waits for: one CamelCase word and a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The phases of this reboot so far, the oldest first.
    pub bars: Vec<PhaseBar>,
}

/// A span of time in which a node was, or is, in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseBar {
    /// `waiting`, `draining`, `holding`, `rebooting`, `returning`.
    pub phase: &'static str,
    pub from: Timestamp,
    /// Absent while the phase lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A node that waits for its reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingNodeRow {
    pub name: String,
    pub group: String,
    /// When its reboot was first wanted.
    pub since: Timestamp,
    /// Its place in the queue for the lock, from 1; absent while it pauses after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    pub asked: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The earliest time at which it may start by what is known of its policy (a window opens, a
    /// pause ends, it is tried again); absent if it may start now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
}

/// A group of nodes with a common budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupView {
    pub name: String,
    /// Nodes that count: those with label `dogwatch.dev/ignore` do not.
    pub members: u32,
    /// How many may be unavailable at once.
    pub allowed: usize,
    /// Where `allowed` comes from, in words.
    pub allowed_source: String,
    /// How many are unavailable now, for any reason.
    pub used: usize,
    /// Members that are unavailable, though not by a reboot of Dogwatch, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken_by_others: Vec<TakenSlot>,
    pub out: usize,
    pub waiting: usize,
    /// The pause of its policy: reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// The windows of its policy within two days before and a week after `at`; empty: no windows,
    /// always open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<OpenWindowSpan>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TakenSlot {
    pub node: String,
    /// Why it counts, in words: "not Ready", "cordoned by somebody else".
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenWindowSpan {
    pub from: Timestamp,
    pub until: Timestamp,
}

/// A reboot that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecentOutcome {
    pub node: String,
    pub group: String,
    /// As in annotation `dogwatch.dev/last-reboot`: `Rebooted`, `Aborted`, `TriggerGone`, …
    pub outcome: &'static str,
    pub asked: String,
    /// When it was first wanted.
    pub planned: Timestamp,
    pub finished: Timestamp,
    /// The phases, the oldest first.
    pub bars: Vec<PhaseBar>,
}
