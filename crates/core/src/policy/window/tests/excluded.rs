//! Dates, days of each year and spans on which a window does not start.

use std::collections::BTreeSet;

use jiff::ToSpan;
use jiff::civil::{Date, date};
use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;

use super::*;

const ZONES: [&str; 5] = [
    "UTC",
    "Europe/Berlin",
    "America/St_Johns",
    "Pacific/Kiritimati",
    "Pacific/Pago_Pago",
];

/// Whether a window that is open all day is open at noon of that day.
fn is_open_on(window: &MaintenanceWindow, zone: &str, day: Date) -> bool {
    let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
    let noon = day.at(12, 0, 0, 0).to_zoned(zone).unwrap().timestamp();
    let windows = std::slice::from_ref(window);
    matches!(
        window_opening(windows, noon, Duration::ZERO),
        WindowOpening::Open { .. }
    )
}

#[test]
fn a_freeze_over_the_end_of_the_year_comes_back_each_year() {
    let window = without("00:00-24:00 Europe/Berlin", &["12-20..01-06"]);
    for (day, is_open) in [
        (date(2026, 12, 19), true),
        (date(2026, 12, 20), false),
        (date(2026, 12, 31), false),
        (date(2027, 1, 1), false),
        (date(2027, 1, 6), false),
        (date(2027, 1, 7), true),
        (date(2031, 12, 25), false),
    ] {
        assert_eq!(is_open_on(&window, "Europe/Berlin", day), is_open, "{day}");
    }
}

#[test]
fn the_next_opening_is_found_behind_a_freeze() {
    let weekly = without("Sat 22:00-04:00 UTC", &["12-20..01-06", "2027-01-09"]);
    expect(
        &[weekly],
        &[("2026-12-20T12:00:00Z", shut("2027-01-16T22:00:00Z"))],
    );
    let dates = without("Sat 22:00-04:00 UTC", &["2026-12-20..2027-11-01"]);
    expect(
        &[dates],
        &[("2026-12-20T12:00:00Z", shut("2027-11-06T22:00:00Z"))],
    );
    let never = without("Sat 22:00-04:00 UTC", &["01-01..12-31"]);
    expect(
        &[never],
        &[("2026-12-20T12:00:00Z", WindowOpening::Shut { opens: None })],
    );
}

#[test]
fn the_window_of_the_day_before_a_freeze_ends_as_on_any_day() {
    let window = without("22:00-04:00 UTC", &["12-20..01-06"]);
    let cases = [("2026-12-20T01:00:00Z", open("2026-12-20T04:00:00Z"))];
    expect(std::slice::from_ref(&window), &cases);
}

#[test]
fn the_29th_of_february_is_left_out_in_leap_years_only() {
    let window = without("00:00-24:00 UTC", &["02-29"]);
    assert!(!is_open_on(&window, "UTC", date(2028, 2, 29)));
    for day in [date(2028, 2, 28), date(2027, 2, 28), date(2027, 3, 1)] {
        assert!(is_open_on(&window, "UTC", day), "{day}");
    }
}

#[test]
fn what_is_left_out_is_described() {
    let described = |dates: &[&str]| describe_window(&without("22:00-04:00 UTC", dates));
    assert_eq!(
        described(&["12-20..01-06", "2026-05-01..2026-05-03", "10-03"]),
        "every day 22:00-04:00 UTC, except on 2026-05-01 to 2026-05-03, 10-03 of each year, 12-20 to 01-06 of each year"
    );
    assert!(described(&["01-01", "01-02", "01-03", "01-04"]).ends_with("except on 4 dates"));
}

#[test]
fn what_is_no_date_and_no_span_is_refused() {
    for (text, message) in [
        ("2026-12-20..01-06", "is not a date"),
        ("12-20..2027-01-06", "is not a date"),
        ("2027-01-06..2026-12-20", "ends before it starts"),
        ("12-20..", "is not a date"),
        ("..01-06", "is not a date"),
        ("12-20..01-06..02-01", "is not a date"),
        ("12-20...01-06", "is not a date"),
        ("12-20-01-06", "is not a date"),
        ("13-01", "is not a date"),
        ("02-30", "is not a date"),
        ("1-1", "is not a date"),
        ("+1-01", "is not a date"),
        ("12/25", "is not a date"),
        ("", "is not a date"),
    ] {
        let spec = WindowSpec {
            excluded_dates: vec![text.into()],
            ..WindowSpec::default()
        };
        let said = MaintenanceWindow::new(&spec).unwrap_err().to_string();
        assert!(said.starts_with("excludedDates: "), "{said}");
        assert!(said.contains(message), "{text}: {said}");
    }
}

/// The dates of an entry from 2026 to 2029, one by one.
fn dates_of(first: Date, last: Date, is_yearly: bool) -> BTreeSet<Date> {
    if !is_yearly {
        return first
            .series(1.day())
            .take_while(|day| *day <= last)
            .collect();
    }
    let month_day = |day: &Date| (day.month(), day.day());
    let years = date(2026, 1, 1).series(1.day()).take(4 * 366);
    // Walks from a first day to the next last day, and leaves out what lies between.
    let mut is_inside =
        month_day(&date(2026, 1, 1)) <= month_day(&last) && month_day(&last) < month_day(&first);
    let mut found = BTreeSet::new();
    for day in years {
        if month_day(&day) == month_day(&first) {
            is_inside = true;
        }
        if is_inside {
            found.insert(day);
        }
        if month_day(&day) == month_day(&last) {
            is_inside = false;
        }
    }
    found
}

/// Near the ends of years, where spans wrap. February 29 has its own test.
fn a_day() -> impl Strategy<Value = Date> {
    let near = prop_oneof![-40..40_i32, 0..365_i32];
    (2026..2029_i16, near).prop_map(|(year, days)| {
        let day = date(year, 1, 1) + days.days();
        if (day.month(), day.day()) == (2, 29) {
            day.tomorrow().unwrap()
        } else {
            day
        }
    })
}

proptest! {
    #[test]
    fn a_day_is_left_out_exactly_if_an_entry_lists_it(
        entries in prop::collection::vec((a_day(), 0..60_i32, any::<bool>()), 0..4),
        day in a_day(),
        zone in 0..ZONES.len(),
    ) {
        let mut texts = Vec::new();
        let mut listed = BTreeSet::new();
        for (first, length, is_yearly) in entries {
            let mut last = first + length.days();
            if (last.month(), last.day()) == (2, 29) {
                last = last.tomorrow().unwrap();
            }
            let format = if is_yearly { "%m-%d" } else { "%Y-%m-%d" };
            let text = |day: Date| day.strftime(format).to_string();
            texts.push(if length == 0 { text(first) } else { format!("{}..{}", text(first), text(last)) });
            listed.extend(dates_of(first, last, is_yearly));
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let window = without(&format!("00:00-24:00 {}", ZONES[zone]), &texts);
        if day >= date(2026, 1, 1) {
            let is_open = is_open_on(&window, ZONES[zone], day);
            prop_assert_eq!(is_open, !listed.contains(&day), "{} {:?}", day, texts);
        }
    }
}
