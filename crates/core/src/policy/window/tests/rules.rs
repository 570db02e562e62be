//! Windows with a recurrence rule.

use jiff::civil::{Date, Weekday, date};
use proptest::prelude::*;

use super::super::recurrence_rule::RecurrenceRule;
use super::*;

fn days(rrule: &str, count: usize) -> Vec<String> {
    let rule = RecurrenceRule::parse(rrule).unwrap();
    let found = rule.days_between(date(2026, 1, 1), date(2040, 1, 1));
    found.take(count).map(|day| day.to_string()).collect()
}

#[test]
fn a_rule_gives_the_days_that_rfc_5545_says() {
    let cases: [(&str, &[&str]); 13] = [
        (
            "FREQ=MONTHLY;BYDAY=2TU",
            &["2026-01-13", "2026-02-10", "2026-03-10"],
        ),
        (
            "FREQ=MONTHLY;BYDAY=-1FR",
            &["2026-01-30", "2026-02-27", "2026-03-27"],
        ),
        (
            "FREQ=MONTHLY;BYMONTHDAY=31",
            &["2026-01-31", "2026-03-31", "2026-05-31"],
        ),
        (
            "FREQ=MONTHLY;BYMONTHDAY=-1",
            &["2026-01-31", "2026-02-28", "2026-03-31"],
        ),
        (
            "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            &["2026-01-30", "2026-02-27"],
        ),
        ("FREQ=MONTHLY", &["2026-01-01", "2026-02-01"]),
        ("FREQ=WEEKLY", &["2026-01-05", "2026-01-12"]),
        (
            "DTSTART:20260107\nFREQ=WEEKLY;INTERVAL=2",
            &["2026-01-07", "2026-01-21"],
        ),
        (
            "DTSTART;VALUE=DATE:20260107\nRRULE:FREQ=DAILY;COUNT=2",
            &["2026-01-07", "2026-01-08"],
        ),
        ("FREQ=DAILY;UNTIL=20260102", &["2026-01-01", "2026-01-02"]),
        (
            "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
            &["2028-02-29", "2032-02-29"],
        ),
        (
            "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
            &["2026-05-11", "2027-05-17"],
        ),
        ("FREQ=YEARLY;INTERVAL=4", &["2028-01-01", "2032-01-01"]),
    ];
    for (rrule, expected) in cases {
        assert_eq!(days(rrule, expected.len()), expected, "{rrule}");
    }
    assert_eq!(days("FREQ=DAILY;UNTIL=20260102", 9).len(), 2);
}

#[test]
fn the_second_tuesday_opens_its_night_and_no_other() {
    let patch_night = [rule("FREQ=MONTHLY;BYDAY=2TU", "22:00-04:00")];
    expect(
        &patch_night,
        &[
            ("2026-01-06T23:00:00Z", shut("2026-01-13T22:00:00Z")),
            ("2026-01-13T22:00:00Z", open("2026-01-14T04:00:00Z")),
            ("2026-01-14T03:00:00Z", open("2026-01-14T04:00:00Z")),
            ("2026-01-14T04:00:00Z", shut("2026-02-10T22:00:00Z")),
        ],
    );
}

#[test]
fn the_days_of_a_rule_are_those_of_the_time_zone() {
    let spec = WindowSpec {
        days: None,
        rrule: Some("FREQ=MONTHLY;BYDAY=2TU".into()),
        ..spec("00:30-04:00 Pacific/Auckland")
    };
    let found = window_opening(
        &[MaintenanceWindow::new(&spec).unwrap()],
        at("2026-01-12T00:00:00Z"),
        HOUR,
    );
    // Tuesday there, still Monday in UTC.
    assert_eq!(found, shut("2026-01-12T11:30:00Z"));
}

#[test]
fn a_date_that_is_left_out_takes_a_day_of_a_rule_away() {
    let spec = WindowSpec {
        days: None,
        rrule: Some("FREQ=MONTHLY;BYDAY=2TU".into()),
        excluded_dates: vec!["2026-01-13".into()],
        ..spec("22:00-04:00 UTC")
    };
    let windows = [MaintenanceWindow::new(&spec).unwrap()];
    expect(
        &windows,
        &[("2026-01-13T23:00:00Z", shut("2026-02-10T22:00:00Z"))],
    );
}

