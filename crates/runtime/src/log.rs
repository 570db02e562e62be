//! The log: to stderr, as text for people or as JSON for machines.
//!
//! **Promises:** one event a line. The level is INFO, or what `DOGWATCH_LOG` says (`off`, `error`,
//! `warn`, `info`, `debug`, `trace`), for the whole program. `RUST_LOG`'s filters by module are not
//! supported: they bring an engine of regular expressions, 0.37 MB of binary (measured with fat LTO
//! and size optimisation), for a program with one loop. Messages that contain bodies of answers are
//! never shown.

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
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The variable's value is no level.
    #[error(
        "{LEVEL_VARIABLE}={0} is not a log level: write off, error, warn, info, debug or trace"
    )]
    Level(String),
    /// The log was already started.
    #[error("the log was initialized twice")]
    Twice,
}

/// Call it once per process.
pub fn init_log(format: LogFormat) -> Result<(), LogError> {
    let level = parse_level(std::env::var(LEVEL_VARIABLE).ok().as_deref())?;
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let shown = filter_fn(|metadata| is_target_shown(metadata.target()));
    let begun = match format {
        LogFormat::Text => log.finish().with(shown).try_init(),
        LogFormat::Json => log
            .json()
            .flatten_event(true)
            .finish()
            .with(shown)
            .try_init(),
    };
    begun.map_err(|_| LogError::Twice)
}

/// kube's client logs at WARN the whole body of an answer that it cannot parse: a Secret's, or a
/// token review's with the token in it. The caller reports the error itself.
const BODY_LOGGING_TARGETS: [&str; 1] = ["kube_client::client"];

/// Whether messages of this target are shown, at any level.
pub fn is_target_shown(target: &str) -> bool {
    !BODY_LOGGING_TARGETS.contains(&target)
}

fn parse_level(text: Option<&str>) -> Result<LevelFilter, LogError> {
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
        assert_eq!(parse_level(None), Ok(LevelFilter::INFO));
        assert_eq!(parse_level(Some("")), Ok(LevelFilter::INFO));
        assert_eq!(parse_level(Some("debug")), Ok(LevelFilter::DEBUG));
        assert_eq!(parse_level(Some("off")), Ok(LevelFilter::OFF));
        let error = parse_level(Some("loud")).unwrap_err().to_string();
        assert!(
            error.contains("DOGWATCH_LOG=loud") && error.contains("warn"),
            "{error}"
        );
    }
}
