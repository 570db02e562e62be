//! What the calendar promises.

mod bad;
mod clocks;
mod oracle;
mod rules;
mod unions;
mod weekly;

use std::time::Duration;

use jiff::Timestamp;

use super::*;

const HOUR: Duration = Duration::from_hours(1);

/// A window from words as people say them: `Mon, Wed 22:00-04:00 Europe/Berlin`.
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

fn window(words: &str) -> Window {
    Window::new(&spec(words)).unwrap()
}

/// Of a rule, on the days of UTC.
fn rule(rrule: &str, times: &str) -> Window {
    let spec = WindowSpec {
        days: None,
        rrule: Some(rrule.into()),
        ..spec(&format!("{times} UTC"))
    };
    Window::new(&spec).unwrap()
}

fn without(words: &str, dates: &[&str]) -> Window {
    let excluded_dates = dates.iter().map(ToString::to_string).collect();
    Window::new(&WindowSpec {
        excluded_dates,
        ..spec(words)
    })
    .unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn open(until: &str) -> Opening {
    Opening::Open { until: at(until) }
}

fn short(ends: &str, opens: &str) -> Opening {
    Opening::TooShort {
        ends: at(ends),
        opens: Some(at(opens)),
    }
}

fn shut(opens: &str) -> Opening {
    Opening::Shut {
        opens: Some(at(opens)),
    }
}

/// Each moment and what holds then, with nothing needed.
fn expect(windows: &[Window], cases: &[(&str, Opening)]) {
    for (moment, expected) in cases {
        let got = opening(windows, at(moment), Duration::ZERO);
        assert_eq!(got, *expected, "at {moment}, windows {windows:?}");
    }
}
