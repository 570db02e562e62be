//! The table of the hosts.

use dogwatch_core::Now;
use dogwatch_core::explain::HostRow;

use crate::paint::TerminalColour;
use crate::table::{TableCell, TableColumn, TextTable};

const COLUMNS: [TableColumn<HostRow>; 12] = [
    TableColumn::new("NAMESPACE", |row, _| row.namespace.as_str().into()),
    TableColumn::new("HOST", |row, _| row.name.as_str().into()),
    TableColumn::new("POWER", |row, _| {
        let cell = |power| TableCell::coloured(power, Some(power_colour(power)));
        row.power.map(cell).into()
    }),
    TableColumn::new("WANTED", |row, _| row.wanted.into()),
    TableColumn::new("HELD-BY", |row, _| {
        let held = (!row.held_off_by.is_empty()).then(|| row.held_off_by.join(","));
        held.map(|held| TableCell::coloured(held, Some(TerminalColour::Yellow)))
            .into()
    }),
    TableColumn::new("PENDING", |row, now| TableCell::age(row.pending_since, now)),
    TableColumn::new("CONTROL", |row, _| power_control_cell(row).into()),
    TableColumn::wide("SEEN", |row, now| TableCell::age(row.observed_at, now)),
    TableColumn::wide("OFF-CONFIRMED", |row, now| {
        TableCell::age(row.off_confirmed_at, now)
    }),
    TableColumn::new("NODE", |row, _| row.node.as_deref().into()),
    TableColumn::new("BMC", |row, _| row.bmc.as_deref().into()),
    TableColumn::new("WHY", |row, _| host_reason_cell(row).into()),
];

pub fn hosts_table(rows: &[HostRow], wide: bool, now: Now) -> TextTable {
    TextTable::of_rows(rows, &COLUMNS, wide, now)
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
