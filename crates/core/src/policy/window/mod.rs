//! Maintenance windows: weekly days or a recurrence rule, a start and an end on the clock of a time
//! zone, and dates that are left out. Source: specification §2.6.
//!
//! - The **day is that of the start**: `Fri 22:00-04:00` covers Saturday until 04:00, and nothing of
//!   Friday's early hours. A date that is left out takes the window away that *starts* on it.
//! - An end that is not after the start lies on the next day; `22:00-22:00` is a whole day on the
//!   clock, and no times at all is the day from midnight to midnight.
//! - **Where the clock jumps ahead**, a start or an end that does not exist is the moment of the
//!   jump. **Where it is set back**, both are the first of the two moments with that time: the
//!   window is rather too short than too long. It never has a negative length; one with none is none.
//! - **Several windows are a union**, and those that touch or overlap are one long one.
//! - The time zones are those that were compiled in (a container has no others), the rules are
//!   evaluated by a library (RFC 5545); see `rule` for what is refused and how its cost is bounded.

mod day;
mod describe;
mod error;
mod rule;
mod span;
mod spec;
#[cfg(test)]
mod tests;
mod union;

pub use describe::describe;
pub use error::BadWindow;
pub(crate) use span::instant;
pub use spec::WindowSpec;
pub(crate) use spec::zone;
pub use union::{Opening, opening};

use std::collections::BTreeSet;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

use day::Days;

/// One window, understood. Made by [`Window::new`].
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    days: Days,
    start: Time,
    end: Time,
    zone: TimeZone,
    excluded: BTreeSet<Date>,
}
