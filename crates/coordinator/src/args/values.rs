//! Parsers of flag values. clap puts the flag's name and the value before their messages.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use dogwatch_core::duration::{self, DurationError};
use dogwatch_core::limit::{LimitError, UnavailabilityLimit};
use dogwatch_core::name::{BadName, NodeName};

/// A program and its arguments; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWords(pub Vec<String>);

pub(super) fn parse_node_name(text: &str) -> Result<NodeName, BadName> {
    NodeName::new(text)
}

/// A namespace is a DNS label, as a group is.
pub(super) fn parse_namespace(text: &str) -> Result<String, String> {
    dogwatch_core::name::GroupName::new(text)
        .map(String::from)
        .map_err(|error| error.why.to_owned())
}

/// The key of a label: a name, and a DNS name before it. The labels of Dogwatch's own are not asked
/// for by others.
pub(super) fn parse_label_key(text: &str) -> Result<String, String> {
    let (prefix, name) = text.split_once('/').ok_or("write it as PREFIX/NAME")?;
    let is_name = |text: &str| {
        let ends = |end: Option<char>| end.is_some_and(|end| end.is_ascii_alphanumeric());
        let fits = |one: char| one.is_ascii_alphanumeric() || "-_.".contains(one);
        text.len() <= 63
            && text.chars().all(fits)
            && ends(text.chars().next())
            && ends(text.chars().last())
    };
    if !dogwatch_core::name::is_dns_name(prefix) || !is_name(name) {
        return Err("it is not the key of a label".to_owned());
    }
    if prefix == "dogwatch.dev" {
        return Err("it is a label of Dogwatch".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn parse_limit(text: &str) -> Result<UnavailabilityLimit, LimitError> {
    text.parse()
}

pub(super) fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    duration::parse_duration(text)
}

pub(super) fn parse_positive_duration(text: &str) -> Result<Duration, String> {
    match duration::parse_duration(text) {
        Ok(Duration::ZERO) => Err("it must be greater than 0".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

/// An absolute path without `..`, which would lead elsewhere if a part of the path is a symbolic
/// link.
pub(super) fn parse_absolute_path(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    if !path.is_absolute() {
        return Err("write an absolute path that begins with /".to_owned());
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err("write a path without ..".to_owned());
    }
    if text.contains('\0') {
        return Err("write a path without a zero byte".to_owned());
    }
    Ok(path.to_owned())
}

/// Splits as a POSIX shell would: quotes and backslashes count, nothing is expanded.
pub(super) fn parse_shell_words(text: &str) -> Result<ShellWords, String> {
    let words = shlex::split(text)
        .ok_or("a quote is not closed, or the command ends with a backslash".to_owned())?;
    match words.first() {
        Some(program) if !program.is_empty() => Ok(ShellWords(words)),
        Some(_) | None => Err("write a command, for instance \"systemctl reboot\"".to_owned()),
    }
}
