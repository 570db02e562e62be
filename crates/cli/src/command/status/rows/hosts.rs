//! The table of the hosts.

use dogwatch_core::Now;
use dogwatch_core::explain::{HostRow, format_age};

use crate::paint::TerminalColour;
use crate::table::{TableCell, TextTable};

pub fn hosts_table(rows: &[HostRow], wide: bool, now: Now) -> TextTable {
    let mut columns = vec![
        "NAMESPACE",
        "HOST",
        "POWER",
        "WANTED",
        "HELD-BY",
        "PENDING",
        "CONTROL",
    ];
    if wide {
        columns.extend(["SEEN", "OFF-CONFIRMED"]);
    }
    columns.extend(["NODE", "BMC", "WHY"]);
    TextTable {
        columns,
        rows: rows.iter().map(|row| host_cells(row, wide, now)).collect(),
    }
}

fn host_cells(row: &HostRow, wide: bool, now: Now) -> Vec<TableCell> {
    let ago = |at: Option<jiff::Timestamp>| at.map(|at| format_age(now.elapsed_since(at)));
    let held = (!row.held_off_by.is_empty()).then(|| row.held_off_by.join(","));
    let mut cells = vec![
        row.namespace.as_str().into(),
        row.name.as_str().into(),
        row.power
            .map(|power| TableCell::coloured(power, Some(power_colour(power))))
            .into(),
        row.wanted.into(),
        held.map(|held| TableCell::coloured(held, Some(TerminalColour::Yellow)))
            .into(),
        ago(row.pending_since).into(),
        power_control_cell(row).into(),
    ];
    if wide {
        cells.push(ago(row.observed_at).into());
        cells.push(ago(row.off_confirmed_at).into());
    }
    cells.push(row.node.as_deref().into());
    cells.push(row.bmc.as_deref().into());
    cells.push(host_reason_cell(row).into());
    cells
}

fn power_colour(power: &str) -> TerminalColour {
    match power {
        "On" => TerminalColour::Green,
        "Off" => TerminalColour::Dim,
        "Unknown" => TerminalColour::Red,
        _ => TerminalColour::Cyan,
    }
}

fn power_control_cell(row: &HostRow) -> Option<TableCell> {
    let (text, colour) = match row.power_control_ready.as_deref()? {
        "True" => ("works", None),
        "False" => ("fails", Some(TerminalColour::Red)),
        _ => ("unknown", Some(TerminalColour::Yellow)),
    };
    Some(TableCell::coloured(text, colour))
}

/// A problem of power control comes before the reason of the present power.
fn host_reason_cell(row: &HostRow) -> Option<TableCell> {
    if row.power_control_ready.as_deref() == Some("False") {
        let text = row.not_ready.clone()?;
        return Some(TableCell::coloured(text, Some(TerminalColour::Red)));
    }
    let reason = row.reason.as_deref()?;
    Some(match row.message.as_deref() {
        Some(message) if !message.is_empty() => format!("{reason}: {message}").into(),
        Some(_) | None => reason.into(),
    })
}

/// A row as text without the time of its newest reading, to detect other changes.
pub fn host_identity(row: &HostRow) -> String {
    let row = HostRow {
        observed_at: None,
        ..row.clone()
    };
    serde_json::to_string(&row).expect("texts and times serialise")
}
