//! A window as people write it, and how it is understood.

use std::collections::BTreeSet;

use jiff::civil::{Date, Time};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Serialize};

use super::day::{Days, Weekdays};
use super::rule::Rule;
use super::{BadWindow, Window};

/// `windows[]` of a `RebootPolicy`, nothing of it understood yet. Source: specification §2.6.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct WindowSpec {
    /// On which days it starts: `Mon` to `Sun`. Without it and without `rrule`: every day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<String>>,
    /// When it starts, `HH:MM`. Without `start` and `end`: the whole day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// When it ends, `HH:MM` (or `24:00`); on the next day if that is not after `start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// On whose clock: a name of the time zone database. Without it: UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// On which days it starts, as a rule of RFC 5545 such as `FREQ=MONTHLY;BYDAY=2TU`, with an
    /// optional first line `DTSTART:YYYYMMDD`. Instead of `days`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rrule: Option<String>,
    /// On which dates it does not start, `YYYY-MM-DD`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excluded_dates: Vec<String>,
}

impl Window {
    /// Understands `spec`.
    pub fn new(spec: &WindowSpec) -> Result<Self, BadWindow> {
        let (start, end) = times(spec.start.as_deref(), spec.end.as_deref())?;
        Ok(Self {
            days: days(spec.days.as_deref(), spec.rrule.as_deref())?,
            start,
            end,
            zone: zone(spec.time_zone.as_deref().unwrap_or("UTC"))?,
            excluded: dates(&spec.excluded_dates)?,
        })
    }
}

fn days(days: Option<&[String]>, rrule: Option<&str>) -> Result<Days, BadWindow> {
    match (days, rrule) {
        (Some(_), Some(_)) => Err(BadWindow::DaysAndRule),
        (Some([]), None) => Err(BadWindow::NoDays),
        (Some(days), None) => Ok(Days::Weekly(Weekdays::parse(days)?)),
        (None, Some(rule)) => Ok(Days::Recurring(Box::new(Rule::parse(rule)?))),
        (None, None) => Ok(Days::Weekly(Weekdays::ALL)),
    }
}

fn times(start: Option<&str>, end: Option<&str>) -> Result<(Time, Time), BadWindow> {
    match (start, end) {
        (None, None) => Ok((Time::midnight(), Time::midnight())),
        (None, Some(_)) => Err(BadWindow::OneTime { missing: "start" }),
        (Some(_), None) => Err(BadWindow::OneTime { missing: "end" }),
        (Some(start), Some("24:00")) => Ok((time("start", start)?, Time::midnight())),
        (Some(start), Some(end)) => Ok((time("start", start)?, time("end", end)?)),
    }
}

fn time(field: &'static str, value: &str) -> Result<Time, BadWindow> {
    let two = |digits: &str| -> Option<i8> {
        let plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse().ok()).flatten()
    };
    value
        .split_once(':')
        .and_then(|(hour, minute)| Time::new(two(hour)?, two(minute)?, 0, 0).ok())
        .ok_or_else(|| BadWindow::Time {
            field,
            value: value.into(),
        })
}

/// From the database that was compiled in: no file and no variable of the host changes what a
/// policy means.
pub(crate) fn zone(value: &str) -> Result<TimeZone, BadWindow> {
    TimeZoneDatabase::bundled()
        .get(value)
        .ok()
        .filter(|zone| !zone.is_unknown())
        .ok_or_else(|| BadWindow::TimeZone {
            value: value.into(),
        })
}

fn dates(values: &[String]) -> Result<BTreeSet<Date>, BadWindow> {
    values.iter().map(|value| date(value)).collect()
}

fn date(value: &str) -> Result<Date, BadWindow> {
    let bad = || BadWindow::Date {
        value: value.into(),
    };
    // jiff reads more than dates here (`20261224`, a time after it); one spelling is enough.
    if value.len() != "YYYY-MM-DD".len() {
        return Err(bad());
    }
    value.parse().map_err(|_| bad())
}
