//! The status rows of schedules.

use jiff::Timestamp;
use serde::Serialize;

use super::describe_targets;
use crate::Now;
use crate::schedule::{
    OccurrenceOutcome, OccurrenceRecord, Schedule, ScheduleForecast, ScheduleReason,
    describe_reboots, forecast_schedule, reboots_reason,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleRow {
    pub namespace: String,
    pub name: String,
    /// `WaitingForTime`, `Issuing`, `Suspended`, `Completed`, `Invalid` or `Deleting`.
    pub state: ScheduleReason,
    pub message: String,
    /// The next time at which it issues requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// A time that has passed without a controller beginning the occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_begun: Option<Timestamp>,
    /// The scheduled time of the newest finished occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// The result of the newest finished occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome_message: Option<String>,
    /// How the NodeReboots of the newest finished occurrence ended: `AwaitingReboots`, `Rebooted` or
    /// `NotAllRebooted`. Absent if it made none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reboots: Option<ScheduleReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reboots_message: Option<String>,
    /// The targets in words; empty if the spec is invalid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub whom: Vec<String>,
    /// A person should look: the spec is invalid, an occurrence has not begun in time, it did not
    /// reach all targets, or a reboot failed.
    pub needs_somebody: bool,
}

/// Sorted: first those that need a person, then by namespace and name.
pub fn schedule_rows<'a>(
    schedules: impl IntoIterator<Item = &'a Schedule>,
    now: Now,
) -> Vec<ScheduleRow> {
    let rows = schedules
        .into_iter()
        .map(|schedule| schedule_row(schedule, now));
    let mut rows: Vec<ScheduleRow> = rows.collect();
    rows.sort_by_cached_key(|row| {
        let place = (row.namespace.clone(), row.name.clone());
        (!row.needs_somebody, place)
    });
    rows
}

fn schedule_row(schedule: &Schedule, now: Now) -> ScheduleRow {
    let ScheduleForecast {
        because,
        come,
        ahead,
    } = forecast_schedule(schedule, 1, now);
    let last = schedule.status.history.first();
    let reboots = last.and_then(|last| last.reboots.as_ref());
    ScheduleRow {
        namespace: schedule.name.namespace.clone(),
        name: schedule.name.name.clone(),
        state: because.reason,
        message: because.message,
        next: ahead.first().copied(),
        not_begun: come,
        last: last.map(|last| last.at),
        outcome: last.map(|last| last.outcome.as_str()),
        outcome_message: last.map(|last| last.message.clone()),
        reboots: reboots.map(reboots_reason),
        reboots_message: reboots.map(describe_reboots),
        whom: schedule
            .plan
            .as_ref()
            .map(describe_targets)
            .unwrap_or_default(),
        needs_somebody: schedule.plan.is_err()
            || come.is_some()
            || last.is_some_and(fell_short)
            || reboots.is_some_and(|reboots| reboots.failed > 0),
    }
}

/// Whether the occurrence did not reach all targets.
pub(super) fn fell_short(record: &OccurrenceRecord) -> bool {
    match record.outcome {
        OccurrenceOutcome::Requested | OccurrenceOutcome::Cancelled => false,
        OccurrenceOutcome::PartlyRequested
        | OccurrenceOutcome::Failed
        | OccurrenceOutcome::Missed
        | OccurrenceOutcome::NoTargets => true,
    }
}
