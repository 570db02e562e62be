//! Output formats, and writing to standard output.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use clap::ValueEnum;
use dogwatch_runtime::mutex::lock_ignoring_poison;
use serde::Serialize;

use crate::exit::{CliExitCode, CommandFailure};
use dogwatch_core::printable::printable_text;

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
    writeln!(out, "{}", printable_text(text))?;
    Ok(out.flush()?)
}

tokio::task_local! {
    static CAPTURED_OUTPUT: CapturedOutput;
}

/// What a command prints when the dashboard runs it.
#[derive(Debug, Clone, Default)]
pub struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl CapturedOutput {
    /// Runs a command whose output, and warnings, come here in place of the terminal.
    pub async fn capture<T>(&self, command: impl Future<Output = T>) -> T {
        CAPTURED_OUTPUT.scope(self.clone(), command).await
    }

    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&lock_ignoring_poison(&self.0)).into_owned()
    }
}

/// Whether the running command has no terminal of its own.
pub fn is_captured() -> bool {
    CAPTURED_OUTPUT.try_with(|_| ()).is_ok()
}

pub type StdoutWriter = io::BufWriter<CommandOutputWriter>;

/// Standard output, or what takes its place.
#[derive(Debug)]
pub enum CommandOutputWriter {
    Stdout(io::Stdout),
    Captured(CapturedOutput),
}

impl Write for CommandOutputWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            CommandOutputWriter::Stdout(stdout) => stdout.write(data),
            CommandOutputWriter::Captured(captured) => {
                lock_ignoring_poison(&captured.0).write(data)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            CommandOutputWriter::Stdout(stdout) => stdout.flush(),
            CommandOutputWriter::Captured(_) => Ok(()),
        }
    }
}

/// Standard output that is written at once and not line by line.
pub fn buffered_stdout() -> StdoutWriter {
    let captured = CAPTURED_OUTPUT.try_with(Clone::clone);
    io::BufWriter::new(match captured {
        Ok(captured) => CommandOutputWriter::Captured(captured),
        Err(_) => CommandOutputWriter::Stdout(io::stdout()),
    })
}

/// Prints lines to standard error.
pub fn print_warning(text: &str) {
    let captured = CAPTURED_OUTPUT.try_with(|captured| {
        let mut bytes = lock_ignoring_poison(&captured.0);
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(b'\n');
    });
    if captured.is_err() {
        eprintln!("{text}");
    }
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