#[test]
fn a_rule_is_looked_ahead_400_days_and_no_further() {
    let leap = [rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "22:00-04:00")];
    expect(
        &leap,
        &[
            ("2027-01-20T00:00:00Z", WindowOpening::Shut { opens: None }),
            ("2027-02-01T00:00:00Z", shut("2028-02-29T22:00:00Z")),
        ],
    );
    let over = [rule("FREQ=DAILY;UNTIL=20260102", "22:00-04:00")];
    expect(
        &over,
        &[("2026-01-03T05:00:00Z", WindowOpening::Shut { opens: None })],
    );
}

#[test]
fn what_was_asked_before_changes_no_answer() {
    let rule = RecurrenceRule::parse("FREQ=WEEKLY;INTERVAL=3;BYDAY=WE").unwrap();
    let spans = [
        (2031, 2032),
        (2026, 2027),
        (2024, 2040),
        (2020, 2023),
        (2026, 2027),
    ];
    for (from, last) in spans {
        let (from, last) = (date(from, 5, 5), date(last, 6, 6));
        let fresh = RecurrenceRule::parse("FREQ=WEEKLY;INTERVAL=3;BYDAY=WE").unwrap();
        let fresh: Vec<Date> = fresh.days_between(from, last).collect();
        assert_eq!(rule.days_between(from, last).collect::<Vec<_>>(), fresh);
        assert_eq!(rule.clone(), rule);
    }
}

fn weekday(name: &str) -> Weekday {
    match name {
        "MO" => Weekday::Monday,
        "WE" => Weekday::Wednesday,
        "SU" => Weekday::Sunday,
        other => panic!("{other}"),
    }
}

proptest! {
    #[test]
    fn the_nth_weekday_of_each_month_is_what_the_calendar_shows(
        nth in prop_oneof![1..=5_i8, -4..=-1_i8],
        name in prop_oneof![Just("MO"), Just("WE"), Just("SU")],
        year in 2024..2045_i16,
    ) {
        let rule = RecurrenceRule::parse(&format!("FREQ=MONTHLY;BYDAY={nth}{name}")).unwrap();
        let found: Vec<Date> = rule.days_between(date(year, 1, 1), date(year, 12, 31)).collect();
        let shown: Vec<Date> = (1..=12)
            .filter_map(|month| date(year, month, 1).nth_weekday_of_month(nth, weekday(name)).ok())
            .collect();
        prop_assert_eq!(found, shown);
    }

    #[test]
    fn no_text_makes_a_rule_panic_and_what_is_taken_gives_days_in_order(
        parts in prop::collection::vec((
            prop_oneof![
                Just("INTERVAL"), Just("COUNT"), Just("UNTIL"), Just("BYDAY"), Just("BYMONTHDAY"),
                Just("BYYEARDAY"), Just("BYWEEKNO"), Just("BYMONTH"), Just("BYSETPOS"), Just("WKST"),
            ],
            prop_oneof![
                "[0-9]{1,3}", "-?[0-9]{1,2}(,-?[0-9]{1,2}){0,3}", "[-+]?[1-5]?(MO|TU|SU)(,(WE|FR))?",
                "20[0-9]{6}", ".{0,8}",
            ],
        ), 0..5),
        freq in prop_oneof![Just("DAILY"), Just("WEEKLY"), Just("MONTHLY"), Just("YEARLY")],
    ) {
        let parts: Vec<String> = parts.iter().map(|(key, value)| format!(";{key}={value}")).collect();
        let text = format!("DTSTART:20250315\nFREQ={freq}{}", parts.concat());
        if let Ok(rule) = RecurrenceRule::parse(&text) {
            let days: Vec<Date> = rule.days_between(date(2026, 1, 1), date(2028, 1, 1)).collect();
            prop_assert!(days.is_sorted_by(|a, b| a < b), "{text}: {days:?}");
        }
    }
}
