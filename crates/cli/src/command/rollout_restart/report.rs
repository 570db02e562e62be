//! Prints progress and results of restarts.

use std::io::Write as _;

use dogwatch_core::rollout::{RolloutState, RolloutVerdict};
use dogwatch_k8s::rollout::RolloutTarget;
use serde::Serialize;

use crate::exit::CommandFailure;
use crate::output::{self, OutputFormat};
use crate::paint::{TerminalColour, TerminalPaint};
use dogwatch_core::printable::printable_text;

/// The result of one restart, as `-o json` prints it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestartResult {
    /// The name as a person writes it.
    pub name: String,
    pub namespace: Option<String>,
    #[serde(skip)]
    pub state: RolloutState,
    pub restarted: bool,
    /// One CamelCase word.
    pub reason: &'static str,
    pub message: String,
    /// Desired pods of the new template.
    pub wanted: u32,
    /// Existing pods of the new template.
    pub updated: u32,
    /// Ready pods of the new template.
    pub ready: u32,
}

impl RestartResult {
    pub fn of_verdict(found: &RolloutTarget, verdict: &RolloutVerdict) -> Self {
        Self {
            name: found.name.clone(),
            namespace: found.namespace.clone(),
            state: verdict.state,
            restarted: verdict.state == RolloutState::Done,
            reason: verdict.because.reason,
            message: verdict.because.message.clone(),
            wanted: verdict.progress.wanted,
            updated: verdict.progress.updated,
            ready: verdict.progress.ready,
        }
    }
}

pub fn print_progress_line(
    format: OutputFormat,
    name: &str,
    state: RolloutState,
    text: &str,
) -> Result<(), CommandFailure> {
    let text = printable_text(text);
    match format {
        OutputFormat::Json | OutputFormat::Yaml => eprintln!("{name}: {text}"),
        OutputFormat::Table | OutputFormat::Wide => {
            let colour = match state {
                RolloutState::Going => TerminalColour::Yellow,
                RolloutState::Done => TerminalColour::Green,
                RolloutState::Failed => TerminalColour::Red,
            };
            let text = TerminalPaint::of_stdout().paint_text(colour, &text);
            let mut out = output::buffered_stdout();
            writeln!(out, "{name}: {text}")?;
            out.flush()?;
        }
    }
    Ok(())
}

pub fn print_dry_run(found: &[RolloutTarget], format: OutputFormat) -> Result<(), CommandFailure> {
    let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
    output::print_document(format, &names, |out| {
        let mut names = names.iter();
        Ok(names.try_for_each(|name| writeln!(out, "{name}: would be restarted (dry run)"))?)
    })
}
