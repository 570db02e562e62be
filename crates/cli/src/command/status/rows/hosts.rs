//! The hosts in columns.

use dogwatch_core::Now;
use dogwatch_core::explain::{HostRow, age};

use crate::paint::Colour;
use crate::table::{Cell, Table};

/// The table.
pub fn hosts(rows: &[HostRow], wide: bool, now: Now) -> Table {
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
    Table {
        columns,
        rows: rows.iter().map(|row| cells(row, wide, now)).collect(),
    }
}

fn cells(row: &HostRow, wide: bool, now: Now) -> Vec<Cell> {
    let ago = |at: Option<jiff::Timestamp>| at.map(|at| age(now.since(at)));
    let held = (!row.held_off_by.is_empty()).then(|| row.held_off_by.join(","));
    let mut cells = vec![
        row.namespace.as_str().into(),
        row.name.as_str().into(),
        row.power
            .map(|power| Cell::coloured(power, Some(colour(power))))
            .into(),
        row.wanted.into(),
        held.map(|held| Cell::coloured(held, Some(Colour::Yellow)))
            .into(),
        ago(row.pending_since).into(),
        control(row).into(),
    ];
    if wide {
        cells.push(ago(row.observed_at).into());
        cells.push(ago(row.off_confirmed_at).into());
    }
    cells.push(row.node.as_deref().into());
    cells.push(row.bmc.as_deref().into());
    cells.push(why(row).into());
    cells
}

fn colour(power: &str) -> Colour {
    match power {
        "On" => Colour::Green,
        "Off" => Colour::Dim,
        "Unknown" => Colour::Red,
        _ => Colour::Cyan,
    }
}

/// Whether the power could be controlled now.
fn control(row: &HostRow) -> Option<Cell> {
    let (text, colour) = match row.power_control_ready.as_deref()? {
        "True" => ("works", None),
        "False" => ("fails", Some(Colour::Red)),
        _ => ("unknown", Some(Colour::Yellow)),
    };
    Some(Cell::coloured(text, colour))
}

/// What keeps the power from being controlled comes before why it is as it is.
fn why(row: &HostRow) -> Option<Cell> {
    if row.power_control_ready.as_deref() == Some("False") {
        let text = row.not_ready.clone()?;
        return Some(Cell::coloured(text, Some(Colour::Red)));
    }
    let reason = row.reason.as_deref()?;
    Some(match row.message.as_deref() {
        Some(message) if !message.is_empty() => format!("{reason}: {message}").into(),
        Some(_) | None => reason.into(),
    })
}

/// A row as a text without the time of its newest reading, to see whether anything else has changed.
pub fn host_identity(row: &HostRow) -> String {
    let row = HostRow {
        observed_at: None,
        ..row.clone()
    };
    serde_json::to_string(&row).expect("texts and times serialise")
}
