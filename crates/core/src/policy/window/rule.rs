//! Days by a rule of RFC 5545, as floating dates.
//!
//! The `recurrence` library does the reckoning. Around it, for safety: no rule may be shorter than
//! a day or speak of hours (those are `start` and `end`), no time zone gets in, so that the library
//! never asks the host for one, and each search of it ends (its limit is 100,000 steps).
//!
//! `INTERVAL` counts from `DTSTART`, and without it from Monday, 2024-01-01.

mod text;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan, tz};
use recurrence::RRuleSet;

use super::BadWindow;

/// How many days a piece of the calendar reaches back from what was asked for first, and ahead. So
/// long that everything one question looks at lies in one piece: a run of 400 days that begins 400
/// days ahead.
const BACK: i32 = 7;
const AHEAD: i32 = 900;

/// A rule, checked.
pub(super) struct Rule {
    /// As people read it, without `DTSTART`.
    text: String,
    first: Date,
    set: RRuleSet,
    /// The piece of the calendar that was last looked at: the library can only reckon from the
    /// first day on, which takes milliseconds. It follows from the rule, so it is not part of what
    /// makes two rules equal.
    piece: Mutex<Arc<Piece>>,
}

/// All days of the rule between two dates.
struct Piece {
    from: Date,
    last: Date,
    days: Vec<Date>,
}

impl Rule {
    pub(super) fn parse(value: &str) -> Result<Self, BadWindow> {
        let (text, first, set) = text::parse(value)?;
        let rule = Self {
            text,
            first,
            set,
            piece: Mutex::default(),
        };
        if rule.days().next().is_none() {
            let why = format!("{} never gives a day; change it", rule.text);
            return Err(BadWindow::Rule { why });
        }
        Ok(rule)
    }

    /// Its days from `from` to `last`.
    pub(super) fn between(&self, from: Date, last: Date) -> impl Iterator<Item = Date> {
        let piece = self.piece(from, last);
        let mut next = piece.days.partition_point(|day| *day < from);
        std::iter::from_fn(move || {
            let day = *piece.days.get(next)?;
            next += 1;
            (day <= last).then_some(day)
        })
    }

    fn piece(&self, from: Date, last: Date) -> Arc<Piece> {
        let mut kept = self.piece.lock().unwrap_or_else(PoisonError::into_inner);
        if from < kept.from || last > kept.last {
            *kept = Arc::new(self.reckon(from, last));
        }
        Arc::clone(&kept)
    }

    fn reckon(&self, from: Date, last: Date) -> Piece {
        let from = from.saturating_sub(BACK.days());
        let last = last.max(from.saturating_add(AHEAD.days()));
        let after = self.days().skip_while(|day| *day < from);
        let days = after.take_while(|day| *day <= last).collect();
        Piece { from, last, days }
    }

    /// All of them, in order.
    fn days(&self) -> impl Iterator<Item = Date> {
        let moments = self.set.into_iter();
        moments.map_while(|moment| {
            let moment = Timestamp::from_second(moment.timestamp()).ok()?;
            Some(tz::Offset::UTC.to_datetime(moment).date())
        })
    }
}

impl Default for Piece {
    /// One that holds nothing: whatever is asked for lies outside of it.
    fn default() -> Self {
        Self {
            from: Date::MAX,
            last: Date::MIN,
            days: Vec::new(),
        }
    }
}

impl Clone for Rule {
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

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, self.first) == (&other.text, other.first)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({} from {})", self.text, self.first)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
