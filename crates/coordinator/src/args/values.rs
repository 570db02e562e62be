//! Values of flags. clap puts the flag's name and the text before what these say.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use dogwatch_core::duration::{self, DurationError};
use dogwatch_core::limit::{Limit, LimitError};
use dogwatch_core::name::{BadName, NodeName};

/// A program and its arguments, at least the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words(pub Vec<String>);

pub(super) fn node_name(text: &str) -> Result<NodeName, BadName> {
    NodeName::new(text)
}

/// A namespace is a DNS label, by the same rule as a group.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    dogwatch_core::name::GroupName::new(text)
        .map(String::from)
        .map_err(|error| error.why.to_owned())
}

pub(super) fn limit(text: &str) -> Result<Limit, LimitError> {
    text.parse()
}

pub(super) fn duration(text: &str) -> Result<Duration, DurationError> {
    duration::parse(text)
}

pub(super) fn positive(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(Duration::ZERO) => Err("it must be longer than nothing".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

/// An absolute path without `..`, which would mean another place wherever a link is on the way.
pub(super) fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    if !path.is_absolute() {
        return Err("write an absolute path, one that begins with /".to_owned());
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err("write the path without ..".to_owned());
    }
    if text.contains('\0') {
        return Err("a path has no zero byte".to_owned());
    }
    Ok(path.to_owned())
}

/// Splits as a POSIX shell would: quotes and backslashes count, nothing is expanded.
pub(super) fn words(text: &str) -> Result<Words, String> {
    let words = shlex::split(text)
        .ok_or("a quote is not closed, or a backslash stands at the end".to_owned())?;
    match words.first() {
        Some(program) if !program.is_empty() => Ok(Words(words)),
        Some(_) | None => Err("name a program, for instance \"systemctl reboot\"".to_owned()),
    }
}
