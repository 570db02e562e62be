//! The table of the policies.

use dogwatch_core::Now;
use dogwatch_core::explain::{PolicyRow, format_due};

use super::reason_cell;
use crate::paint::TerminalColour;
use crate::table::{OutputColumn, TableCell, TextTable};

const COLUMNS: [OutputColumn<PolicyRow>; 13] = [
    OutputColumn::new("POLICY", |row, _| row.name.as_str().into()),
    OutputColumn::new("PRIORITY", |row, _| row.priority.to_string().into()),
    OutputColumn::new("NODES", |row, _| node_count_text(row).into()),
    OutputColumn::new("MAX", |row, _| row.max_unavailable.as_deref().into()),
    OutputColumn::new("OUT", |row, _| join_texts(&row.out).into()),
    OutputColumn::new("WAITING", |row, _| row.waiting.len().to_string().into()),
    OutputColumn::new("PAUSED", |row, now| {
        let paused = paused_text(row, now);
        paused
            .map(|text| TableCell::coloured(text, Some(TerminalColour::Yellow)))
            .into()
    }),
    OutputColumn::new("WINDOW", |row, now| window_text(row, now).into()),
    OutputColumn::only_wide("WINDOWS", |row, _| {
        let window = row.window.as_ref();
        window.map(|window| window.windows.join("; ")).into()
    }),
    OutputColumn::only_wide("ROLLOUT", |row, _| row.rollout.as_deref().into()),
    OutputColumn::only_wide("GATES", |row, _| join_texts(&row.gates).into()),
    OutputColumn::only_wide("LOST-TO", |row, _| join_texts(&row.lost_to).into()),
    OutputColumn::new("WAITS-FOR", |row, _| {
        reason_cell(row.reason.as_deref(), row.message.as_deref()).into()
    }),
];

pub fn policies_table(rows: &[PolicyRow], wide: bool, now: Now) -> TextTable {
    TextTable::of_rows(rows, &COLUMNS, wide, now)
}

fn window_text(row: &PolicyRow, now: Now) -> Option<String> {
    let window = row.window.as_ref()?;
    Some(match (window.open, window.until) {
        (true, Some(until)) => format!("open, closes {}", format_due(until, now)),
        (true, None) => "open".into(),
        (false, Some(at)) => format!("opens {}", format_due(at, now)),
        (false, None) => "never opens".into(),
    })
}

/// The number of nodes, and how many of them are ignored by the budget.
fn node_count_text(row: &PolicyRow) -> String {
    match row.ignored.len() {
        0 => row.nodes.to_string(),
        ignored => format!("{} ({ignored} ignored)", row.nodes),
    }
}

fn join_texts(texts: &[String]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join(","))
}

fn paused_text(row: &PolicyRow, now: Now) -> Option<String> {
    let why = row.paused.as_deref()?;
    Some(match row.paused_until {
        Some(until) => format!("{why} (ends {})", format_due(until, now)),
        None if why.is_empty() => "yes".into(),
        None => why.to_owned(),
    })
}
