//! Durations as Go writes them (`90s`, `10m`, `1h30m`, `500ms`): the form of every flag and every
//! field of Dogwatch that holds one. Pure text in, [`Duration`] out, and back.
//!
//! Promises: [`parse_duration`] reads back unchanged what [`format_duration`] prints. A text that
//! Go would refuse is refused here too, and so is a negative one, because no wait can be negative.

use std::time::Duration;

use crate::printable::one_line;

/// Go's units with their length in nanoseconds, longest first.
const GO_UNITS: [(&str, u128); 8] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000), // U+00B5, micro sign
    ("μs", 1_000), // U+03BC, Greek mu: Go takes both
    ("ns", 1),
];

/// The longest duration that Go can hold (an `int64` of nanoseconds, some 292 years).
const MAX_NANOSECONDS: u128 = i64::MAX as u128;

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("a duration is missing: write it like 90s, 10m or 1h30m")]
    Empty,
    #[error("the duration {0:?} is negative: write it like 90s, 10m or 1h30m")]
    Negative(String),
    #[error("the duration {0:?} lacks a unit: write it like 90s, 10m or 1h30m")]
    NoUnit(String),
    /// Go does not know the unit. Days are the unit that people try.
    #[error(
        "the duration {text:?} has the unit {unit:?}: use h, m, s, ms, us or ns (a day is 24h)"
    )]
    UnknownUnit {
        text: String,
        /// The unit as written.
        unit: String,
    },
    /// Another character stands where a number should.
    #[error("{0:?} is not a duration: write it like 90s, 10m or 1h30m")]
    NoNumber(String),
    /// Longer than Go's longest duration.
    #[error("the duration {0:?} is too long: at most 2562047h")]
    TooLong(String),
}

/// Reads a duration as Go's `time.ParseDuration` does, but refuses negative ones.
///
/// Fractions (`1.5h`) are accepted; like Go, this cuts off what is finer than a nanosecond. A bare
/// `0` is zero.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    if text.starts_with('-') {
        return Err(DurationError::Negative(one_line(text)));
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(DurationError::NoNumber(one_line(text)));
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let (nanos, tail) = parse_number_and_unit(rest, text)?;
        total = total.saturating_add(nanos);
        rest = tail;
    }
    if total > MAX_NANOSECONDS {
        return Err(DurationError::TooLong(one_line(text)));
    }
    let seconds = u64::try_from(total / 1_000_000_000).expect("LONGEST seconds fit in 64 bits");
    let nanos = u32::try_from(total % 1_000_000_000).expect("a remainder of 1e9 fits in 32 bits");
    Ok(Duration::new(seconds, nanos))
}

/// Prints a duration in the shortest Go form: `1h30m`, not Go's own `1h30m0s`; zero is `0s`.
pub fn format_duration(duration: Duration) -> String {
    let mut left = duration.as_nanos();
    if left == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, length) in GO_UNITS {
        let count = left / length;
        if count > 0 {
            text.push_str(&count.to_string());
            text.push_str(unit);
            left %= length;
        }
    }
    text
}

/// Parses one number and its unit from the front of `rest`. Returns nanoseconds, and the rest.
fn parse_number_and_unit<'a>(rest: &'a str, text: &str) -> Result<(u128, &'a str), DurationError> {
    let (whole, after) = split_digits(rest);
    let (fraction, after) = match after.strip_prefix('.') {
        Some(tail) => split_digits(tail),
        None => ("", after),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::NoNumber(one_line(text)));
    }
    let end = after
        .find(|c: char| c.is_ascii_digit() || c == '.')
        .unwrap_or(after.len());
    let (unit, tail) = after.split_at(end);
    let length = unit_length(unit, text)?;
    let nanos = scale_whole(whole, length)
        .and_then(|nanos| nanos.checked_add(scale_fraction(fraction, length)))
        .ok_or_else(|| DurationError::TooLong(one_line(text)))?;
    Ok((nanos, tail))
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn unit_length(unit: &str, text: &str) -> Result<u128, DurationError> {
    if unit.is_empty() {
        return Err(DurationError::NoUnit(one_line(text)));
    }
    GO_UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, length)| *length)
        .ok_or_else(|| DurationError::UnknownUnit {
            text: one_line(text),
            unit: one_line(unit),
        })
}

fn scale_whole(whole: &str, length: u128) -> Option<u128> {
    if whole.is_empty() {
        return Some(0);
    }
    whole.parse::<u128>().ok()?.checked_mul(length)
}

/// The digits behind the point, cut off at the nanosecond. Eighteen digits are finer than that in
/// every unit (an hour is 3.6e12 ns); more would overflow.
fn scale_fraction(digits: &str, length: u128) -> u128 {
    let (mut numerator, mut denominator) = (0_u128, 1_u128);
    for digit in digits.bytes().take(18) {
        numerator = numerator * 10 + u128::from(digit - b'0');
        denominator *= 10;
    }
    numerator * length / denominator
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_reads_what_go_reads() {
        let table = [
            ("0", Duration::ZERO),
            ("90s", Duration::from_secs(90)),
            ("10m", Duration::from_mins(10)),
            ("1h30m", Duration::from_mins(90)),
            ("500ms", Duration::from_millis(500)),
            ("1.5h", Duration::from_mins(90)),
            (".5s", Duration::from_millis(500)),
            ("1.s", Duration::from_secs(1)),
            ("+5s", Duration::from_secs(5)),
            ("1.1s", Duration::from_millis(1100)),
            ("3us", Duration::from_micros(3)),
            ("3µs", Duration::from_micros(3)),
            ("3μs", Duration::from_micros(3)),
            (
                "0.3333333333333333333h",
                Duration::from_nanos(1_199_999_999_999),
            ),
            ("1m1h", Duration::from_mins(61)),
            (
                "9223372036854775807ns",
                Duration::from_nanos(i64::MAX as u64),
            ),
        ];
        for (text, expected) in table {
            assert_eq!(parse_duration(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn it_refuses_what_go_refuses_and_says_what_to_write() {
        for (text, says) in [
            ("", "90s, 10m or 1h30m"),
            ("-5s", "negative"),
            ("5", "lacks a unit"),
            ("1h5", "lacks a unit"),
            ("3d", "a day is 24h"),
            ("5 s", "use h, m, s"),
            ("s", "not a duration"),
            (".s", "not a duration"),
            ("+", "not a duration"),
            ("ten minutes", "not a duration"),
            ("9223372036854775808ns", "too long"),
            ("99999999999999999999999999999999999999999h", "too long"),
        ] {
            let error = parse_duration(text).expect_err(text).to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }

    #[test]
    fn it_prints_the_shortest_go_form() {
        for text in [
            "0s", "1m30s", "10m", "1h30m", "500ms", "24h", "1s500ms", "3us", "7ns",
        ] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back_unchanged(nanos in 0..i64::MAX as u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+.0-9hmsnuµd ]{0,60}") {
            let _ = parse_duration(&text);
        }
    }
}
