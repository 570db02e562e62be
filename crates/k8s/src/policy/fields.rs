//! The parts of a `spec`, read one by one: a part that cannot be read spoils no other.

use std::time::Duration;

use dogwatch_core::duration;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What is left to be read, and what was wrong so far.
pub(super) struct Fields {
    left: Map<String, Value>,
    problems: Vec<String>,
}

impl Fields {
    /// Of a `spec`; one that is absent has no parts.
    pub(super) fn of(spec: &Value) -> Self {
        let mut fields = Self {
            left: Map::new(),
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
        let Some(value) = self.left.remove(name).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        serde_json::from_value(value)
            .map(Some)
            .map_err(|error| self.problem(name, error))
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

    /// Everything that was wrong. What was never asked for is a rule of a newer schema than this
    /// program's, and so a problem too.
    pub(super) fn problems(mut self) -> Vec<String> {
        for name in self.left.keys() {
            self.problems.push(format!(
                "spec.{name}: this version of Dogwatch does not know it: update the coordinators"
            ));
        }
        self.problems
    }
}
