//! Tests of maintenance windows.

mod bad;
mod clocks;
mod excluded;
mod oracle;
mod rules;
mod unions;
mod weekly;

use std::time::Duration;

use jiff::Timestamp;

use super::*;

const HOUR: Duration = Duration::from_hours(1);

/// Parses a window such as `Mon, Wed 22:00-04:00 Europe/Berlin`.
fn spec(words: &str) -> WindowSpec {
    let mut words: Vec<&str> = words.split(' ').collect();
    let zone = words.pop().unwrap();
    let (start, end) = words.pop().unwrap().split_once('-').unwrap();
    let days = words.iter().map(|day| day.trim_matches(',').to_owned());
    let days: Vec<String> = days.collect();
    WindowSpec {
        days: (!days.is_empty()).then_some(days),
        start: Some(start.into()),
        end: Some(end.into()),
        time_zone: Some(zone.into()),
        ..WindowSpec::default()
    }
}

fn window(words: &str) -> MaintenanceWindow {
    MaintenanceWindow::new(&spec(words)).unwrap()
}

/// A window with a rule, in UTC.
fn rule(rrule: &str, times: &str) -> MaintenanceWindow {
    let spec = WindowSpec {
        days: None,
        rrule: Some(rrule.into()),
        ..spec(&format!("{times} UTC"))
    };
    MaintenanceWindow::new(&spec).unwrap()
}

fn without(words: &str, dates: &[&str]) -> MaintenanceWindow {
    let excluded_dates = dates.iter().map(ToString::to_string).collect();
    MaintenanceWindow::new(&WindowSpec {
        excluded_dates,
        ..spec(words)
    })
    .unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn open(until: &str) -> WindowOpening {
    WindowOpening::Open { until: at(until) }
}

fn short(ends: &str, opens: &str) -> WindowOpening {
    WindowOpening::TooShort {
        ends: at(ends),
        opens: Some(at(opens)),
    }
}

fn shut(opens: &str) -> WindowOpening {
    WindowOpening::Shut {
        opens: Some(at(opens)),
    }
}

/// Checks the state at each time, with `needs` zero.
fn expect(windows: &[MaintenanceWindow], cases: &[(&str, WindowOpening)]) {
    for (moment, expected) in cases {
        let got = window_opening(windows, at(moment), Duration::ZERO);
        assert_eq!(got, *expected, "at {moment}, windows {windows:?}");
    }
}
