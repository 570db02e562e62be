//! The functions that Kubernetes adds to CEL, as far as they are built: those of lists, `find` and
//! `findAll`, `isURL` and `isQuantity`. And `duration` and `timestamp`, which are numbers of
//! nanoseconds here: they compare and add as they should, and have no methods.

// The library hands every argument of a function over as a value.
#![allow(clippy::needless_pass_by_value)]

use std::cmp::Ordering;
use std::sync::Arc;

use cel::extractors::This;
use cel::{Context, ExecutionError, Value as CelValue};

use super::cel_value::nanoseconds_of_time;

/// The functions of [`add_kubernetes_functions`].
const ADDED_FUNCTIONS: [&str; 8] = [
    "duration",
    "find",
    "findAll",
    "isQuantity",
    "isSorted",
    "isURL",
    "sum",
    "timestamp",
];

/// The functions of the standard library.
const STANDARD_FUNCTIONS: [&str; 18] = [
    "bool",
    "bytes",
    "contains",
    "double",
    "dyn",
    "endsWith",
    "has",
    "hasValue",
    "int",
    "matches",
    "or",
    "orValue",
    "size",
    "startsWith",
    "string",
    "type",
    "uint",
    "value",
];

pub(super) fn is_known_function(name: &str) -> bool {
    let is_operator = !name.starts_with(|letter: char| letter.is_ascii_alphabetic());
    is_operator || ADDED_FUNCTIONS.contains(&name) || STANDARD_FUNCTIONS.contains(&name)
}

pub(super) fn add_kubernetes_functions(context: &mut Context<'_, '_>) {
    let added = context
        .add_function("isSorted", is_sorted)
        .and_then(|()| context.add_function("duration", duration_of_text))
        .and_then(|()| context.add_function("timestamp", timestamp_of_text))
        .and_then(|()| context.add_function("sum", sum_items))
        .and_then(|()| context.add_function("find", find_match))
        .and_then(|()| context.add_function("findAll", find_all_matches))
        .and_then(|()| context.add_function("isURL", is_url))
        .and_then(|()| context.add_function("isQuantity", is_quantity));
    added.expect("no function of the standard library has such a name");
}

type CelList = Arc<Vec<CelValue>>;

fn is_sorted(This(list): This<CelList>) -> bool {
    list.is_sorted_by(|one, other| {
        matches!(
            one.partial_cmp(other),
            Some(Ordering::Less | Ordering::Equal)
        )
    })
}

fn sum_items(This(list): This<CelList>) -> Result<CelValue, ExecutionError> {
    let mut items = list.iter().cloned();
    let first = items.next().unwrap_or(CelValue::Int(0));
    items.try_fold(first, |sum, item| sum + item)
}

fn find_match(
    This(text): This<Arc<String>>,
    pattern: Arc<String>,
) -> Result<CelValue, ExecutionError> {
    let regex = parse_pattern("find", &pattern)?;
    Ok(regex.find(&text).map_or("", |found| found.as_str()).into())
}

fn find_all_matches(
    This(text): This<Arc<String>>,
    pattern: Arc<String>,
) -> Result<CelValue, ExecutionError> {
    let regex = parse_pattern("findAll", &pattern)?;
    let found = regex.find_iter(&text);
    let texts = found.map(|found| CelValue::from(found.as_str()));
    Ok(CelValue::List(Arc::new(texts.collect())))
}

fn parse_pattern(function: &str, pattern: &str) -> Result<regex::Regex, ExecutionError> {
    regex::Regex::new(pattern)
        .map_err(|error| ExecutionError::function_error(function, error.to_string()))
}

/// Whether a text is an absolute address, or the path of one.
fn is_url(text: Arc<String>) -> bool {
    text.starts_with('/')
        || text.parse::<http::Uri>().is_ok_and(|uri| {
            uri.scheme().is_some() && uri.host().is_some_and(|host| !host.is_empty())
        })
}

fn is_quantity(text: Arc<String>) -> bool {
    const PATTERN: &str =
        r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$";
    regex::Regex::new(PATTERN).is_ok_and(|pattern| pattern.is_match(&text))
}

/// A duration as Go writes it, in nanoseconds.
fn duration_of_text(text: Arc<String>) -> Result<i64, ExecutionError> {
    parse_go_duration(&text).ok_or_else(|| {
        ExecutionError::function_error("duration", format!("invalid duration \"{text}\""))
    })
}

fn timestamp_of_text(text: Arc<String>) -> Result<i64, ExecutionError> {
    nanoseconds_of_time(&text).ok_or_else(|| {
        ExecutionError::function_error("timestamp", format!("invalid timestamp \"{text}\""))
    })
}

/// Longer units first: `m` begins `ms`.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

fn parse_go_duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut sum = 0.0;
    loop {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let after = &rest[digits..];
        let (unit, nanoseconds) = UNITS.iter().find(|(unit, _)| after.starts_with(unit))?;
        sum += number * nanoseconds;
        rest = &after[unit.len()..];
        if rest.is_empty() {
            break;
        }
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a duration beyond 292 years is as good as that"
    )]
    let whole = (sign * sum) as i64;
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1m", Some(60_000_000_000)),
            ("1h30m", Some(5_400_000_000_000)),
            ("1.5s", Some(1_500_000_000)),
            ("250ms", Some(250_000_000)),
            ("-2ns", Some(-2)),
            ("0s", Some(0)),
            ("", None),
            ("5", None),
            ("3d", None),
            ("m", None),
        ] {
            assert_eq!(parse_go_duration(text), expected, "{text}");
        }
    }
}
