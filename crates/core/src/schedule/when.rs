//! The appointed times: one, or those of a recurrence.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::policy::window::{self, BadWindow, Window, WindowSpec};

/// When.
#[derive(Debug, Clone, PartialEq)]
pub enum When {
    /// Once.
    At(Timestamp),
    /// Again and again, where a window of a policy would begin.
    Recurring(Box<Window>),
}

/// `spec.recurrence`: days and a time of day, in the words of a policy's windows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recurrence {
    /// On which days: `Mon` to `Sun`. Without it and without `rrule`: every day.
    pub days: Option<Vec<String>>,
    /// At what time of day, `HH:MM`.
    pub start: String,
    /// On which days, as a rule of RFC 5545; instead of `days`.
    pub rrule: Option<String>,
    /// Dates that are left out, `YYYY-MM-DD`.
    pub excluded_dates: Vec<String>,
}

/// Why a time cannot be understood: the field, what is wrong, and what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadWhen {
    /// Neither `at` nor `recurrence`.
    #[error("spec: says no time; write either at or recurrence")]
    Neither,
    /// Both.
    #[error("spec: has both at and recurrence; keep one")]
    Both,
    /// `at` is no time.
    #[error(
        "spec.at: {value:?} is no time; write one like 2026-12-24T03:00:00Z, or 2026-12-24T03:00 on the \
         clock of timeZone"
    )]
    At {
        /// What stands there.
        value: String,
    },
    /// `at` has an offset, and there is a time zone too.
    #[error("spec.timeZone: at has an offset already; keep one of the two")]
    TwoClocks,
    /// `timeZone` is none.
    #[error("spec.{0}")]
    TimeZone(BadWindow),
    /// The recurrence.
    #[error("spec.recurrence.{0}")]
    Recurrence(BadWindow),
}

impl When {
    /// Understands the three fields; also the clock on which they are meant.
    ///
    /// A clock time that is skipped (the clock is set ahead) is the moment of the jump; one that comes
    /// twice is the first of the two, as in a policy's windows.
    pub fn new(
        at: Option<&str>,
        recurrence: Option<&Recurrence>,
        time_zone: Option<&str>,
    ) -> Result<(Self, TimeZone), BadWhen> {
        let zone = window::zone(time_zone.unwrap_or("UTC")).map_err(BadWhen::TimeZone)?;
        let when = match (at, recurrence) {
            (None, None) => return Err(BadWhen::Neither),
            (Some(_), Some(_)) => return Err(BadWhen::Both),
            (Some(at), None) => When::At(moment(at, &zone, time_zone.is_some())?),
            (None, Some(recurrence)) => {
                let window = Window::new(&recurrence.window(time_zone));
                When::Recurring(Box::new(window.map_err(BadWhen::Recurrence)?))
            }
        };
        Ok((when, zone))
    }

    /// Whether it says this moment.
    pub(super) fn has(&self, at: Timestamp) -> bool {
        match self {
            When::At(moment) => *moment == at,
            When::Recurring(window) => {
                let before = at.checked_sub(jiff::SignedDuration::from_secs(1));
                window
                    .begins_between(before.unwrap_or(at), at)
                    .any(|begin| begin == at)
            }
        }
    }
}

impl Recurrence {
    /// Only where it begins is asked for; it lasts until the end of the day.
    fn window(&self, time_zone: Option<&str>) -> WindowSpec {
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

fn moment(text: &str, zone: &TimeZone, zoned: bool) -> Result<Timestamp, BadWhen> {
    let bad = || BadWhen::At { value: text.into() };
    if let Ok(moment) = text.parse::<Timestamp>() {
        return if zoned {
            Err(BadWhen::TwoClocks)
        } else {
            Ok(moment)
        };
    }
    // jiff takes more than this (a date alone, a week date); one spelling is enough.
    if !matches!(text.len(), 16 | 19) {
        return Err(bad());
    }
    let clock: DateTime = text.parse().map_err(|_| bad())?;
    window::instant(zone, clock).ok_or_else(bad)
}
