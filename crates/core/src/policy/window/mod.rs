//! Maintenance windows: weekly days or a recurrence rule, a start and an end on the clock of a time
//! zone, and days that are left out. Source: specification §2.6.
//!
//! - The **day is that of the start**: `Fri 22:00-04:00` covers Saturday until 04:00, and nothing
//!   of Friday's early hours. A day that is left out removes the window that *starts* on it.
//! - An end that is not after the start is on the next day; `22:00-22:00` is a whole day on the
//!   clock, and a window without times is the day from midnight to midnight.
//! - **Where the clock jumps ahead**, a start or an end that does not exist is the moment of the
//!   jump. **Where it is set back**, both are the first of the two moments with that time: the
//!   window is rather too short than too long. Its length is never negative; a window of length
//!   zero does not exist.
//! - **Several windows are a union**, and windows that touch or overlap are one long window.
//! - The time zones are those that were compiled in (a container has no others), the rules are
//!   evaluated by a library (RFC 5545); `recurrence_rule` says what is refused and how its cost is
//!   bounded.

mod day;
mod describe;
mod error;
mod excluded_days;
mod recurrence_rule;
mod span;
mod spec;
#[cfg(test)]
mod tests;
mod union;

pub use describe::describe_window;
pub use error::WindowError;
pub(crate) use span::clock_instant;
pub use spec::WindowSpec;
pub(crate) use spec::parse_time_zone;
pub use union::{WindowOpening, list_open_spans, window_opening};

use jiff::civil::Time;
use jiff::tz::TimeZone;

use day::WindowDays;
use excluded_days::ExcludedDays;

/// One valid window, made by [`MaintenanceWindow::new`].
#[derive(Debug, Clone, PartialEq)]
pub struct MaintenanceWindow {
    days: WindowDays,
    start: Time,
    end: Time,
    zone: TimeZone,
    excluded: ExcludedDays,
}
