//! Maintenance windows: weekly days or a recurrence rule, a start and an end on the clock of a time
//! zone, and dates that are left out. Source: specification §2.6.

use std::time::Duration;

use jiff::Timestamp;

/// One window, understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {}

/// Whether the windows are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// One is, for at least as long as is needed.
    Open {
        /// When it closes.
        until: Timestamp,
    },
    /// One is, but closes too soon.
    TooShort {
        /// When it closes.
        ends: Timestamp,
        /// When the next one opens that is long enough.
        opens: Option<Timestamp>,
    },
    /// None is.
    Shut {
        /// When the next one opens that is long enough.
        opens: Option<Timestamp>,
    },
}

/// Whether one of the windows is open at `at` for at least `needs` more.
pub fn opening(_windows: &[Window], at: Timestamp, _needs: Duration) -> Opening {
    Opening::Open { until: at }
}
