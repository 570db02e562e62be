//! The log: to stderr, as text for people or as JSON for machines.
//!
//! **Promises:** one event a line; the level is INFO, or what `DOGWATCH_LOG` says (`off`, `error`,
//! `warn`, `info`, `debug`, `trace`), for all of the program alike. Not `RUST_LOG`'s filters by
//! module: those bring an engine of regular expressions, 0.37 MB of binary (measured with fat LTO
//! and size optimisation), for a program with one loop. What logs bodies of answers is never shown.

use std::io::IsTerminal as _;

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The variable that sets the level.
pub const LEVEL_VARIABLE: &str = "DOGWATCH_LOG";

/// `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Why there is no log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The variable holds something else.
    #[error("{LEVEL_VARIABLE}={0} is no level: write off, error, warn, info, debug or trace")]
    Level(String),
    /// It was begun before.
    #[error("the log was begun twice")]
    Twice,
}

/// Begins the log of this process.
pub fn begin(format: Format) -> Result<(), LogError> {
    let level = level(std::env::var(LEVEL_VARIABLE).ok().as_deref())?;
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let shown = filter_fn(|metadata| is_shown(metadata.target()));
    let begun = match format {
        Format::Text => log.finish().with(shown).try_init(),
        Format::Json => log
            .json()
            .flatten_event(true)
            .finish()
            .with(shown)
            .try_init(),
    };
    begun.map_err(|_| LogError::Twice)
}

/// kube's client logs the whole body of an answer that it cannot parse, at WARN: a Secret's, or a
/// token review's with the token in it. What went wrong is said by whoever asked.
const LOGS_BODIES: [&str; 1] = ["kube_client::client"];

/// Whether what is logged under this target is shown, at any level.
pub fn is_shown(target: &str) -> bool {
    !LOGS_BODIES.contains(&target)
}

fn level(text: Option<&str>) -> Result<LevelFilter, LogError> {
    match text {
        None | Some("") => Ok(LevelFilter::INFO),
        Some(text) => text.parse().map_err(|_| LogError::Level(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_info_unless_the_variable_says_otherwise() {
        assert_eq!(level(None), Ok(LevelFilter::INFO));
        assert_eq!(level(Some("")), Ok(LevelFilter::INFO));
        assert_eq!(level(Some("debug")), Ok(LevelFilter::DEBUG));
        assert_eq!(level(Some("off")), Ok(LevelFilter::OFF));
        let error = level(Some("loud")).unwrap_err().to_string();
        assert!(
            error.contains("DOGWATCH_LOG=loud") && error.contains("warn"),
            "{error}"
        );
    }
}
