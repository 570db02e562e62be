//! Parses a `spec` field by field: an unreadable field does not affect the others.

use std::collections::BTreeSet;
use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::name_suggestions::suggest_names;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The fields that are still to be read, and the problems so far.
pub(super) struct SpecFields {
    left: Map<String, Value>,
    /// The field names that this program reads.
    known: BTreeSet<String>,
    problems: Vec<String>,
}

impl SpecFields {
    /// An absent `spec` has no fields.
    pub(super) fn from_spec(spec: &Value) -> Self {
        let mut fields = Self {
            left: Map::new(),
            known: BTreeSet::new(),
            problems: Vec::new(),
        };
        match spec {
            Value::Object(parts) => fields.left.clone_from(parts),
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                fields.problems.push("spec: it is not an object".to_owned());
            }
        }
        fields
    }

    /// Whether the `spec` as a whole cannot be read.
    pub(super) fn is_unreadable(&self) -> bool {
        !self.problems.is_empty() && self.left.is_empty()
    }

    /// Reads one field. `None`: it is absent, or unreadable and recorded as a problem.
    pub(super) fn take_field<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        self.try_take_field(name).unwrap_or_default()
    }

    /// Like [`Self::take_field`], but tells absent from unreadable.
    pub(super) fn try_take_field<T: DeserializeOwned>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, ()> {
        self.known.insert(name.to_owned());
        let Some(value) = self.left.remove(name).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        serde_json::from_value(value)
            .map(Some)
            .map_err(|error| self.add_problem(name, describe_error(&error)))
    }

    pub(super) fn add_problem(&mut self, name: &str, what: impl std::fmt::Display) {
        self.problems.push(format!("spec.{name}: {what}"));
    }

    /// Zero is allowed.
    pub(super) fn parse_duration(&mut self, name: &str, text: Option<&String>) -> Option<Duration> {
        match duration::parse_duration(text?) {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.add_problem(name, error);
                None
            }
        }
    }

    /// Zero is a problem here.
    pub(super) fn parse_positive_duration(
        &mut self,
        name: &str,
        text: Option<&String>,
    ) -> Option<Duration> {
        let duration = self.parse_duration(name, text)?;
        if duration.is_zero() {
            self.add_problem(name, "it must be longer than zero");
            return None;
        }
        Some(duration)
    }

    /// All problems. A field that was never read is one too: it may be a rule that holds reboots
    /// back, misspelled or of a newer version.
    pub(super) fn into_problems(mut self) -> Vec<String> {
        for name in self.left.keys() {
            let known = self.known.iter().map(String::as_str);
            let meant = suggest_names(name, known);
            let help = if meant.is_empty() {
                "remove it; or if a newer version of Dogwatch has this field, update Dogwatch"
                    .to_owned()
            } else {
                format!("did you mean {}?", meant.join(" or "))
            };
            self.problems
                .push(format!("spec.{name}: unknown field; {help}"));
        }
        self.problems
    }
}

/// The parser's error; if it lists the existing fields, the one that was probably meant.
fn describe_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let mut names = text.split('`').skip(1).step_by(2);
    let wrong = names.next().filter(|_| text.starts_with("unknown field"));
    let meant = wrong
        .map(|wrong| suggest_names(wrong, names))
        .unwrap_or_default();
    if meant.is_empty() {
        return text;
    }
    format!("{text}; did you mean {}?", meant.join(" or "))
}
