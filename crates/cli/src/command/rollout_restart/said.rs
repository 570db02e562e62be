//! What is said of restarts.

use std::io::Write as _;

use dogwatch_core::rollout::{State, Verdict};
use dogwatch_k8s::rollout::Found;
use serde::Serialize;

use crate::exit::Failure;
use crate::output::{self, Format};
use crate::paint::{Colour, Paint};
use crate::table::printable;

/// How one ended; `-o json` prints it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    /// As a person writes it.
    pub name: String,
    /// Its namespace.
    pub namespace: Option<String>,
    #[serde(skip)]
    pub state: State,
    /// Whether its new pods are ready.
    pub restarted: bool,
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
    /// Pods that are wanted of the new template.
    pub wanted: u32,
    /// Pods that have it.
    pub updated: u32,
    /// Those of them that are ready.
    pub ready: u32,
}

impl Ended {
    /// Of the last verdict.
    pub fn of(found: &Found, verdict: &Verdict) -> Self {
        Self {
            name: found.name.clone(),
            namespace: found.namespace.clone(),
            state: verdict.state,
            restarted: verdict.state == State::Done,
            reason: verdict.because.reason,
            message: verdict.because.message.clone(),
            wanted: verdict.progress.wanted,
            updated: verdict.progress.updated,
            ready: verdict.progress.ready,
        }
    }
}

/// One line of the progress.
pub fn line(format: Format, name: &str, state: State, text: &str) -> Result<(), Failure> {
    let text = printable(text);
    match format {
        Format::Json | Format::Yaml => eprintln!("{name}: {text}"),
        Format::Table | Format::Wide => {
            let colour = match state {
                State::Going => Colour::Yellow,
                State::Done => Colour::Green,
                State::Failed => Colour::Red,
            };
            let text = Paint::of_stdout().paint(colour, &text);
            let mut out = output::stdout();
            writeln!(out, "{name}: {text}")?;
            out.flush()?;
        }
    }
    Ok(())
}

/// What would be restarted.
pub fn dry(found: &[Found], format: Format) -> Result<(), Failure> {
    let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
    let mut out = output::stdout();
    match format {
        Format::Json => output::json(&mut out, &names)?,
        Format::Yaml => output::yaml(&mut out, &names)?,
        Format::Table | Format::Wide => {
            for name in names {
                writeln!(out, "{name}: would be restarted (dry run)")?;
            }
        }
    }
    Ok(out.flush()?)
}
