//! `spec.windows[]`.

use serde_json::{Value, json};

use super::words::{formed, object, one_of, rule, ruled, set, text, with};

pub(super) fn window() -> Value {
    let window = object(
        "A part of some days. The day is that of the start.",
        &[],
        [
            ("days", days()),
            (
                "start",
                start("When it starts, like 22:00. Default, with end: the whole day."),
            ),
            (
                "end",
                formed(
                    "When it ends, like 04:00, or 24:00. One that is not later than the start is on the \
                     day after.",
                    5,
                    "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$",
                    "write a time of day like 04:00",
                ),
            ),
            ("timeZone", time_zone()),
            ("rrule", rrule()),
            ("excludedDates", excluded_dates()),
        ],
    );
    ruled(
        with(window, "minProperties", json!(1)),
        [
            rule(
                "!(has(self.days) && has(self.rrule))",
                "write either days or rrule; an rrule can name days by BYDAY",
            ),
            rule(
                "has(self.start) == has(self.end)",
                "write both start and end, or neither for whole days",
            ),
        ],
    )
}

/// Days of the week.
pub(crate) fn days() -> Value {
    let day = one_of("A day.", &["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]);
    set(
        "The days on which it starts. Default: every day.",
        1,
        7,
        &day,
    )
}

/// A time of day.
pub(crate) fn start(description: &str) -> Value {
    formed(
        description,
        5,
        "^([01][0-9]|2[0-3]):[0-5][0-9]$",
        "write a time of day like 22:00",
    )
}

/// Dates that are left out.
pub(crate) fn excluded_dates() -> Value {
    let date = formed(
        "A date.",
        10,
        r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$",
        "write a date like 2026-12-24",
    );
    set("Dates on which it does not start.", 1, 128, &date)
}

/// A time zone's name.
pub(crate) fn time_zone() -> Value {
    formed(
        "Whose clock, as an IANA name like Europe/Berlin. Default: UTC.",
        64,
        "^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$",
        "write a time zone's IANA name like Europe/Berlin, or UTC",
    )
}

/// A rule of RFC 5545.
pub(crate) fn rrule() -> Value {
    let days = r"self.matches(r'(?i)^\s*(DTSTART[^\n]*\n\s*)?(RRULE:)?([^\n]*;)?FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)(;[^\n]*)?\s*$')";
    ruled(
        text(
            "The days on which it starts, as a rule of RFC 5545 like FREQ=MONTHLY;BYDAY=2TU. A first \
             line DTSTART:YYYYMMDD says from when on INTERVAL and COUNT count; without one INTERVAL \
             counts from Monday, 2024-01-01.",
            512,
        ),
        [
            rule(
                days,
                "write one rule with FREQ=DAILY, WEEKLY, MONTHLY or YEARLY, like FREQ=MONTHLY;BYDAY=2TU",
            ),
            rule(
                r"!self.matches(r'(?i)BY(HOUR|MINUTE|SECOND)=')",
                "leave out BYHOUR, BYMINUTE and BYSECOND: the times of day are start and end",
            ),
        ],
    )
}
