//! Prints the checks as a table.

use std::io::Write as _;

use super::device_check::{DeviceCheck, PowerControlWorks};
use crate::exit::CommandFailure;
use crate::output::{self, OutputFormat};
use crate::paint::{TerminalColour, TerminalPaint};
use crate::table::{TableCell, TextTable};

pub fn print_checks(checked: &[DeviceCheck], format: OutputFormat) -> Result<(), CommandFailure> {
    let mut out = output::buffered_stdout();
    match format {
        OutputFormat::Json => output::write_json(&mut out, &checked)?,
        OutputFormat::Yaml => output::write_yaml(&mut out, &checked)?,
        OutputFormat::Table | OutputFormat::Wide => {
            render_table(checked, format == OutputFormat::Wide)
                .write_table(&mut out, TerminalPaint::of_stdout())?;
        }
    }
    Ok(out.flush()?)
}

fn render_table(checked: &[DeviceCheck], wide: bool) -> TextTable {
    let mut columns = vec!["HOST", "LEVEL", "BMC", "WORKS", "POWER"];
    if wide {
        columns.extend(["PRODUCT", "SYSTEM-UUID"]);
    }
    columns.push("WHY");
    TextTable {
        columns,
        rows: checked.iter().map(|one| render_row(one, wide)).collect(),
    }
}

fn render_row(one: &DeviceCheck, wide: bool) -> Vec<TableCell> {
    let mut cells = vec![
        one.host.as_str().into(),
        one.level.map(|level| level.to_string()).into(),
        one.bmc.as_deref().into(),
        works_cell(one.works),
        one.power.into(),
    ];
    if wide {
        cells.push(one.product.as_deref().into());
        cells.push(one.system_uuid.as_deref().into());
    }
    cells.push(reason_text(one).into());
    cells
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
