//! Times and numbers as a person reads them.

use std::time::Duration;

use jiff::Timestamp;

use crate::Now;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// An age as kubectl prints one: the two largest units that matter.
pub fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => parts(seconds, MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => parts(seconds, HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => parts(seconds, DAY, "d", HOUR, "h"),
        691_200.. => format!("{}d", seconds / DAY),
    }
}

fn parts(seconds: u64, large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    let (whole, rest) = (seconds / large, seconds % large / small);
    if rest == 0 {
        format!("{whole}{large_unit}")
    } else {
        format!("{whole}{large_unit}{rest}{small_unit}")
    }
}

/// A moment: UTC to the second.
pub fn moment(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// `since 2026-11-21 04:00:00Z (12m)`.
pub(super) fn since(time: Timestamp, now: Now) -> String {
    format!("since {} ({})", moment(time), age(now.since(time)))
}

/// `at 2026-11-21 05:00:00Z (in 48m)`, or how long ago it has passed.
pub fn due(time: Timestamp, now: Now) -> String {
    if time > now.wall {
        let ahead = Duration::try_from(time.duration_since(now.wall)).unwrap_or_default();
        format!("at {} (in {})", moment(time), age(ahead))
    } else {
        format!("at {} ({} ago)", moment(time), age(now.since(time)))
    }
}

/// How long ago, or that it lies ahead: another machine's clock wrote it.
pub(crate) fn ago(at: Timestamp, now: Now) -> String {
    if at > now.wall {
        return due(at, now);
    }
    format!("{} ago", age(now.since(at)))
}

/// `1st`, `2nd`, `11th`.
pub fn ordinal(number: usize) -> String {
    let suffix = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

/// The first line of a reason, in quotes; or that there is none.
pub(super) fn quoted(reason: &str) -> String {
    match reason.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("\"{line}\""),
        None => "no reason given".into(),
    }
}

/// The first names, and how many more there are.
pub fn some(names: &[String], most: usize) -> String {
    let mut shown: Vec<String> = names.iter().take(most).cloned().collect();
    if names.len() > most {
        shown.push(format!("and {} more", names.len() - most));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_two_units_at_most() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_100, "3h5m"),
            (30_000, "8h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (800_000, "9d"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), text, "{seconds}");
        }
    }

    #[test]
    fn a_moment_ahead_and_one_behind_are_told_apart() {
        let now = super::super::testkit::now(1_000);
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(due(at(1_060), now), "at 1970-01-01 00:17:40Z (in 60s)");
        assert_eq!(due(at(940), now), "at 1970-01-01 00:15:40Z (60s ago)");
    }

    #[test]
    fn places_read_as_english() {
        let places: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111].map(ordinal).into();
        assert_eq!(
            places.join(" "),
            "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th"
        );
    }

    #[test]
    fn a_long_list_says_how_much_is_left_out() {
        let names: Vec<String> = ["a", "b", "c"].map(String::from).into();
        assert_eq!(some(&names, 2), "a, b, and 1 more");
        assert_eq!(some(&names, 3), "a, b, c");
    }

    #[test]
    fn a_reason_is_its_first_line_that_says_anything() {
        assert_eq!(quoted("\n  kernel 6.18\nmore"), "\"kernel 6.18\"");
        assert_eq!(quoted(" \n"), "no reason given");
    }
}
