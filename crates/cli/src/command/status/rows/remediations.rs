//! The table of the remediations.

use dogwatch_core::Now;
use dogwatch_core::explain::{RemediationRow, StepRow, format_millis};

use crate::paint::TerminalColour;
use crate::table::{OutputColumn, TableCell, TextTable};

const COLUMNS: [OutputColumn<RemediationRow>; 8] = [
    OutputColumn::new("REMEDIATION", |row, _| row.subject.as_str().into()),
    OutputColumn::new("NODE", |row, _| row.node.as_deref().into()),
    OutputColumn::new("HOST", |row, _| row.host.as_deref().into()),
    OutputColumn::new("STEP", |row, _| {
        let cell = |step| TableCell::coloured(step, Some(step_colour(row)));
        row.step.map(cell).into()
    }),
    OutputColumn::new("SINCE", |row, now| TableCell::age_since(row.since, now)),
    OutputColumn::only_wide("ATTEMPT", |row, _| {
        row.attempt.map(|number| number.to_string()).into()
    }),
    OutputColumn::only_wide("STEPS", |row, _| step_durations(&row.steps).into()),
    OutputColumn::new("REASON", |row, _| {
        let text = format!("{}: {}", row.reason, row.message);
        let red = row.needs_somebody.then_some(TerminalColour::Red);
        TableCell::coloured(text, red)
    }),
];

pub fn remediations_table(rows: &[RemediationRow], wide: bool, now: Now) -> TextTable {
    TextTable::of_rows(rows, &COLUMNS, wide, now)
}

fn step_colour(row: &RemediationRow) -> TerminalColour {
    if row.under_way {
        TerminalColour::Cyan
    } else {
        TerminalColour::Dim
    }
}

/// The duration of each step after the step before it.
fn step_durations(steps: &[StepRow]) -> Option<String> {
    let timed = steps.iter().filter_map(|step| {
        let after = step.after_ms?;
        Some(format!("{} {}", step.step, format_millis(after)))
    });
    let timed: Vec<String> = timed.collect();
    (!timed.is_empty()).then(|| timed.join(", "))
}
