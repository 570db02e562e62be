//! One line for each schedule.

use jiff::Timestamp;
use serde::Serialize;

use super::whom;
use crate::Now;
use crate::schedule::{Outcome, Outlook, Record, Schedule, outlook};

/// One schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleRow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where it stands: `WaitingForTime`, `Issuing`, `Suspended`, `Completed`, `Invalid` or `Deleting`.
    pub state: &'static str,
    /// The same, as a sentence.
    pub message: String,
    /// When it issues next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// A time that has come, and that no controller has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_begun: Option<Timestamp>,
    /// The appointed time of the newest occurrence that is done with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// How that one ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    /// The same, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome_message: Option<String>,
    /// Whom it asks; empty where that cannot be understood.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub whom: Vec<String>,
    /// Somebody should look: it cannot be understood, has not begun in time, or did not reach everybody.
    pub needs_somebody: bool,
}

/// The rows of these schedules: those that need somebody first; then by namespace and name.
pub fn schedule_rows<'a>(
    schedules: impl IntoIterator<Item = &'a Schedule>,
    now: Now,
) -> Vec<ScheduleRow> {
    let rows = schedules.into_iter().map(|schedule| row(schedule, now));
    let mut rows: Vec<ScheduleRow> = rows.collect();
    rows.sort_by_cached_key(|row| {
        let place = (row.namespace.clone(), row.name.clone());
        (!row.needs_somebody, place)
    });
    rows
}

fn row(schedule: &Schedule, now: Now) -> ScheduleRow {
    let Outlook {
        because,
        come,
        ahead,
    } = outlook(schedule, 1, now);
    let last = schedule.status.history.first();
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
        whom: schedule.plan.as_ref().map(whom).unwrap_or_default(),
        needs_somebody: schedule.plan.is_err() || come.is_some() || last.is_some_and(fell_short),
    }
}

/// Whether somebody who was to be asked was not.
pub(super) fn fell_short(record: &Record) -> bool {
    match record.outcome {
        Outcome::Requested | Outcome::Cancelled => false,
        Outcome::PartlyRequested | Outcome::Failed | Outcome::Missed | Outcome::NoTargets => true,
    }
}
