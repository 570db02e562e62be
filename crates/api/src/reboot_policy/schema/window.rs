//! Schema of `spec.windows[]`.

use serde_json::{Value, json};

use super::words::{
    cel_rule, enum_schema, object_schema, pattern_schema, set_schema, text_schema, with_keyword,
    with_rules,
};

pub(super) fn window_schema() -> Value {
    let window = object_schema(
        "A part of some days. A window belongs to the day on which it starts.",
        &[],
        [
            ("days", days_schema()),
            (
                "start",
                start_time_schema("When it starts, like 22:00. Default, with end: the whole day."),
            ),
            (
                "end",
                pattern_schema(
                    "When it ends, like 04:00, or 24:00. If the end is not later than the start, \
                     it is on the next day.",
                    5,
                    "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$",
                    "write a time of day like 04:00",
                ),
            ),
            ("timeZone", time_zone_schema()),
            ("rrule", rrule_schema()),
            ("excludedDates", excluded_dates_schema()),
        ],
    );
    with_rules(
        with_keyword(window, "minProperties", json!(1)),
        [
            cel_rule(
                "!(has(self.days) && has(self.rrule))",
                "write either days or rrule; an rrule can name days by BYDAY",
            ),
            cel_rule(
                "has(self.start) == has(self.end)",
                "write both start and end, or neither for whole days",
            ),
        ],
    )
}

pub(crate) fn days_schema() -> Value {
    let day = enum_schema("A day.", &["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]);
    set_schema(
        "The days on which the window starts. Default: every day.",
        1,
        7,
        &day,
    )
}

pub(crate) fn start_time_schema(description: &str) -> Value {
    pattern_schema(
        description,
        5,
        "^([01][0-9]|2[0-3]):[0-5][0-9]$",
        "write a time of day like 22:00",
    )
}

pub(crate) fn excluded_dates_schema() -> Value {
    let date = pattern_schema(
        "A date.",
        10,
        r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$",
        "write a date like 2026-12-24",
    );
    set_schema("Dates on which the window does not start.", 1, 128, &date)
}

pub(crate) fn time_zone_schema() -> Value {
    pattern_schema(
        "The time zone, as an IANA name like Europe/Berlin. Default: UTC.",
        64,
        "^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$",
        "write a time zone's IANA name like Europe/Berlin, or UTC",
    )
}

/// A recurrence rule of RFC 5545.
pub(crate) fn rrule_schema() -> Value {
    let days = r"self.matches(r'(?i)^\s*(DTSTART[^\n]*\n\s*)?(RRULE:)?([^\n]*;)?FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)(;[^\n]*)?\s*$')";
    with_rules(
        text_schema(
            "The days on which the window starts, as a rule of RFC 5545 like \
             FREQ=MONTHLY;BYDAY=2TU. A first line DTSTART:YYYYMMDD gives the day from which \
             INTERVAL and COUNT count; without it INTERVAL counts from Monday, 2024-01-01.",
            512,
        ),
        [
            cel_rule(
                days,
                "write one rule with FREQ=DAILY, WEEKLY, MONTHLY or YEARLY, like FREQ=MONTHLY;BYDAY=2TU",
            ),
            cel_rule(
                r"!self.matches(r'(?i)BY(HOUR|MINUTE|SECOND)=')",
                "leave out BYHOUR, BYMINUTE and BYSECOND: the times of day are start and end",
            ),
        ],
    )
}
