//! A `RebootSchedule` as decisions see it.

use std::fmt;
use std::time::Duration;

pub use dogwatch_api::reboot_schedule::{
    MAX_HISTORY_RECORDS, MAX_LISTED_FAILURES, MAX_LISTED_TARGETS,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::reason::ScheduleReason;
use super::target::ScheduleTargetKind;
use super::timing::ScheduleTiming;
use crate::condition::CurrentCondition;
use crate::selector::LabelSelector;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleName {
    /// The schedule's hosts are in this namespace, too.
    pub namespace: String,
    pub name: String,
}

impl fmt::Display for ScheduleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub name: ScheduleName,
    /// Identifies the schedule's marks on its targets.
    pub uid: String,
    /// The precondition of a write.
    pub resource_version: String,
    /// `metadata.generation`.
    pub generation: Option<i64>,
    /// When it was created, by the API server's clock. A recurrence has no occurrence before this
    /// time.
    pub created: Timestamp,
    /// The newest write of the spec that `metadata.managedFields` shows, by the API server's clock. A
    /// removal of a field is not shown.
    pub changed: Option<Timestamp>,
    pub deleting: bool,
    /// The parsed spec, or everything that is wrong with it.
    pub plan: Result<SchedulePlan, Vec<String>>,
    pub status: ScheduleStatus,
}

/// The parsed `spec`.
#[derive(Debug, Clone, PartialEq)]
pub struct SchedulePlan {
    pub when: ScheduleTiming,
    /// The time zone in which times are shown.
    pub zone: TimeZone,
    /// How late an occurrence may still be issued.
    pub starting_deadline: Duration,
    /// While set, nothing is issued.
    pub suspend: bool,
    /// Why the reboots are requested; written into the requests.
    pub reason: String,
    /// How hosts that carry no Node are switched off.
    pub mode: HostRebootMode,
    pub nodes: Option<TargetChoice>,
    /// Hosts in the schedule's namespace.
    pub hosts: Option<TargetChoice>,
}

/// The objects with these names, and those that the selector matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TargetChoice {
    pub names: Vec<String>,
    pub selector: Option<LabelSelector>,
}

/// How a host is switched off. Source: metal3's reboot-interface design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HostRebootMode {
    /// The operating system is asked to shut down first.
    #[default]
    Soft,
    /// The power is cut at once.
    Hard,
}

impl HostRebootMode {
    /// The value in the spec.
    pub fn as_str(self) -> &'static str {
        match self {
            HostRebootMode::Soft => "soft",
            HostRebootMode::Hard => "hard",
        }
    }
}

/// The `status` of a schedule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScheduleStatus {
    /// The generation that this status describes.
    pub observed_generation: Option<i64>,
    /// When the spec of `spec_since_generation` was written. A recurrence has no occurrence before this
    /// time.
    pub spec_since: Option<Timestamp>,
    pub spec_since_generation: Option<i64>,
    /// The newest write in `metadata.managedFields` that `spec_since` accounts for.
    pub spec_write_seen: Option<Timestamp>,
    pub next: Option<Timestamp>,
    /// The newest occurrence that was begun or missed.
    pub last: Option<Timestamp>,
    /// The occurrence that is being issued: written before its first request (S5).
    pub current: Option<CurrentOccurrence>,
    /// Past occurrences, the newest record first, at most [`MAX_HISTORY_RECORDS`].
    pub history: Vec<OccurrenceRecord>,
    pub conditions: Vec<CurrentCondition>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrentOccurrence {
    /// The scheduled time.
    pub at: Timestamp,
    /// When the beginning was recorded.
    pub begun: Timestamp,
}

