//! The table of the policies.

use dogwatch_core::Now;
use dogwatch_core::explain::{PolicyRow, format_due};

use super::reason_cell;
use crate::paint::TerminalColour;
use crate::table::{TableCell, TextTable};

pub fn policies_table(rows: &[PolicyRow], wide: bool, now: Now) -> TextTable {
    let mut columns = vec![
        "POLICY", "PRIORITY", "NODES", "MAX", "OUT", "WAITING", "PAUSED", "WINDOW",
    ];
    if wide {
        columns.extend(["WINDOWS", "GATES", "LOST-TO"]);
    }
    columns.push("WAITS-FOR");
    TextTable {
        columns,
        rows: rows
            .iter()
            .map(|row| policy_cells(row, wide, now))
            .collect(),
    }
}

fn policy_cells(row: &PolicyRow, wide: bool, now: Now) -> Vec<TableCell> {
    let mut cells = vec![
        row.name.as_str().into(),
        row.priority.to_string().into(),
        node_count_text(row).into(),
        row.max_unavailable.as_deref().into(),
        join_texts(&row.out).into(),
        row.waiting.len().to_string().into(),
        paused_text(row, now)
            .map(|text| TableCell::coloured(text, Some(TerminalColour::Yellow)))
            .into(),
        row.window
            .as_ref()
            .map(|window| match (window.open, window.until) {
                (true, Some(until)) => format!("open, closes {}", format_due(until, now)),
                (true, None) => "open".into(),
                (false, Some(at)) => format!("opens {}", format_due(at, now)),
                (false, None) => "never opens".into(),
            })
            .into(),
    ];
    if wide {
        let windows = row.window.as_ref().map(|window| window.windows.join("; "));
        cells.push(windows.into());
        cells.push(join_texts(&row.gates).into());
        cells.push(join_texts(&row.lost_to).into());
    }
    cells.push(reason_cell(row.reason.as_deref(), row.message.as_deref()).into());
    cells
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

/// A row as text without ages, to detect changes.
pub fn policy_identity(row: &PolicyRow) -> String {
    serde_json::to_string(row).expect("texts, numbers and times serialise")
}
