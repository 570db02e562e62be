//! Output formats, and writing to standard output.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

use crate::exit::{CliExitCode, CommandFailure};
use crate::table::to_printable;

#[derive(Debug, Clone, Copy, clap::Args)]
pub struct OutputArgs {
    /// Output format
    #[arg(
        id = "output",
        long = "output",
        short = 'o',
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    pub format: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Table or sentences
    Table,
    /// Like table, with more columns
    Wide,
    /// JSON; one document per line when changes are followed
    Json,
    /// YAML; one document after each --- when changes are followed
    Yaml,
}

/// Writes one indented JSON document.
fn write_json(out: &mut impl Write, value: &impl Serialize) -> Result<(), CommandFailure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| serialize_failure(&error))?;
    writeln!(out, "{text}")?;
    Ok(())
}

/// Writes one JSON document on one line.
pub fn write_json_line(out: &mut impl Write, value: &impl Serialize) -> Result<(), CommandFailure> {
    let text = serde_json::to_string(value).map_err(|error| serialize_failure(&error))?;
    writeln!(out, "{text}")?;
    Ok(())
}

pub fn write_yaml(out: &mut impl Write, value: &impl Serialize) -> Result<(), CommandFailure> {
    // Converted through JSON types first, so that both formats have the same shape, however the
    // YAML serializer writes enums.
    let value = serde_json::to_value(value).map_err(|error| serialize_failure(&error))?;
    let text = serde_saphyr::to_string(&value).map_err(|error| serialize_failure(&error))?;
    writeln!(out, "{}", text.trim_end())?;
    Ok(())
}

/// Prints the document in a format for programs, or what `for_people` writes.
pub fn print_document(
    format: OutputFormat,
    document: &impl Serialize,
    for_people: impl FnOnce(&mut StdoutWriter) -> Result<(), CommandFailure>,
) -> Result<(), CommandFailure> {
    let mut out = buffered_stdout();
    match format {
        OutputFormat::Json => write_json(&mut out, document)?,
        OutputFormat::Yaml => write_yaml(&mut out, document)?,
        OutputFormat::Table | OutputFormat::Wide => for_people(&mut out)?,
    }
    Ok(out.flush()?)
}

fn serialize_failure(error: &dyn std::error::Error) -> CommandFailure {
    CommandFailure::new(
        CliExitCode::Failed,
        format!("failed to write the output: {error}"),
    )
}

/// Prints one line and flushes it, without the control characters that other writers may have put
/// into it.
pub fn print_line(text: &str) -> Result<(), CommandFailure> {
    let mut out = buffered_stdout();
    writeln!(out, "{}", to_printable(text))?;
    Ok(out.flush()?)
}

pub type StdoutWriter = io::BufWriter<io::StdoutLock<'static>>;

/// Standard output that is written at once and not line by line.
pub fn buffered_stdout() -> StdoutWriter {
    io::BufWriter::new(io::stdout().lock())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_and_json_say_the_same() {
        let value = serde_json::json!({
            "nodes": [{ "name": "n1", "phase": "waiting", "text": "yes: \"no\"\nand 1.0 # x" }],
            "empty": [],
            "number": "007",
        });
        let mut text = Vec::new();
        write_yaml(&mut text, &value).unwrap();
        let back: serde_json::Value =
            serde_saphyr::from_str(&String::from_utf8(text).unwrap()).unwrap();
        assert_eq!(back, value);
    }
}
