//! The parts of a `spec`, read one by one: a part that cannot be read spoils no other.

use std::collections::BTreeSet;
use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::near::near;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What is left to be read, and what was wrong so far.
pub(super) struct Fields {
    left: Map<String, Value>,
    /// The names that this program reads.
    known: BTreeSet<String>,
    problems: Vec<String>,
}

impl Fields {
    /// Of a `spec`; one that is absent has no parts.
    pub(super) fn of(spec: &Value) -> Self {
        let mut fields = Self {
            left: Map::new(),
            known: BTreeSet::new(),
            problems: Vec::new(),
        };
        match spec {
            Value::Object(parts) => fields.left.clone_from(parts),
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                fields.problems.push("spec: it is no object".to_owned());
            }
        }
        fields
    }

    /// Whether nothing at all can be read.
    pub(super) fn is_unreadable(&self) -> bool {
        !self.problems.is_empty() && self.left.is_empty()
    }

    /// One part; `None` where it is absent, or cannot be read and is a problem.
    pub(super) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        self.try_take(name).unwrap_or_default()
    }

    /// The same for who has to know which.
    pub(super) fn try_take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, ()> {
        self.known.insert(name.to_owned());
        let Some(value) = self.left.remove(name).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        serde_json::from_value(value)
            .map(Some)
            .map_err(|error| self.problem(name, in_words(&error)))
    }

    /// Something is wrong with a part.
    pub(super) fn problem(&mut self, name: &str, what: impl std::fmt::Display) {
        self.problems.push(format!("spec.{name}: {what}"));
    }

    /// A duration, zero included.
    pub(super) fn duration(&mut self, name: &str, text: Option<&String>) -> Option<Duration> {
        match duration::parse(text?) {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.problem(name, error);
                None
            }
        }
    }

    /// A duration that is no time limit when it is zero.
    pub(super) fn positive(&mut self, name: &str, text: Option<&String>) -> Option<Duration> {
        let duration = self.duration(name, text)?;
        if duration.is_zero() {
            self.problem(name, "it must be longer than zero");
            return None;
        }
        Some(duration)
    }

    /// Everything that was wrong. A field that was never asked for is a problem too: it may be a rule that
    /// holds reboots back, misspelled or of a newer version.
    pub(super) fn problems(mut self) -> Vec<String> {
        for name in self.left.keys() {
            let known = self.known.iter().map(String::as_str);
            let meant = near(name, known);
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

/// A parser's error; where it lists the fields that exist, the one that may have been meant.
fn in_words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let mut names = text.split('`').skip(1).step_by(2);
    let wrong = names.next().filter(|_| text.starts_with("unknown field"));
    let meant = wrong.map(|wrong| near(wrong, names)).unwrap_or_default();
    if meant.is_empty() {
        return text;
    }
    format!("{text}; did you mean {}?", meant.join(" or "))
}
