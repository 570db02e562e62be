//! Prints the checks as a table.

use super::device_check::{DeviceCheck, PowerControlWorks};
use crate::cluster::current_time;
use crate::exit::CommandFailure;
use crate::output::{self, OutputFormat};
use crate::paint::{TerminalColour, TerminalPaint};
use crate::table::{OutputColumn, TableCell, TextTable};

const COLUMNS: [OutputColumn<DeviceCheck>; 8] = [
    OutputColumn::new("HOST", |one, _| one.host.as_str().into()),
    OutputColumn::new("LEVEL", |one, _| {
        one.level.map(|level| level.to_string()).into()
    }),
    OutputColumn::new("BMC", |one, _| one.bmc.as_deref().into()),
    OutputColumn::new("WORKS", |one, _| works_cell(one.works)),
    OutputColumn::new("POWER", |one, _| one.power.into()),
    OutputColumn::only_wide("PRODUCT", |one, _| one.product.as_deref().into()),
    OutputColumn::only_wide("SYSTEM-UUID", |one, _| one.system_uuid.as_deref().into()),
    OutputColumn::new("WHY", |one, _| reason_text(one).into()),
];

pub fn print_checks(checked: &[DeviceCheck], format: OutputFormat) -> Result<(), CommandFailure> {
    output::print_document(format, &checked, |out| {
        let wide = format == OutputFormat::Wide;
        let table = TextTable::of_rows(checked, &COLUMNS, wide, current_time());
        Ok(table.write_table(out, TerminalPaint::of_stdout())?)
    })
}

fn works_cell(works: PowerControlWorks) -> TableCell {
    let (text, colour) = match works {
        PowerControlWorks::Yes => ("yes", TerminalColour::Green),
        PowerControlWorks::No => ("no", TerminalColour::Red),
        PowerControlWorks::Unknown => ("unknown", TerminalColour::Yellow),
    };
    TableCell::coloured(text, Some(colour))
}

fn reason_text(one: &DeviceCheck) -> String {
    let mut text = one.reason.clone();
    if !one.message.is_empty() {
        text = format!("{text}: {}", one.message);
    }
    if let Some(next) = &one.next {
        text = format!("{text} → {next}");
    }
    text
}
