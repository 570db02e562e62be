//! A window in words.

use jiff::civil::Time;

use super::Window;
use super::day::{Days, Weekdays};

/// How many dates are named; of more, how many there are.
const NAMED: usize = 3;

/// A window as people say it: `Mon, Wed 22:00-04:00 Europe/Berlin`.
pub fn describe(window: &Window) -> String {
    let zone = window.zone.iana_name().unwrap_or("UTC");
    let (days, times) = (days(&window.days), times(window.start, window.end));
    format!("{days} {times} {zone}{}", excluded(window))
}

fn days(days: &Days) -> String {
    match days {
        Days::Weekly(Weekdays::ALL) => "every day".into(),
        Days::Weekly(weekdays) => weekdays.names().collect::<Vec<_>>().join(", "),
        Days::Recurring(rule) => rule.to_string(),
    }
}

fn times(start: Time, end: Time) -> String {
    if start == end && start == Time::midnight() {
        return "all day".into();
    }
    format!("{}-{}", start.strftime("%H:%M"), end.strftime("%H:%M"))
}

fn excluded(window: &Window) -> String {
    let dates = &window.excluded;
    if dates.is_empty() {
        return String::new();
    }
    if dates.len() > NAMED {
        return format!(", but for {} dates", dates.len());
    }
    let named: Vec<String> = dates.iter().map(ToString::to_string).collect();
    format!(", but for {}", named.join(", "))
}
