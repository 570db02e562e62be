//! Computes the days of an RFC 5545 rule, as dates without a time zone.
//!
//! The `recurrence` library computes them. For safety a rule must not repeat within a day or
//! contain hours (those are `start` and `end`), no time zone is passed on, so that the library
//! never asks the host for one, and each search of the library ends (its limit is 100,000 steps).
//!
//! `INTERVAL` counts from `DTSTART`, or from Monday, 2024-01-01 without it.

mod rule_text;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan, tz};
use recurrence::RRuleSet;

use super::WindowError;

/// How many days a slice of the calendar reaches back from the first requested day, and ahead. One
/// slice covers everything that one question needs: a run of 400 days that begins 400 days ahead.
const SLICE_BACK_DAYS: i32 = 7;
const SLICE_AHEAD_DAYS: i32 = 900;

pub(super) struct RecurrenceRule {
    /// The rule without `DTSTART`, for people.
    text: String,
    first: Date,
    set: RRuleSet,
    /// The slice of the calendar that was used last: the library can only compute from the first
    /// day on, which takes milliseconds. It follows from the rule, so the comparison of two rules
    /// ignores it.
    piece: Mutex<Arc<CalendarSlice>>,
}

/// All days of the rule between two dates.
struct CalendarSlice {
    from: Date,
    last: Date,
    days: Vec<Date>,
}

impl RecurrenceRule {
    pub(super) fn parse(value: &str) -> Result<Self, WindowError> {
        let (text, first, set) = rule_text::parse_rule(value)?;
        let rule = Self {
            text,
            first,
            set,
            piece: Mutex::default(),
        };
        if rule.all_days().next().is_none() {
            let why = format!("{} never selects a day; change it", rule.text);
            return Err(WindowError::Rule { why });
        }
        Ok(rule)
    }

    pub(super) fn days_between(&self, from: Date, last: Date) -> impl Iterator<Item = Date> {
        let piece = self.slice_containing(from, last);
        let mut next = piece.days.partition_point(|day| *day < from);
        std::iter::from_fn(move || {
            let day = *piece.days.get(next)?;
            next += 1;
            (day <= last).then_some(day)
        })
    }

    fn slice_containing(&self, from: Date, last: Date) -> Arc<CalendarSlice> {
        let mut kept = self.piece.lock().unwrap_or_else(PoisonError::into_inner);
        if from < kept.from || last > kept.last {
            *kept = Arc::new(self.compute_slice(from, last));
        }
        Arc::clone(&kept)
    }

    fn compute_slice(&self, from: Date, last: Date) -> CalendarSlice {
        let from = from.saturating_sub(SLICE_BACK_DAYS.days());
        let last = last.max(from.saturating_add(SLICE_AHEAD_DAYS.days()));
        let after = self.all_days().skip_while(|day| *day < from);
        let days = after.take_while(|day| *day <= last).collect();
        CalendarSlice { from, last, days }
    }

    /// All days of the rule, in order.
    fn all_days(&self) -> impl Iterator<Item = Date> {
        let moments = self.set.into_iter();
        moments.map_while(|moment| {
            let moment = Timestamp::from_second(moment.timestamp()).ok()?;
            Some(tz::Offset::UTC.to_datetime(moment).date())
        })
    }
}

impl Default for CalendarSlice {
    /// A slice without any day: every request lies outside it.
    fn default() -> Self {
        Self {
            from: Date::MAX,
            last: Date::MIN,
            days: Vec::new(),
        }
    }
}

impl Clone for RecurrenceRule {
    fn clone(&self) -> Self {
        let piece = self.piece.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            text: self.text.clone(),
            first: self.first,
            set: self.set.clone(),
            piece: Mutex::new(Arc::clone(&piece)),
        }
    }
}

impl PartialEq for RecurrenceRule {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, self.first) == (&other.text, other.first)
    }
}

impl fmt::Debug for RecurrenceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({} from {})", self.text, self.first)
    }
}

impl fmt::Display for RecurrenceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
