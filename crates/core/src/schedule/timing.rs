//! The times of a schedule: a single one, or a recurrence.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::policy::window::{self, MaintenanceWindow, WindowError, WindowSpec};

#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleTiming {
    At(Timestamp),
    /// At each time at which such a window of a policy would begin.
    Recurring(Box<MaintenanceWindow>),
}

/// `spec.recurrence`: days and a time of day, written like a policy's windows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScheduleRecurrence {
    /// `Mon` to `Sun`. Without `days` and `rrule`: every day.
    pub days: Option<Vec<String>>,
    /// Time of day, `HH:MM`.
    pub start: String,
    /// The days as a rule of RFC 5545, instead of `days`.
    pub rrule: Option<String>,
    /// Dates to leave out, `YYYY-MM-DD`.
    pub excluded_dates: Vec<String>,
}

/// Why a time cannot be parsed: the field, what is wrong, and what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// Neither `at` nor `recurrence` is set.
    #[error("spec: has no time; write either at or recurrence")]
    Neither,
    /// Both `at` and `recurrence` are set.
    #[error("spec: has both at and recurrence; keep one")]
    Both,
    #[error(
        "spec.at: {value:?} is not a time; write one like 2026-12-24T03:00:00Z, or \
         2026-12-24T03:00 in the time zone timeZone"
    )]
    At { value: String },
    /// `at` has an offset, and `timeZone` is set too.
    #[error("spec.timeZone: at has an offset already; keep one of the two")]
    TwoClocks,
    #[error("spec.{0}")]
    TimeZone(WindowError),
    #[error("spec.recurrence.{0}")]
    Recurrence(WindowError),
}

impl ScheduleTiming {
    /// Parses the three fields; also returns the time zone in which they are meant.
    ///
    /// A local time that is skipped (the clock is set ahead) is the moment of the jump; one that
    /// occurs twice is the first of the two, as in a policy's windows.
    pub fn new(
        at: Option<&str>,
        recurrence: Option<&ScheduleRecurrence>,
        time_zone: Option<&str>,
    ) -> Result<(Self, TimeZone), TimingError> {
        let zone =
            window::parse_time_zone(time_zone.unwrap_or("UTC")).map_err(TimingError::TimeZone)?;
        let when = match (at, recurrence) {
            (None, None) => return Err(TimingError::Neither),
            (Some(_), Some(_)) => return Err(TimingError::Both),
            (Some(at), None) => ScheduleTiming::At(parse_moment(at, &zone, time_zone.is_some())?),
            (None, Some(recurrence)) => {
                let window = MaintenanceWindow::new(&recurrence.window_spec(time_zone));
                ScheduleTiming::Recurring(Box::new(window.map_err(TimingError::Recurrence)?))
            }
        };
        Ok((when, zone))
    }

    pub(super) fn includes_time(&self, at: Timestamp) -> bool {
        match self {
            ScheduleTiming::At(moment) => *moment == at,
            ScheduleTiming::Recurring(window) => {
                let before = at.checked_sub(jiff::SignedDuration::from_secs(1));
                window
                    .begins_between(before.unwrap_or(at), at)
                    .any(|begin| begin == at)
            }
        }
    }
}

impl ScheduleRecurrence {
    /// Only the beginning of the window matters here; it lasts until the end of the day.
    fn window_spec(&self, time_zone: Option<&str>) -> WindowSpec {
        WindowSpec {
            days: self.days.clone(),
            start: Some(self.start.clone()),
            end: Some("24:00".into()),
            time_zone: time_zone.map(str::to_owned),
            rrule: self.rrule.clone(),
            excluded_dates: self.excluded_dates.clone(),
        }
    }
}

fn parse_moment(text: &str, zone: &TimeZone, zoned: bool) -> Result<Timestamp, TimingError> {
    let bad = || TimingError::At { value: text.into() };
    if let Ok(moment) = text.parse::<Timestamp>() {
        return if zoned {
            Err(TimingError::TwoClocks)
        } else {
            Ok(moment)
        };
    }
    // jiff accepts more formats (a date alone, a week date); one is enough here.
    if !matches!(text.len(), 16 | 19) {
        return Err(bad());
    }
    let clock: DateTime = text.parse().map_err(|_| bad())?;
    window::clock_instant(zone, clock).ok_or_else(bad)
}
