//! The table of the policies.

use dogwatch_core::Now;
use dogwatch_core::explain::{PolicyRow, due};

use super::reason;
use crate::paint::Colour;
use crate::table::{Cell, Table};

/// One row for each.
pub fn policies(rows: &[PolicyRow], wide: bool, now: Now) -> Table {
    let mut columns = vec![
        "POLICY", "PRIORITY", "NODES", "MAX", "OUT", "WAITING", "PAUSED", "WINDOW",
    ];
    if wide {
        columns.extend(["WINDOWS", "GATES", "LOST-TO"]);
    }
    columns.push("WAITS-FOR");
    Table {
        columns,
        rows: rows.iter().map(|row| policy(row, wide, now)).collect(),
    }
}

fn policy(row: &PolicyRow, wide: bool, now: Now) -> Vec<Cell> {
    let mut cells = vec![
        row.name.as_str().into(),
        row.priority.to_string().into(),
        nodes(row).into(),
        row.max_unavailable.as_deref().into(),
        joined(&row.out).into(),
        row.waiting.len().to_string().into(),
        paused(row, now)
            .map(|text| Cell::coloured(text, Some(Colour::Yellow)))
            .into(),
        row.window
            .as_ref()
            .map(|window| match (window.open, window.until) {
                (true, Some(until)) => format!("open, closes {}", due(until, now)),
                (true, None) => "open".into(),
                (false, Some(at)) => format!("opens {}", due(at, now)),
                (false, None) => "never opens".into(),
            })
            .into(),
    ];
    if wide {
        let windows = row.window.as_ref().map(|window| window.windows.join("; "));
        cells.push(windows.into());
        cells.push(joined(&row.gates).into());
        cells.push(joined(&row.lost_to).into());
    }
    cells.push(reason(row.reason.as_deref(), row.message.as_deref()).into());
    cells
}

/// How many nodes; and how many of them no count takes in.
fn nodes(row: &PolicyRow) -> String {
    match row.ignored.len() {
        0 => row.nodes.to_string(),
        ignored => format!("{} ({ignored} ignored)", row.nodes),
    }
}

fn joined(texts: &[String]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join(","))
}

fn paused(row: &PolicyRow, now: Now) -> Option<String> {
    let why = row.paused.as_deref()?;
    Some(match row.paused_until {
        Some(until) => format!("{why} (ends {})", due(until, now)),
        None if why.is_empty() => "yes".into(),
        None => why.to_owned(),
    })
}

/// A policy's row as a text without ages.
pub fn policy_identity(row: &PolicyRow) -> String {
    serde_json::to_string(row).expect("texts, numbers and times serialise")
}
