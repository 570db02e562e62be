//! Describes a window in words.

use jiff::civil::Time;

use super::MaintenanceWindow;
use super::day::{Weekdays, WindowDays};

/// How many excluded dates are named; of more dates only the number is given.
const MAX_NAMED_DATES: usize = 3;

/// A description such as `Mon, Wed 22:00-04:00 Europe/Berlin`.
pub fn describe_window(window: &MaintenanceWindow) -> String {
    let zone = window.zone.iana_name().unwrap_or("UTC");
    let (days, times) = (
        describe_days(&window.days),
        describe_times(window.start, window.end),
    );
    format!("{days} {times} {zone}{}", describe_excluded_dates(window))
}

fn describe_days(days: &WindowDays) -> String {
    match days {
        WindowDays::Weekly(Weekdays::ALL) => "every day".into(),
        WindowDays::Weekly(weekdays) => weekdays.day_names().collect::<Vec<_>>().join(", "),
        WindowDays::Recurring(rule) => rule.to_string(),
    }
}

fn describe_times(start: Time, end: Time) -> String {
    if start == end && start == Time::midnight() {
        return "all day".into();
    }
    format!("{}-{}", start.strftime("%H:%M"), end.strftime("%H:%M"))
}

fn describe_excluded_dates(window: &MaintenanceWindow) -> String {
    let dates = &window.excluded;
    if dates.is_empty() {
        return String::new();
    }
    let named = dates.describe_each();
    if named.len() > MAX_NAMED_DATES {
        return format!(", except on {} dates", named.len());
    }
    let named: Vec<String> = named.collect();
    format!(", except on {}", named.join(", "))
}
