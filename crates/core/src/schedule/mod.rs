//! Scheduled reboots of nodes and hosts, once or repeatedly.
//!
//! **For:** the controller, which waits for the time of a `RebootSchedule` and then issues an
//! immediate request to each of its targets; nothing here reboots anything.
//! **May touch:** nothing.
//! **Promises:**
//! - An occurrence is in the schedule's status before the first of its requests is sent, and the
//!   same patch that asks a target also marks it. A NodeReboot has one name for each schedule, time
//!   and Node, and the Node is marked after it. So a crash loses no request and repeats none (S5).
//! - How each NodeReboot ended is counted in the record of its occurrence, also after NodeReboots
//!   were deleted.
//! - An occurrence later than `startingDeadline` is not made up for: it is recorded as missed, with
//!   a Warning (S6).
//! - A request made by somebody else is left as it is, and noted (S3).
//! - A host that may carry a Node is never rebooted by its power: nobody would drain the Node (S1).
//! - The time is the wall clock's, read for each decision, at least once a minute: a clock that is
//!   set is noticed within that time. Handled occurrences stay handled, whatever the clock says.
//!
//! Source: specification §5; metal3's reboot-interface design, "Non-Goals".

mod decide;
mod due;
mod forecast;
mod host;
mod made_reboot;
mod reason;
mod reboot_outcome;
mod record;
mod report;
mod snapshot;
mod spec_change;
mod target;
mod target_patch;
mod target_state;
#[cfg(test)]
mod tests;
mod timing;
mod types;

pub use decide::{ScheduleAction, ScheduleDecision, ScheduleObserve, decide};
pub use forecast::{ScheduleForecast, forecast_schedule};
pub use host::{HostNodeClaim, PowerRebootRefusal};
pub use made_reboot::{
    MadeNodeReboot, MadeNodeReboots, MadeNodeRebootsRead, MadeRebootEnd, NodeRebootDraft,
};
pub use reason::ScheduleReason;
pub(crate) use reboot_outcome::{describe_failure, describe_reboots};
pub(crate) use report::{ACTIVE_CONDITION, format_in_zone, reboots_reason};
pub use snapshot::{CarriedNode, ObservedTargets, ScheduleSnapshot, StandingRequest, TargetObject};
pub use target::{
    RebootRequestPatch, ScheduleMark, ScheduleMarks, ScheduleTarget, ScheduleTargetKind,
};
pub use timing::{ScheduleRecurrence, ScheduleTiming, TimingError};
pub use types::{
    CurrentOccurrence, HostRebootMode, MAX_HISTORY_RECORDS, MAX_LISTED_FAILURES,
    MAX_LISTED_TARGETS, OccurrenceOutcome, OccurrenceReboots, OccurrenceRecord, RebootFailure,
    Schedule, ScheduleName, SchedulePlan, ScheduleStatus, SettledReboots, TargetChoice,
    TargetOutcome, TargetResult,
};
