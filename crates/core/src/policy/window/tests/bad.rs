//! Invalid windows are refused, and the message says what to write.

use super::*;

fn refused(spec: &WindowSpec) -> String {
    MaintenanceWindow::new(spec).unwrap_err().to_string()
}

fn refused_rule(rrule: &str) -> String {
    refused(&WindowSpec {
        rrule: Some(rrule.into()),
        ..WindowSpec::default()
    })
}

const FIELDS: &[(&str, &str)] = &[
    (
        r#"{"days": ["Mon", "Friday"]}"#,
        r#"days: "Friday" is not a weekday; write Mon,"#,
    ),
    (r#"{"days": ["mon"]}"#, r#"days: "mon" is not a weekday"#),
    (r#"{"days": []}"#, "days: the list is empty"),
    (
        r#"{"days": ["Mon"], "rrule": "FREQ=DAILY"}"#,
        "rrule: `days` is set as well",
    ),
    (r#"{"start": "22:00"}"#, "end: is missing; write both"),
    (r#"{"end": "04:00"}"#, "start: is missing; write both"),
    (
        r#"{"start": "24:00", "end": "04:00"}"#,
        r#"start: "24:00" is not a time of day; write HH:MM"#,
    ),
    (
        r#"{"start": "22:00", "end": "4:00"}"#,
        r#"end: "4:00" is not a time of day"#,
    ),
    (
        r#"{"start": "22:00", "end": "04:60"}"#,
        r#"end: "04:60" is not a time of day"#,
    ),
    (
        r#"{"start": "22:00", "end": "04:00:00"}"#,
        r#"end: "04:00:00" is no"#,
    ),
    (
        r#"{"start": "+2:00", "end": "04:00"}"#,
        r#"start: "+2:00" is no"#,
    ),
    (r#"{"start": "", "end": "04:00"}"#, r#"start: "" is no"#),
    (
        r#"{"timeZone": "Europe/Atlantis"}"#,
        r#"timeZone: "Europe/Atlantis" is not a known time zone; write"#,
    ),
    (
        r#"{"timeZone": "Etc/Unknown"}"#,
        r#"timeZone: "Etc/Unknown" is not a known time zone"#,
    ),
    (
        r#"{"timeZone": "CET-1CEST"}"#,
        r#"timeZone: "CET-1CEST" is not a known time zone"#,
    ),
    (
        r#"{"timeZone": ""}"#,
        r#"timeZone: "" is not a known time zone"#,
    ),
    (
        r#"{"excludedDates": ["2026-02-29"]}"#,
        r#"excludedDates: "2026-02-29" is not a date; write"#,
    ),
    (
        r#"{"excludedDates": ["24.12.2026"]}"#,
        r#"excludedDates: "24.12.2026" is not a date"#,
    ),
    (
        r#"{"excludedDates": ["20261224"]}"#,
        r#"excludedDates: "20261224" is not a date"#,
    ),
];

#[test]
fn each_field_is_named_with_what_is_wrong_and_what_to_write() {
    for (json, message) in FIELDS {
        let said = refused(&serde_json::from_str(json).unwrap());
        assert!(said.starts_with(message), "{json}: {said}");
    }
}

#[test]
fn a_field_that_is_not_known_is_refused() {
    let typo = r#"{"start": "22:00", "end": "04:00", "timezone": "Europe/Berlin"}"#;
    assert!(serde_json::from_str::<WindowSpec>(typo).is_err());
}

const PARTS: &[(&str, &str)] = &[
    ("", "has no rule"),
    (
        "FREQ=DAILY;BYDAY=\u{800}",
        "has a character that is not allowed in a rule",
    ),
    ("RRULE:", "has no rule"),
    (
        "hello",
        "\"HELLO\" is not a part of a rule; write NAME=VALUE",
    ),
    ("FREQ=DAILY;", "\"\" is not a part of a rule"),
    ("BYDAY=MO", "has no FREQ; write FREQ=DAILY"),
    (
        "FREQ=HOURLY",
        "FREQ=HOURLY is not supported; write FREQ=DAILY",
    ),
    ("FREQ=SECONDLY", "FREQ=SECONDLY is not supported"),
    ("FREQ=FORTNIGHTLY", "FREQ=FORTNIGHTLY is not supported"),
    (
        "FREQ=DAILY;BYHOUR=4",
        "BYHOUR is a time of day; write `start` and `end`",
    ),
    ("FREQ=DAILY;FREQ=WEEKLY", "FREQ is given twice"),
    ("FREQ=DAILY;BYEASTER=1", "BYEASTER is not known"),
    ("FREQ=DAILY;TZID=Europe/Berlin", "TZID is not known"),
    (
        "FREQ=DAILY;INTERVAL=0",
        "INTERVAL=0: write a number from 1 to 1000",
    ),
    ("FREQ=DAILY;INTERVAL=65536", "INTERVAL=65536: write"),
    ("FREQ=DAILY;INTERVAL=two", "INTERVAL=TWO: write"),
    (
        "FREQ=DAILY;COUNT=3",
        "COUNT needs a first day to count from; add a line DTSTART",
    ),
    (
        "DTSTART:20260101\nFREQ=DAILY;COUNT=0",
        "COUNT=0: write a number",
    ),
    (
        "DTSTART:20260101\nFREQ=DAILY;COUNT=2;UNTIL=20270101",
        "has both COUNT and UNTIL",
    ),
    (
        "FREQ=DAILY;UNTIL=20261231T235959Z",
        "UNTIL=20261231T235959Z is not a date; write UNTIL=YYYYMMDD",
    ),
    (
        "FREQ=DAILY;UNTIL=2026-12-31",
        "UNTIL=2026-12-31 is not a date",
    ),
    ("FREQ=DAILY;UNTIL=20261301", "UNTIL=20261301 is not a date"),
    (
        "DTSTART:20260101T220000\nFREQ=DAILY",
        "\"DTSTART:20260101T220000\" is not a first day; write",
    ),
    (
        "DTSTART;TZID=Europe/Berlin:20260101\nFREQ=DAILY",
        "\"DTSTART;TZID=EUROPE/BERLIN:20260101\" is no",
    ),
    (
        "DTSTART:19991231\nFREQ=DAILY",
        "\"DTSTART:19991231\" is not a first day",
    ),
    ("DTSTART:20260101", "has no rule"),
    ("FREQ=DAILY\nFREQ=WEEKLY", "has several rules"),
    (
        "DTSTART:20260101\nDTSTART:20260102\nFREQ=DAILY",
        "has several DTSTART lines",
    ),
    ("FREQ=DAILY\nEXDATE:20260101", "has several rules"),
    (
        "FREQ=WEEKLY;BYDAY=2TU",
        "BYDAY has a number; that needs FREQ=MONTHLY",
    ),
    ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO", "BYDAY has a number"),
    ("FREQ=MONTHLY;BYYEARDAY=100", "BYYEARDAY needs FREQ=YEARLY"),
    (
        "FREQ=MONTHLY;BYMONTHDAY=30;BYMONTH=2",
        "FREQ=MONTHLY;BYMONTHDAY=30;BYMONTH=2 never selects a day",
    ),
    ("DTSTART:20260101\nFREQ=DAILY;UNTIL=20251231", ""),
    ("FREQ=MONTHLY;BYDAY=6TU", ""),
    (
        "FREQ=MONTHLY;BYDAY=MO,-0TU",
        "BYDAY=MO,-0TU has a 0; count from 1",
    ),
    ("FREQ=MONTHLY;BYDAY=XX", ""),
    ("FREQ=MONTHLY;BYMONTHDAY=32", ""),
    ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY=0 has a 0"),
    ("FREQ=MONTHLY;BYSETPOS=1", "BYSETPOS needs a set of days"),
    ("FREQ=WEEKLY;BYMONTHDAY=3", ""),
    ("FREQ=YEARLY;BYMONTH=13", ""),
    ("FREQ=MONTHLY;BYWEEKNO=3", ""),
];

#[test]
fn each_part_of_a_rule_is_named_with_what_to_write() {
    for (rrule, message) in PARTS {
        let said = refused_rule(rrule);
        assert!(
            said.starts_with(&format!("rrule: {message}")),
            "{rrule:?}: {said}"
        );
    }
    assert!(refused_rule(&"FREQ=DAILY;".repeat(100)).contains("longer than 512 bytes"));
}
