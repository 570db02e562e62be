//! The days on which a window does not start: dates, days of each year, and spans of either.

use std::collections::BTreeSet;
use std::fmt;

use jiff::civil::Date;

use super::WindowError;

/// Between the first and the last day of a span.
const SPAN_SEPARATOR: &str = "..";
/// A year in which every day of a year exists.
const LEAP_YEAR: i16 = 2024;
/// The longest span that does not return each year is followed no further than a year is long.
const YEAR_DAYS: i32 = 366;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ExcludedDays(BTreeSet<ExcludedSpan>);

/// Both days are part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ExcludedSpan {
    /// The last day is not before the first one.
    Once { first: Date, last: Date },
    /// Over the end of the year where the last day is before the first one. February 29 is part of
    /// it in leap years only.
    Yearly { first: YearDay, last: YearDay },
}

/// A day that comes each year; February 29 each leap year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct YearDay {
    month: i8,
    day: i8,
}

impl ExcludedDays {
    pub(super) fn parse_entries(values: &[String]) -> Result<Self, WindowError> {
        let spans = values.iter().map(|value| parse_span(value));
        Ok(Self(spans.collect::<Result<_, _>>()?))
    }

    pub(super) fn contains_day(&self, day: Date) -> bool {
        self.0.iter().any(|span| span.contains_day(day))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For how many weeks from `today` on they may spoil the weekly cycle.
    pub(super) fn spoiled_weeks(&self, today: Date) -> usize {
        let weeks = self.0.iter().map(|span| span.spoiled_weeks(today));
        weeks.fold(0, usize::saturating_add)
    }

    /// Each in words, in order.
    pub(super) fn describe_each(&self) -> impl ExactSizeIterator<Item = String> {
        self.0.iter().map(ToString::to_string)
    }
}

impl ExcludedSpan {
    fn contains_day(&self, day: Date) -> bool {
        match *self {
            Self::Once { first, last } => first <= day && day <= last,
            Self::Yearly { first, last } => {
                let day = YearDay::of_date(day);
                if first <= last {
                    first <= day && day <= last
                } else {
                    first <= day || day <= last
                }
            }
        }
    }

    /// A single day spoils at most two weeks, because a run of windows may reach into the next one.
    fn spoiled_weeks(&self, today: Date) -> usize {
        let days = match *self {
            Self::Once { last, .. } if last < today => return 0,
            Self::Once { first, last } => days_from(first.max(today), last),
            Self::Yearly { first, last } if first <= last => {
                days_from(first.in_year(LEAP_YEAR), last.in_year(LEAP_YEAR))
            }
            Self::Yearly { first, last } => {
                days_from(first.in_year(LEAP_YEAR), last.in_year(LEAP_YEAR + 1))
            }
        };
        2 + usize::try_from(days.min(YEAR_DAYS) / 7).unwrap_or(0)
    }
}

/// Days from one date to a later one.
fn days_from(first: Date, last: Date) -> i32 {
    first.until(last).map_or(YEAR_DAYS, |span| span.get_days())
}

impl YearDay {
    fn of_date(date: Date) -> Self {
        Self {
            month: date.month(),
            day: date.day(),
        }
    }

    /// In a year without February 29, that day is February 28.
    fn in_year(self, year: i16) -> Date {
        let date = Date::new(year, self.month, self.day);
        date.or_else(|_| Date::new(year, self.month, self.day - 1))
            .expect("the day exists in leap years, and only February 29 does not in others")
    }
}

/// `YYYY-MM-DD`, `MM-DD`, or two of one kind with `..` between.
fn parse_span(value: &str) -> Result<ExcludedSpan, WindowError> {
    let bad = || WindowError::Date {
        value: value.into(),
    };
    let (first, last) = value.split_once(SPAN_SEPARATOR).unwrap_or((value, value));
    if let (Some(first), Some(last)) = (parse_year_day(first), parse_year_day(last)) {
        return Ok(ExcludedSpan::Yearly { first, last });
    }
    let first = parse_date(first).ok_or_else(bad)?;
    let last = parse_date(last).ok_or_else(bad)?;
    if last < first {
        return Err(WindowError::DatesReversed {
            value: value.into(),
        });
    }
    Ok(ExcludedSpan::Once { first, last })
}

fn parse_date(text: &str) -> Option<Date> {
    // jiff parses more than dates here (`20261224`, a time after it); one spelling is enough.
    let is_plain = text.len() == "YYYY-MM-DD".len();
    is_plain.then(|| text.parse().ok()).flatten()
}

fn parse_year_day(text: &str) -> Option<YearDay> {
    let is_plain = text.len() == "MM-DD".len();
    let date = is_plain.then(|| parse_date(&format!("{LEAP_YEAR}-{text}")))??;
    Some(YearDay::of_date(date))
}

impl fmt::Display for ExcludedSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once { first, last } if first == last => write!(f, "{first}"),
            Self::Once { first, last } => write!(f, "{first} to {last}"),
            Self::Yearly { first, last } if first == last => write!(f, "{first} of each year"),
            Self::Yearly { first, last } => write!(f, "{first} to {last} of each year"),
        }
    }
}

impl fmt::Display for YearDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}-{:02}", self.month, self.day)
    }
}
