//! Writes the reasons as sentences. They are compared before they are written on a Node, so they
//! contain nothing that changes between two queries: no value, no time.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use dogwatch_core::printable;

use crate::address::PrometheusAddress;
use crate::answer::{QueryResults, SeriesLabels};

/// The number of items that a sentence names; people read conditions.
const MAX_NAMED_ITEMS: usize = 5;
/// The longest text that is quoted, in characters.
const MAX_TEXT_CHARS: usize = 200;

/// `None` if no alert blocks.
pub(crate) fn format_alerts(names: &BTreeSet<&str>, address: &PrometheusAddress) -> Option<String> {
    let listed = format_list(names.iter().map(|name| clip_text(name)).collect())?;
    let noun = if names.len() == 1 { "alert" } else { "alerts" };
    Some(format!("{noun} {listed} at {address}"))
}

/// `None` if the query has no results.
pub(crate) fn format_results(
    results: &QueryResults,
    address: &PrometheusAddress,
) -> Option<String> {
    let mut series: Vec<String> = results
        .iter_labels()
        .map(|labels| clip_text(&format_series(labels)))
        .collect();
    series.sort_unstable();
    let hint = if results.all_zero {
        " (the values are 0: write the comparison without `bool`, so that it has no result when it is false)"
    } else {
        ""
    };
    let listed = format_list(series)?;
    Some(format!(
        "the query has results at {address}: {listed}{hint}"
    ))
}

fn format_list(mut texts: Vec<String>) -> Option<String> {
    let more = texts.len().saturating_sub(MAX_NAMED_ITEMS);
    texts.truncate(MAX_NAMED_ITEMS);
    let last = match more {
        0 => texts.pop()?,
        more => format!("{more} more"),
    };
    if texts.is_empty() {
        return Some(last);
    }
    Some(format!("{} and {last}", texts.join(", ")))
}

/// A series in PromQL's syntax.
fn format_series(labels: &SeriesLabels) -> String {
    let mut text = labels.get("__name__").cloned().unwrap_or_default();
    let others = labels.iter().filter(|(name, _)| *name != "__name__");
    let pairs: Vec<String> = others
        .map(|(name, value)| format!("{name}={value:?}"))
        .collect();
    if !pairs.is_empty() || text.is_empty() {
        write!(text, "{{{}}}", pairs.join(",")).expect("a String takes everything");
    }
    text
}

/// A foreign text, shortened and made fit for one line.
pub(crate) fn clip_text(text: &str) -> String {
    printable::clip_text(text, MAX_TEXT_CHARS)
}

#[cfg(test)]
mod tests;
