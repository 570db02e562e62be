//! The table of the hosts.

use dogwatch_core::Now;
use dogwatch_core::explain::HostRow;

use crate::paint::TerminalColour;
use crate::table::{OutputColumn, TableCell, TextTable};

const COLUMNS: [OutputColumn<HostRow>; 12] = [
    OutputColumn::new("NAMESPACE", |row, _| row.namespace.as_str().into()),
    OutputColumn::new("HOST", |row, _| row.name.as_str().into()),
    OutputColumn::new("POWER", |row, _| {
        let cell = |power| TableCell::coloured(power, Some(power_colour(power)));
        row.power.map(cell).into()
    }),
    OutputColumn::new("WANTED", |row, _| row.wanted.into()),
    OutputColumn::new("HELD-BY", |row, _| {
        let held = (!row.held_off_by.is_empty()).then(|| row.held_off_by.join(","));
        held.map(|held| TableCell::coloured(held, Some(TerminalColour::Yellow)))
            .into()
    }),
    OutputColumn::new("PENDING", |row, now| {
        TableCell::age_since(row.pending_since, now)
    }),
    OutputColumn::new("CONTROL", |row, _| power_control_cell(row).into()),
    OutputColumn::only_wide("SEEN", |row, now| {
        TableCell::age_since(row.observed_at, now)
    }),
    OutputColumn::only_wide("OFF-CONFIRMED", |row, now| {
        TableCell::age_since(row.off_confirmed_at, now)
    }),
    OutputColumn::new("NODE", |row, _| row.node.as_deref().into()),
    OutputColumn::new("BMC", |row, _| row.bmc.as_deref().into()),
    OutputColumn::new("WHY", |row, _| host_reason_cell(row).into()),
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
