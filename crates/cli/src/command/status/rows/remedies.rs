//! The remediations in columns.

use dogwatch_core::Now;
use dogwatch_core::explain::{RemedyRow, StepRow, age, lasted};

use crate::paint::Colour;
use crate::table::{Cell, Table};

/// The table.
pub fn remedies(rows: &[RemedyRow], wide: bool, now: Now) -> Table {
    let mut columns = vec!["REMEDIATION", "NODE", "HOST", "STEP", "SINCE"];
    if wide {
        columns.extend(["ATTEMPT", "STEPS"]);
    }
    columns.push("REASON");
    Table {
        columns,
        rows: rows.iter().map(|row| cells(row, wide, now)).collect(),
    }
}

fn cells(row: &RemedyRow, wide: bool, now: Now) -> Vec<Cell> {
    let mut cells = vec![
        row.subject.as_str().into(),
        row.node.as_deref().into(),
        row.host.as_deref().into(),
        row.step
            .map(|step| Cell::coloured(step, Some(colour(row))))
            .into(),
        row.since.map(|at| age(now.since(at))).into(),
    ];
    if wide {
        cells.push(row.attempt.map(|number| number.to_string()).into());
        cells.push(steps(&row.steps).into());
    }
    let text = format!("{}: {}", row.reason, row.message);
    let red = row.needs_somebody.then_some(Colour::Red);
    cells.push(Cell::coloured(text, red));
    cells
}

fn colour(row: &RemedyRow) -> Colour {
    if row.under_way {
        Colour::Cyan
    } else {
        Colour::Dim
    }
}

/// How long each step took after the one before it.
fn steps(steps: &[StepRow]) -> Option<String> {
    let timed = steps.iter().filter_map(|step| {
        let after = step.after_ms?;
        Some(format!("{} {}", step.step, lasted(after)))
    });
    let timed: Vec<String> = timed.collect();
    (!timed.is_empty()).then(|| timed.join(", "))
}

/// A row as a text, to see whether it has changed.
pub fn remedy_identity(row: &RemedyRow) -> String {
    serde_json::to_string(row).expect("texts, numbers and times serialise")
}
