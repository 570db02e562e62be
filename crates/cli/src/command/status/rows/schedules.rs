//! The schedules in columns.

use dogwatch_core::Now;
use dogwatch_core::explain::{ScheduleRow, age, moment};

use crate::paint::Colour;
use crate::table::{Cell, Table};

/// The table.
pub fn schedules(rows: &[ScheduleRow], wide: bool, now: Now) -> Table {
    let mut columns = vec!["NAMESPACE", "SCHEDULE", "STATE", "NEXT", "LAST", "OUTCOME"];
    if wide {
        columns.push("WHOM");
    }
    columns.push("WHY");
    Table {
        columns,
        rows: rows.iter().map(|row| cells(row, wide, now)).collect(),
    }
}

fn cells(row: &ScheduleRow, wide: bool, now: Now) -> Vec<Cell> {
    let mut cells = vec![
        row.namespace.as_str().into(),
        row.name.as_str().into(),
        Cell::coloured(row.state, colour(row.state)),
        row.next.map(|next| ahead(next, now)).into(),
        row.last.map(moment).into(),
        row.outcome
            .map(|outcome| Cell::coloured(outcome, Some(outcome_colour(outcome))))
            .into(),
    ];
    if wide {
        let whom = (!row.whom.is_empty()).then(|| row.whom.join("; "));
        cells.push(whom.into());
    }
    cells.push(why(row));
    cells
}

fn ahead(next: jiff::Timestamp, now: Now) -> String {
    let ahead = next.duration_since(now.wall);
    let ahead = std::time::Duration::try_from(ahead).unwrap_or_default();
    format!("in {}", age(ahead))
}

fn colour(state: &str) -> Option<Colour> {
    match state {
        "Invalid" => Some(Colour::Red),
        "Suspended" => Some(Colour::Yellow),
        "Issuing" => Some(Colour::Cyan),
        "Completed" => Some(Colour::Dim),
        _ => None,
    }
}

fn outcome_colour(outcome: &str) -> Colour {
    match outcome {
        "Requested" => Colour::Green,
        "Cancelled" => Colour::Dim,
        _ => Colour::Red,
    }
}

/// What needs somebody comes before where it stands.
fn why(row: &ScheduleRow) -> Cell {
    let is_well = !row.needs_somebody;
    if is_well || row.state == "Invalid" || row.not_begun.is_some() {
        let colour = (!is_well).then_some(Colour::Red);
        return Cell::coloured(row.message.as_str(), colour);
    }
    let (outcome, message) = (row.outcome, row.outcome_message.as_deref());
    let text = format!(
        "{}: {}",
        outcome.unwrap_or("-"),
        message.unwrap_or_default()
    );
    Cell::coloured(text, Some(Colour::Red))
}

/// A row as a text, to see whether it has changed.
pub fn schedule_identity(row: &ScheduleRow) -> String {
    serde_json::to_string(row).expect("texts and times serialise")
}
