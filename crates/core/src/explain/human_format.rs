//! Formats times and numbers for people.

use std::time::Duration;

use jiff::Timestamp;

use crate::Now;
use crate::reboot::RebootTrigger;

const MINUTE_SECONDS: u64 = 60;
const HOUR_SECONDS: u64 = 60 * MINUTE_SECONDS;
const DAY_SECONDS: u64 = 24 * HOUR_SECONDS;

/// An age as kubectl prints it: the two largest units that matter.
pub fn format_age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => format_two_units(seconds, MINUTE_SECONDS, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE_SECONDS),
        10_800..28_800 => format_two_units(seconds, HOUR_SECONDS, "h", MINUTE_SECONDS, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR_SECONDS),
        172_800..691_200 => format_two_units(seconds, DAY_SECONDS, "d", HOUR_SECONDS, "h"),
        691_200.. => format!("{}d", seconds / DAY_SECONDS),
    }
}

fn format_two_units(
    seconds: u64,
    large: u64,
    large_unit: &str,
    small: u64,
    small_unit: &str,
) -> String {
    let (whole, rest) = (seconds / large, seconds % large / small);
    if rest == 0 {
        format!("{whole}{large_unit}")
    } else {
        format!("{whole}{large_unit}{rest}{small_unit}")
    }
}

/// A time in UTC, to the second.
pub fn format_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// `since 2026-11-21 04:00:00Z (12m)`.
pub(super) fn format_since(time: Timestamp, now: Now) -> String {
    format!(
        "since {} ({})",
        format_time(time),
        format_age(now.elapsed_since(time))
    )
}

/// `at 2026-11-21 05:00:00Z (in 48m)`, or how long ago it was.
pub fn format_due(time: Timestamp, now: Now) -> String {
    if time > now.wall {
        let ahead = Duration::try_from(time.duration_since(now.wall)).unwrap_or_default();
        format!("at {} (in {})", format_time(time), format_age(ahead))
    } else {
        format!(
            "at {} ({} ago)",
            format_time(time),
            format_age(now.elapsed_since(time))
        )
    }
}

/// How long ago, or in how long: another machine's clock may be ahead.
pub(crate) fn format_ago(at: Timestamp, now: Now) -> String {
    if at > now.wall {
        return format_due(at, now);
    }
    format!("{} ago", format_age(now.elapsed_since(at)))
}

/// `1st`, `2nd`, `11th`.
pub fn format_ordinal(number: usize) -> String {
    let suffix = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

/// The first line of the reason in quotes, or a note that there is none.
pub(super) fn quote_reason(reason: &str) -> String {
    match reason.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("\"{line}\""),
        None => "no reason given".into(),
    }
}

/// Who or what asks for a reboot, and why.
pub(crate) fn describe_trigger(trigger: &RebootTrigger) -> String {
    let by = trigger.requester.as_deref().map(|by| format!(" by {by}"));
    let (source, reason) = (&trigger.source, quote_reason(&trigger.reason));
    format!("{source}{}: {reason}", by.unwrap_or_default())
}

/// At most `most` names, and the number of the others.
pub fn join_first_names(names: &[String], most: usize) -> String {
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
            assert_eq!(format_age(Duration::from_secs(seconds)), text, "{seconds}");
        }
    }

    #[test]
    fn a_moment_ahead_and_one_behind_are_told_apart() {
        let now = super::super::testkit::now(1_000);
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(
            format_due(at(1_060), now),
            "at 1970-01-01 00:17:40Z (in 60s)"
        );
        assert_eq!(
            format_due(at(940), now),
            "at 1970-01-01 00:15:40Z (60s ago)"
        );
    }

    #[test]
    fn places_read_as_english() {
        let places: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111]
            .map(format_ordinal)
            .into();
        assert_eq!(
            places.join(" "),
            "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th"
        );
    }

    #[test]
    fn a_long_list_says_how_much_is_left_out() {
        let names: Vec<String> = ["a", "b", "c"].map(String::from).into();
        assert_eq!(join_first_names(&names, 2), "a, b, and 1 more");
        assert_eq!(join_first_names(&names, 3), "a, b, c");
    }

    #[test]
    fn a_reason_is_its_first_line_that_says_anything() {
        assert_eq!(quote_reason("\n  kernel 6.18\nmore"), "\"kernel 6.18\"");
        assert_eq!(quote_reason(" \n"), "no reason given");
    }
}
