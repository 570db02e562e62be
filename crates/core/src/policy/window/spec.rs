//! A window as people write it, and its parser.

use jiff::civil::Time;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Serialize};

use super::day::{Weekdays, WindowDays};
use super::excluded_days::ExcludedDays;
use super::recurrence_rule::RecurrenceRule;
use super::{MaintenanceWindow, WindowError};

/// `windows[]` of a `RebootPolicy`, not parsed yet. Source: specification §2.6.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct WindowSpec {
    /// The days on which the window starts: `Mon` to `Sun`. Without `days` and `rrule`: every day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<String>>,
    /// When the window starts, `HH:MM`. Without `start` and `end`: the whole day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// When the window ends, `HH:MM` (or `24:00`); on the next day if that is not after `start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// A name of the time zone database. Default: UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The days on which the window starts, as an RFC 5545 rule such as `FREQ=MONTHLY;BYDAY=2TU`,
    /// with an optional first line `DTSTART:YYYYMMDD`. Instead of `days`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rrule: Option<String>,
    /// Days on which the window does not start: `YYYY-MM-DD`, `MM-DD` of each year, or a span of
    /// either with `..` between.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excluded_dates: Vec<String>,
}

impl MaintenanceWindow {
    pub fn new(spec: &WindowSpec) -> Result<Self, WindowError> {
        let (start, end) = parse_times(spec.start.as_deref(), spec.end.as_deref())?;
        Ok(Self {
            days: parse_days(spec.days.as_deref(), spec.rrule.as_deref())?,
            start,
            end,
            zone: parse_time_zone(spec.time_zone.as_deref().unwrap_or("UTC"))?,
            excluded: ExcludedDays::parse_entries(&spec.excluded_dates)?,
        })
    }
}

fn parse_days(days: Option<&[String]>, rrule: Option<&str>) -> Result<WindowDays, WindowError> {
    match (days, rrule) {
        (Some(_), Some(_)) => Err(WindowError::DaysAndRule),
        (Some([]), None) => Err(WindowError::NoDays),
        (Some(days), None) => Ok(WindowDays::Weekly(Weekdays::parse(days)?)),
        (None, Some(rule)) => Ok(WindowDays::Recurring(Box::new(RecurrenceRule::parse(
            rule,
        )?))),
        (None, None) => Ok(WindowDays::Weekly(Weekdays::ALL)),
    }
}

fn parse_times(start: Option<&str>, end: Option<&str>) -> Result<(Time, Time), WindowError> {
    match (start, end) {
        (None, None) => Ok((Time::midnight(), Time::midnight())),
        (None, Some(_)) => Err(WindowError::OneTime { missing: "start" }),
        (Some(_), None) => Err(WindowError::OneTime { missing: "end" }),
        (Some(start), Some("24:00")) => Ok((parse_clock_time("start", start)?, Time::midnight())),
        (Some(start), Some(end)) => Ok((
            parse_clock_time("start", start)?,
            parse_clock_time("end", end)?,
        )),
    }
}

fn parse_clock_time(field: &'static str, value: &str) -> Result<Time, WindowError> {
    let two = |digits: &str| -> Option<i8> {
        let plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse().ok()).flatten()
    };
    value
        .split_once(':')
        .and_then(|(hour, minute)| Time::new(two(hour)?, two(minute)?, 0, 0).ok())
        .ok_or_else(|| WindowError::Time {
            field,
            value: value.into(),
        })
}

/// Looks in the compiled-in database only, so that no file and no variable of the host changes what
/// a policy means.
pub(crate) fn parse_time_zone(value: &str) -> Result<TimeZone, WindowError> {
    TimeZoneDatabase::bundled()
        .get(value)
        .ok()
        .filter(|zone| !zone.is_unknown())
        .ok_or_else(|| WindowError::TimeZone {
            value: value.into(),
        })
}
