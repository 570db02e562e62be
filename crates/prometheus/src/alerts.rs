//! Which alerts count, as kured's `--alert-filter-regexp`, `--alert-filter-match-only` and
//! `--alert-firing-only` say it: names are matched anywhere in them, not from end to end.

use std::collections::BTreeSet;

use dogwatch_core::policy::Alerts;
use regex::{Regex, RegexBuilder};

use crate::answer::Results;
use crate::trouble::Trouble;

/// What a compiled expression may take. Its text comes from whoever edits policies.
const SIZE_LIMIT: usize = 1 << 20;

pub(crate) struct Filter {
    ignore: Option<Regex>,
    only: Option<Regex>,
    firing_only: bool,
}

impl Filter {
    pub(crate) fn new(alerts: &Alerts) -> Result<Self, Trouble> {
        Ok(Self {
            ignore: compile("ignore", alerts.ignore.as_deref())?,
            only: compile("only", alerts.only.as_deref())?,
            firing_only: alerts.firing_only,
        })
    }

    /// The names of those that block, each once.
    pub(crate) fn blocking<'a>(&self, results: &'a Results) -> BTreeSet<&'a str> {
        let counted = results.all().filter(|labels| {
            !self.firing_only
                || labels
                    .get("alertstate")
                    .is_some_and(|state| state == "firing")
        });
        counted
            .filter_map(|labels| labels.get("alertname"))
            .map(String::as_str)
            .filter(|name| self.counts(name))
            .collect()
    }

    fn counts(&self, name: &str) -> bool {
        let is_ignored = self
            .ignore
            .as_ref()
            .is_some_and(|regex| regex.is_match(name));
        !is_ignored && self.only.as_ref().is_none_or(|regex| regex.is_match(name))
    }
}

/// An empty expression is none, as with kured: it would match, and ignore, every alert.
fn compile(field: &'static str, text: Option<&str>) -> Result<Option<Regex>, Trouble> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let mut builder = RegexBuilder::new(text);
    builder.size_limit(SIZE_LIMIT).dfa_size_limit(SIZE_LIMIT);
    let compiled = builder.build().map(Some);
    compiled.map_err(|error| Trouble::Regex {
        field,
        why: last_line(&error.to_string()),
    })
}

/// The crate draws the expression with an arrow below it; the reason is the last line.
fn last_line(text: &str) -> String {
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests;
