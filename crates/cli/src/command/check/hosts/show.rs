//! What was found, in columns.

use std::io::Write as _;

use super::checked::{Checked, Works};
use crate::exit::Failure;
use crate::output::{self, Format};
use crate::paint::{Colour, Paint};
use crate::table::{Cell, Table};

/// Prints it.
pub fn print(checked: &[Checked], format: Format) -> Result<(), Failure> {
    let mut out = output::stdout();
    match format {
        Format::Json => output::json(&mut out, &checked)?,
        Format::Yaml => output::yaml(&mut out, &checked)?,
        Format::Table | Format::Wide => {
            table(checked, format == Format::Wide).write(&mut out, Paint::of_stdout())?;
        }
    }
    Ok(out.flush()?)
}

fn table(checked: &[Checked], wide: bool) -> Table {
    let mut columns = vec!["HOST", "LEVEL", "BMC", "WORKS", "POWER"];
    if wide {
        columns.extend(["PRODUCT", "SYSTEM-UUID"]);
    }
    columns.push("WHY");
    Table {
        columns,
        rows: checked.iter().map(|one| row(one, wide)).collect(),
    }
}

fn row(one: &Checked, wide: bool) -> Vec<Cell> {
    let mut cells = vec![
        one.host.as_str().into(),
        one.level.map(|level| level.to_string()).into(),
        one.bmc.as_deref().into(),
        works(one.works),
        one.power.into(),
    ];
    if wide {
        cells.push(one.product.as_deref().into());
        cells.push(one.system_uuid.as_deref().into());
    }
    cells.push(why(one).into());
    cells
}

fn works(works: Works) -> Cell {
    let (text, colour) = match works {
        Works::Yes => ("yes", Colour::Green),
        Works::No => ("no", Colour::Red),
        Works::Unknown => ("unknown", Colour::Yellow),
    };
    Cell::coloured(text, Some(colour))
}

fn why(one: &Checked) -> String {
    let mut text = one.reason.clone();
    if !one.message.is_empty() {
        text = format!("{text}: {}", one.message);
    }
    if let Some(next) = &one.next {
        text = format!("{text} → {next}");
    }
    text
}
