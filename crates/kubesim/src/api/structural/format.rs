//! The string formats that a schema can name.

use std::sync::LazyLock;

use jiff::civil::Date;
use regex::Regex;

/// Formats that are checked; the real server knows some more, like `isbn`, and ignores others.
const KNOWN_FORMATS: [&str; 8] = [
    "date-time",
    "datetime",
    "date",
    "uuid",
    "ipv4",
    "ipv6",
    "byte",
    "duration",
];

static TIME_OF_DAY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$")
        .expect("a constant pattern")
});
static UUID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
        .expect("a constant pattern")
});
static BASE64: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")
        .expect("a constant pattern")
});
static DURATION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[-+]?(0|([0-9]+([.][0-9]*)?\s*(ns|us|µs|μs|ms|s|m|h|d|w))+)$")
        .expect("a constant pattern")
});

pub(super) fn is_known_format(format: &str) -> bool {
    KNOWN_FORMATS.contains(&format)
}

/// Whether a text has this format; every text has an unknown one.
pub(super) fn has_format(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => is_date_time(text),
        "date" => is_date(text),
        "uuid" => UUID.is_match(text),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "byte" => BASE64.is_match(text),
        "duration" => DURATION.is_match(text),
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower
        .split_once('t')
        .is_some_and(|(date, time)| is_date(date) && TIME_OF_DAY.is_match(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_date_a_time_of_day_and_an_offset() {
        for good in [
            "2026-12-24T03:00:00Z",
            "2026-12-24t03:00:00.123z",
            "2026-12-24T03:00:00+01:00",
        ] {
            assert!(has_format("date-time", good), "{good}");
        }
        for bad in [
            "",
            "soon",
            "2026-12-24",
            "2026-02-30T03:00:00Z",
            "2026-12-24T24:00:00Z",
            "2026-12-24T03:00Z",
            "2026-12-24T03:00:00",
        ] {
            assert!(!has_format("date-time", bad), "{bad}");
        }
    }
}