/// The record of one past occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OccurrenceRecord {
    /// The scheduled time.
    pub at: Timestamp,
    /// When the occurrence was finished or given up.
    pub ended: Timestamp,
    pub outcome: OccurrenceOutcome,
    /// How many targets were requested.
    pub asked: u32,
    /// How many targets had a request already.
    pub noted: u32,
    /// How many targets could not be asked.
    pub failed: u32,
    /// At most [`MAX_LISTED_TARGETS`], those that failed first.
    pub targets: Vec<TargetOutcome>,
    /// One sentence for people.
    pub message: String,
    /// How its NodeReboots ended; `None` if it made none.
    pub reboots: Option<OccurrenceReboots>,
}

/// How the NodeReboots of one occurrence ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OccurrenceReboots {
    /// How many were made.
    pub made: u32,
    /// How many have not ended.
    pub open: u32,
    pub succeeded: u32,
    /// Those that ended with `Succeeded` False although nobody took them back.
    pub failed: u32,
    /// Those that were cancelled, aborted, or not begun by their deadline.
    pub given_up: u32,
    /// Those that were deleted before their end was read.
    pub unknown: u32,
    /// At most [`MAX_LISTED_FAILURES`] of those that did not succeed.
    pub failures: Vec<RebootFailure>,
    /// When none was open any more: nothing is counted after this.
    pub ended: Option<Timestamp>,
    /// Those that are not counted again, because they may be deleted.
    pub settled: Option<SettledReboots>,
}

/// A NodeReboot of a schedule that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebootFailure {
    pub node: String,
    pub node_reboot: String,
    /// Of its condition `Succeeded`.
    pub reason: String,
    pub message: String,
}

/// The NodeReboots of an occurrence that ended up to a time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettledReboots {
    /// `None`: before all of them.
    pub until: Option<Timestamp>,
    pub succeeded: u32,
    pub failed: u32,
    pub given_up: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OccurrenceOutcome {
    /// Every target was asked, or had a request already.
    Requested,
    /// Some targets were asked, others could not be.
    PartlyRequested,
    /// No target could be asked.
    Failed,
    /// The time passed while no controller was there to issue it.
    Missed,
    /// The schedule was suspended or changed while it was being issued.
    Cancelled,
    /// No target matched.
    NoTargets,
}

impl OccurrenceOutcome {
    const ALL: [OccurrenceOutcome; 6] = [
        OccurrenceOutcome::Requested,
        OccurrenceOutcome::PartlyRequested,
        OccurrenceOutcome::Failed,
        OccurrenceOutcome::Missed,
        OccurrenceOutcome::Cancelled,
        OccurrenceOutcome::NoTargets,
    ];

    pub fn schedule_reason(self) -> ScheduleReason {
        match self {
            OccurrenceOutcome::Requested => ScheduleReason::Requested,
            OccurrenceOutcome::PartlyRequested => ScheduleReason::PartlyRequested,
            OccurrenceOutcome::Failed => ScheduleReason::Failed,
            OccurrenceOutcome::Missed => ScheduleReason::Missed,
            OccurrenceOutcome::Cancelled => ScheduleReason::Cancelled,
            OccurrenceOutcome::NoTargets => ScheduleReason::NoTargets,
        }
    }

    /// The value in the status.
    pub fn as_str(self) -> &'static str {
        self.schedule_reason().as_str()
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetOutcome {
    pub kind: ScheduleTargetKind,
    pub name: String,
    pub result: TargetResult,
    /// Why, where that needs explaining; else empty.
    pub message: String,
    /// The NodeReboot that was made for it.
    pub node_reboot: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetResult {
    /// The target could not be asked.
    Failed,
    /// The target had a request already, which was left as it is.
    Noted,
    /// The target was asked.
    Requested,
}

impl TargetResult {
    /// The value in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            TargetResult::Failed => "Failed",
            TargetResult::Noted => "AlreadyRequested",
            TargetResult::Requested => "Requested",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        use TargetResult::{Failed, Noted, Requested};
        [Failed, Noted, Requested]
            .into_iter()
            .find(|one| one.as_str() == text)
    }
}
