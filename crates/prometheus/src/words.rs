//! Sentences. They are compared before they are written on a Node, so they say nothing that changes
//! from one question to the next: no value, no time.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::address::Address;
use crate::answer::{Labels, Results};

/// How many are named; a condition is read by people.
const NAMED: usize = 5;
/// The longest text that is quoted, in characters.
const LONGEST: usize = 200;

/// The alerts that block, if there are any.
pub(crate) fn alerts(names: &BTreeSet<&str>, address: &Address) -> Option<String> {
    let listed = listed(names.iter().map(|name| clip(name)).collect())?;
    let noun = if names.len() == 1 { "alert" } else { "alerts" };
    Some(format!("{noun} {listed} at {address}"))
}

/// The results of a query, if there are any.
pub(crate) fn results(results: &Results, address: &Address) -> Option<String> {
    let mut series: Vec<String> = results.all().map(|labels| clip(&named(labels))).collect();
    series.sort_unstable();
    let hint = if results.all_zero {
        " (the values are 0: a comparison without `bool` has no result where it is not so)"
    } else {
        ""
    };
    let listed = listed(series)?;
    Some(format!(
        "the query has results at {address}: {listed}{hint}"
    ))
}

fn listed(mut texts: Vec<String>) -> Option<String> {
    let more = texts.len().saturating_sub(NAMED);
    texts.truncate(NAMED);
    let last = match more {
        0 => texts.pop()?,
        more => format!("{more} more"),
    };
    if texts.is_empty() {
        return Some(last);
    }
    Some(format!("{} and {last}", texts.join(", ")))
}

/// A series as PromQL writes it.
fn named(labels: &Labels) -> String {
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

/// What somebody else wrote, fit for a line: short, and without what would break it.
pub(crate) fn clip(text: &str) -> String {
    let clean = |char: char| if char.is_control() { ' ' } else { char };
    let mut clipped: String = text.chars().take(LONGEST).map(clean).collect();
    if text.chars().nth(LONGEST).is_some() {
        clipped.push('…');
    }
    clipped
}

#[cfg(test)]
mod tests;
