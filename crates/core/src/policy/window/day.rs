//! The days on which a window starts.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use super::rule::Rule;
use super::{BadWindow, Window};

/// Which days.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Days {
    /// The same ones each week.
    Weekly(Weekdays),
    /// Those of a rule.
    Recurring(Box<Rule>),
}

/// Days of the week, Monday first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weekdays([bool; 7]);

/// As `days` spells them, Monday first.
const NAMES: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

impl Weekdays {
    /// Every day.
    pub(super) const ALL: Weekdays = Weekdays([true; 7]);

    pub(super) fn parse(days: &[String]) -> Result<Self, BadWindow> {
        let mut chosen = [false; 7];
        for day in days {
            let index = NAMES.iter().position(|name| name == day);
            let index = index.ok_or_else(|| BadWindow::Day { value: day.clone() })?;
            chosen[index] = true;
        }
        Ok(Self(chosen))
    }

    fn has(self, day: Weekday) -> bool {
        let index = usize::try_from(day.to_monday_zero_offset()).expect("0 to 6");
        self.0[index]
    }

    /// Their names, Monday first.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        let named = NAMES.into_iter().zip(self.0);
        named.filter_map(|(name, chosen)| chosen.then_some(name))
    }
}

impl Window {
    /// The first day from `from` to `last` on which the window starts.
    pub(super) fn next_day(&self, from: Date, last: Date) -> Option<Date> {
        match &self.days {
            Days::Weekly(weekdays) => days(from, last)
                .find(|day| weekdays.has(day.weekday()) && !self.excluded.contains(day)),
            Days::Recurring(rule) => rule
                .between(from, last)
                .find(|day| !self.excluded.contains(day)),
        }
    }

    /// For how many days from `today` on a next opening must be looked for, for all that may come
    /// to be seen: weekly windows repeat, except where a date is left out. A run may reach into
    /// the next week, so two weeks in a row that nothing is left out of are enough, and each date
    /// spoils at most two.
    pub(super) fn cycle(&self, today: Date) -> usize {
        match &self.days {
            Days::Weekly(weekdays) => {
                let left_out = self.excluded.range(today..);
                7 * (3 + 2 * left_out.filter(|day| weekdays.has(day.weekday())).count())
            }
            Days::Recurring(_) => usize::MAX,
        }
    }
}

fn days(from: Date, last: Date) -> impl Iterator<Item = Date> {
    from.series(1.day()).take_while(move |day| *day <= last)
}
