//! What is printed for programs.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

use crate::exit::{Exit, Failure};

/// What most commands that print take.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Output {
    /// How it is printed
    #[arg(
        id = "output",
        long = "output",
        short = 'o',
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    pub format: Format,
}

/// `-o`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table, or sentences
    Table,
    /// The same with more columns
    Wide,
    /// JSON; one document a line where changes are followed
    Json,
    /// YAML; one document after each --- where changes are followed
    Yaml,
}

/// One JSON document, readable.
pub fn json(out: &mut impl Write, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| unprintable(&error))?;
    writeln!(out, "{text}")?;
    Ok(())
}

/// One JSON document on a line of its own.
pub fn json_line(out: &mut impl Write, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| unprintable(&error))?;
    writeln!(out, "{text}")?;
    Ok(())
}

/// One YAML document.
pub fn yaml(out: &mut impl Write, value: &impl Serialize) -> Result<(), Failure> {
    // By way of JSON's own types: one shape for both, whatever the serialiser thinks of enums.
    let value = serde_json::to_value(value).map_err(|error| unprintable(&error))?;
    let text = serde_saphyr::to_string(&value).map_err(|error| unprintable(&error))?;
    writeln!(out, "{}", text.trim_end())?;
    Ok(())
}

fn unprintable(error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::Failed, format!("failed to write the output: {error}"))
}

/// One line, at once.
pub fn say(text: &str) -> Result<(), Failure> {
    let mut out = stdout();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Standard output, written at once and not line by line.
pub fn stdout() -> io::BufWriter<io::StdoutLock<'static>> {
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
        yaml(&mut text, &value).unwrap();
        let back: serde_json::Value =
            serde_saphyr::from_str(&String::from_utf8(text).unwrap()).unwrap();
        assert_eq!(back, value);
    }
}
