//! The table of the remediations.

use dogwatch_core::Now;
use dogwatch_core::explain::{RemediationRow, StepRow, format_age, format_millis};

use crate::paint::TerminalColour;
use crate::table::{TableCell, TextTable};

pub fn remediations_table(rows: &[RemediationRow], wide: bool, now: Now) -> TextTable {
    let mut columns = vec!["REMEDIATION", "NODE", "HOST", "STEP", "SINCE"];
    if wide {
        columns.extend(["ATTEMPT", "STEPS"]);
    }
    columns.push("REASON");
    TextTable {
        columns,
        rows: rows
            .iter()
            .map(|row| remediation_cells(row, wide, now))
            .collect(),
    }
}

fn remediation_cells(row: &RemediationRow, wide: bool, now: Now) -> Vec<TableCell> {
    let mut cells = vec![
        row.subject.as_str().into(),
        row.node.as_deref().into(),
        row.host.as_deref().into(),
        row.step
            .map(|step| TableCell::coloured(step, Some(step_colour(row))))
            .into(),
        row.since.map(|at| format_age(now.elapsed_since(at))).into(),
    ];
    if wide {
        cells.push(row.attempt.map(|number| number.to_string()).into());
        cells.push(step_durations(&row.steps).into());
    }
    let text = format!("{}: {}", row.reason, row.message);
    let red = row.needs_somebody.then_some(TerminalColour::Red);
    cells.push(TableCell::coloured(text, red));
    cells
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

/// A row as text, to detect changes.
pub fn remediation_identity(row: &RemediationRow) -> String {
    serde_json::to_string(row).expect("texts, numbers and times serialise")
}
