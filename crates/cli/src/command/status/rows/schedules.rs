//! The table of the schedules.

use dogwatch_core::Now;
use dogwatch_core::explain::{ScheduleRow, format_age, format_time};
use dogwatch_core::reason::ReasonSeverity;
use dogwatch_core::schedule::ScheduleReason;

use crate::paint::TerminalColour;
use crate::table::{OutputColumn, TableCell, TextTable};

const COLUMNS: [OutputColumn<ScheduleRow>; 9] = [
    OutputColumn::new("NAMESPACE", |row, _| row.namespace.as_str().into()),
    OutputColumn::new("SCHEDULE", |row, _| row.name.as_str().into()),
    OutputColumn::new("STATE", |row, _| {
        TableCell::coloured(row.state.as_str(), state_colour(row.state))
    }),
    OutputColumn::new("NEXT", |row, now| {
        row.next.map(|next| time_ahead(next, now)).into()
    }),
    OutputColumn::new("LAST", |row, _| row.last.map(format_time).into()),
    OutputColumn::new("OUTCOME", |row, _| {
        let cell = |outcome| TableCell::coloured(outcome, Some(outcome_colour(outcome)));
        row.outcome.map(cell).into()
    }),
    OutputColumn::new("REBOOTS", |row, _| {
        let cell = |reason: ScheduleReason| {
            TableCell::coloured(reason.as_str(), Some(reboots_colour(reason)))
        };
        row.reboots.map(cell).into()
    }),
    OutputColumn::only_wide("WHOM", |row, _| {
        (!row.whom.is_empty()).then(|| row.whom.join("; ")).into()
    }),
    OutputColumn::new("WHY", |row, _| schedule_reason_cell(row)),
];

pub fn schedules_table(rows: &[ScheduleRow], wide: bool, now: Now) -> TextTable {
    TextTable::of_rows(rows, &COLUMNS, wide, now)
}

fn time_ahead(next: jiff::Timestamp, now: Now) -> String {
    let ahead = next.duration_since(now.wall);
    let ahead = std::time::Duration::try_from(ahead).unwrap_or_default();
    format!("in {}", format_age(ahead))
}

fn state_colour(state: ScheduleReason) -> Option<TerminalColour> {
    match (state.severity(), state) {
        (ReasonSeverity::Alarm, _) => Some(TerminalColour::Red),
        (ReasonSeverity::Waiting | ReasonSeverity::Warning, _) => Some(TerminalColour::Yellow),
        (ReasonSeverity::Progress, ScheduleReason::Issuing) => Some(TerminalColour::Cyan),
        (ReasonSeverity::Progress, ScheduleReason::Completed) => Some(TerminalColour::Dim),
        (ReasonSeverity::Progress, _) => None,
    }
}

fn reboots_colour(reason: ScheduleReason) -> TerminalColour {
    match (reason.severity(), reason) {
        (ReasonSeverity::Progress, ScheduleReason::Rebooted) => TerminalColour::Green,
        (ReasonSeverity::Progress | ReasonSeverity::Waiting, _) => TerminalColour::Cyan,
        (ReasonSeverity::Warning | ReasonSeverity::Alarm, _) => TerminalColour::Red,
    }
}

fn outcome_colour(outcome: &str) -> TerminalColour {
    match outcome {
        "Requested" => TerminalColour::Green,
        "Cancelled" => TerminalColour::Dim,
        _ => TerminalColour::Red,
    }
}

/// What needs a person comes before the schedule's state.
fn schedule_reason_cell(row: &ScheduleRow) -> TableCell {
    let is_well = !row.needs_somebody;
    if is_well || row.state.needs_person() || row.not_begun.is_some() {
        let colour = (!is_well).then_some(TerminalColour::Red);
        return TableCell::coloured(row.message.as_str(), colour);
    }
    let (outcome, message) = match row.reboots_message.as_deref() {
        Some(message) if row.outcome == Some("Requested") => {
            (row.reboots.map(ScheduleReason::as_str), Some(message))
        }
        Some(_) | None => (row.outcome, row.outcome_message.as_deref()),
    };
    let text = format!(
        "{}: {}",
        outcome.unwrap_or("-"),
        message.unwrap_or_default()
    );
    TableCell::coloured(text, Some(TerminalColour::Red))
}
