//! Times as a narrow column shows them, in UTC.

use std::time::Duration;

use dogwatch_core::explain::format_age;
use jiff::{SignedDuration, Timestamp};

/// Within this time of now, seconds matter.
const SECONDS_MATTER: SignedDuration = SignedDuration::from_mins(10);
/// Beyond this, a weekday would be ambiguous.
const WEEKDAY_MATTERS: SignedDuration = SignedDuration::from_hours(6 * 24);

/// `03:40:12`, `03:40`, `Thu 03:40` or `12-24 03:40`, by how far it is from now.
pub fn clock_text(time: Timestamp, now: Timestamp) -> String {
    let apart = time.duration_since(now).abs();
    let is_today = time.strftime("%F").to_string() == now.strftime("%F").to_string();
    let format = if apart < SECONDS_MATTER {
        "%H:%M:%S"
    } else if is_today {
        "%H:%M"
    } else if apart < WEEKDAY_MATTERS {
        "%a %H:%M"
    } else {
        "%m-%d %H:%M"
    };
    time.strftime(format).to_string()
}

/// How long ago; nothing if another machine's clock is ahead.
pub fn age_text(since: Timestamp, now: Timestamp) -> String {
    format_age(positive_span(since, now))
}

/// How long until then, or for how long it has passed.
pub fn left_text(deadline: Timestamp, now: Timestamp) -> String {
    if deadline > now {
        format_age(positive_span(now, deadline))
    } else {
        format!("{} late", format_age(positive_span(deadline, now)))
    }
}

fn positive_span(from: Timestamp, until: Timestamp) -> Duration {
    Duration::try_from(until.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_parts_that_are_needed_to_understand_it() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-11-25T20:00:00Z");
        for (time, text) in [
            ("2026-11-25T20:05:07Z", "20:05:07"),
            ("2026-11-25T22:05:07Z", "22:05"),
            ("2026-11-26T03:40:00Z", "Thu 03:40"),
            ("2026-12-24T03:40:00Z", "12-24 03:40"),
            ("2026-11-25T19:30:00Z", "19:30"),
        ] {
            assert_eq!(clock_text(at(time), now), text);
        }
        assert_eq!(left_text(at("2026-11-25T20:01:30Z"), now), "90s");
        assert_eq!(left_text(at("2026-11-25T19:59:00Z"), now), "60s late");
    }
}
