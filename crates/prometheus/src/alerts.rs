//! Chooses the alerts that block, as kured's `--alert-filter-regexp`, `--alert-filter-match-only`
//! and `--alert-firing-only` do: an expression matches anywhere in a name, not from end to end.

use std::collections::BTreeSet;

use dogwatch_core::policy::BlockingAlerts;
use regex::{Regex, RegexBuilder};

use crate::answer::QueryResults;
use crate::query_error::QueryError;

/// The size limit of a compiled expression in bytes. Its text comes from whoever edits policies.
const REGEX_SIZE_LIMIT: usize = 1 << 20;

pub(crate) struct AlertMatcher {
    ignore: Option<Regex>,
    only: Option<Regex>,
    firing_only: bool,
}

impl AlertMatcher {
    pub(crate) fn new(alerts: &BlockingAlerts) -> Result<Self, QueryError> {
        Ok(Self {
            ignore: compile_regex("ignore", alerts.ignore.as_deref())?,
            only: compile_regex("only", alerts.only.as_deref())?,
            firing_only: alerts.firing_only,
        })
    }

    /// The names of the blocking alerts, each once.
    pub(crate) fn blocking_alerts<'a>(&self, results: &'a QueryResults) -> BTreeSet<&'a str> {
        let counted = results.iter_labels().filter(|labels| {
            !self.firing_only
                || labels
                    .get("alertstate")
                    .is_some_and(|state| state == "firing")
        });
        counted
            .filter_map(|labels| labels.get("alertname"))
            .map(String::as_str)
            .filter(|name| self.is_counted(name))
            .collect()
    }

    fn is_counted(&self, name: &str) -> bool {
        let is_ignored = self
            .ignore
            .as_ref()
            .is_some_and(|regex| regex.is_match(name));
        !is_ignored && self.only.as_ref().is_none_or(|regex| regex.is_match(name))
    }
}

/// An empty expression counts as none, as with kured: it would match, and ignore, every alert.
fn compile_regex(field: &'static str, text: Option<&str>) -> Result<Option<Regex>, QueryError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let mut builder = RegexBuilder::new(text);
    builder
        .size_limit(REGEX_SIZE_LIMIT)
        .dfa_size_limit(REGEX_SIZE_LIMIT);
    let compiled = builder.build().map(Some);
    compiled.map_err(|error| QueryError::Regex {
        field,
        why: last_line(&error.to_string()),
    })
}

/// The regex crate draws the expression with an arrow below it; the reason is the last line.
fn last_line(text: &str) -> String {
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests;
