//! The days on which a window starts.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use super::recurrence_rule::RecurrenceRule;
use super::{MaintenanceWindow, WindowError};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum WindowDays {
    Weekly(Weekdays),
    /// The days of an RFC 5545 rule.
    Recurring(Box<RecurrenceRule>),
}

/// Days of the week, Monday first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weekdays([bool; 7]);

/// Spelling in `days`, Monday first.
const DAY_NAMES: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

impl Weekdays {
    pub(super) const ALL: Weekdays = Weekdays([true; 7]);

    pub(super) fn parse(days: &[String]) -> Result<Self, WindowError> {
        let mut chosen = [false; 7];
        for day in days {
            let index = DAY_NAMES.iter().position(|name| name == day);
            let index = index.ok_or_else(|| WindowError::Day { value: day.clone() })?;
            chosen[index] = true;
        }
        Ok(Self(chosen))
    }

    fn contains_day(self, day: Weekday) -> bool {
        let index = usize::try_from(day.to_monday_zero_offset()).expect("0 to 6");
        self.0[index]
    }

    pub(super) fn day_names(self) -> impl Iterator<Item = &'static str> {
        let named = DAY_NAMES.into_iter().zip(self.0);
        named.filter_map(|(name, chosen)| chosen.then_some(name))
    }
}

impl MaintenanceWindow {
    /// The first day from `from` to `last` on which the window starts.
    pub(super) fn next_start_day(&self, from: Date, last: Date) -> Option<Date> {
        match &self.days {
            WindowDays::Weekly(weekdays) => days_between(from, last).find(|day| {
                weekdays.contains_day(day.weekday()) && !self.excluded.contains_day(*day)
            }),
            WindowDays::Recurring(rule) => rule
                .days_between(from, last)
                .find(|day| !self.excluded.contains_day(*day)),
        }
    }

    /// For how many days from `today` on the search for the next opening must go to find any
    /// opening that exists: weekly windows repeat, except on excluded days. A run may reach into
    /// the next week, so two consecutive weeks without an excluded day are enough.
    pub(super) fn lookahead_days(&self, today: Date) -> usize {
        match &self.days {
            WindowDays::Weekly(_) => {
                let weeks = self.excluded.spoiled_weeks(today).saturating_add(3);
                weeks.saturating_mul(7)
            }
            WindowDays::Recurring(_) => usize::MAX,
        }
    }
}

fn days_between(from: Date, last: Date) -> impl Iterator<Item = Date> {
    from.series(1.day()).take_while(move |day| *day <= last)
}
