//! The table of the schedules.

use dogwatch_core::Now;
use dogwatch_core::explain::{ScheduleRow, format_age, format_time};

use crate::paint::TerminalColour;
use crate::table::{TableCell, TextTable};

pub fn schedules_table(rows: &[ScheduleRow], wide: bool, now: Now) -> TextTable {
    let mut columns = vec!["NAMESPACE", "SCHEDULE", "STATE", "NEXT", "LAST", "OUTCOME"];
    if wide {
        columns.push("WHOM");
    }
    columns.push("WHY");
    TextTable {
        columns,
        rows: rows
            .iter()
            .map(|row| schedule_cells(row, wide, now))
            .collect(),
    }
}

fn schedule_cells(row: &ScheduleRow, wide: bool, now: Now) -> Vec<TableCell> {
    let mut cells = vec![
        row.namespace.as_str().into(),
        row.name.as_str().into(),
        TableCell::coloured(row.state, state_colour(row.state)),
        row.next.map(|next| time_ahead(next, now)).into(),
        row.last.map(format_time).into(),
        row.outcome
            .map(|outcome| TableCell::coloured(outcome, Some(outcome_colour(outcome))))
            .into(),
    ];
    if wide {
        let whom = (!row.whom.is_empty()).then(|| row.whom.join("; "));
        cells.push(whom.into());
    }
    cells.push(schedule_reason_cell(row));
    cells
}

fn time_ahead(next: jiff::Timestamp, now: Now) -> String {
    let ahead = next.duration_since(now.wall);
    let ahead = std::time::Duration::try_from(ahead).unwrap_or_default();
    format!("in {}", format_age(ahead))
}

fn state_colour(state: &str) -> Option<TerminalColour> {
    match state {
        "Invalid" => Some(TerminalColour::Red),
        "Suspended" => Some(TerminalColour::Yellow),
        "Issuing" => Some(TerminalColour::Cyan),
        "Completed" => Some(TerminalColour::Dim),
        _ => None,
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
    if is_well || row.state == "Invalid" || row.not_begun.is_some() {
        let colour = (!is_well).then_some(TerminalColour::Red);
        return TableCell::coloured(row.message.as_str(), colour);
    }
    let (outcome, message) = (row.outcome, row.outcome_message.as_deref());
    let text = format!(
        "{}: {}",
        outcome.unwrap_or("-"),
        message.unwrap_or_default()
    );
    TableCell::coloured(text, Some(TerminalColour::Red))
}

/// A row as text, to detect changes.
pub fn schedule_identity(row: &ScheduleRow) -> String {
    serde_json::to_string(row).expect("texts and times serialise")
}
