//! Several windows as one calendar.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Window;

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// How far a run of windows is followed even if less is needed, so that `until` is of use to
/// people. A run that goes on is said to close at some moment between this and a day later.
const FOLLOWED: SignedDuration = SignedDuration::from_hours(8 * 24);

/// How far ahead a next opening is looked for, in days; weekly windows need less. Also the longest
/// that a run is followed: one as long as this is long enough for whatever is needed.
const LOOKAHEAD: usize = 400;

/// Whether the windows are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// One is, for at least as long as is needed.
    Open {
        /// When it closes. Of windows that follow each other without end: a moment at least 8 days
        /// ahead (and as far ahead as is needed) until which they are open.
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

/// Whether one of the windows is open at `at` for at least `needs` more. Without windows: it is not.
///
/// A later opening is looked for 400 days ahead where a window has a rule. Without rules it is
/// looked for three weeks ahead, and two more for each date that is left out; a night that would be
/// long enough only because the clock is set back in it may not be found then.
pub fn opening(windows: &[Window], at: Timestamp, needs: Duration) -> Opening {
    let needs = SignedDuration::try_from(needs).unwrap_or(SignedDuration::MAX);
    let needs = needs.min(days(LOOKAHEAD));
    match closes(windows, at, later(at, needs.max(FOLLOWED))) {
        Some(end) if end >= later(at, needs) => Opening::Open { until: end },
        Some(end) => Opening::TooShort {
            ends: end,
            opens: opens(windows, at, end, needs),
        },
        None => Opening::Shut {
            opens: opens(windows, at, at, needs),
        },
    }
}

/// When the run of windows that is open at `at` closes; followed no further than it takes to reach
/// `enough`.
fn closes(windows: &[Window], at: Timestamp, enough: Timestamp) -> Option<Timestamp> {
    let open_until = |at| windows.iter().filter_map(|w| w.open_until(at)).max();
    let mut end = open_until(at)?;
    while end < enough {
        match open_until(end) {
            Some(further) => end = further,
            None => break,
        }
    }
    Some(end)
}

/// The first moment after `shut`, at which nothing is open, when a run begins that is long enough.
fn opens(
    windows: &[Window],
    now: Timestamp,
    shut: Timestamp,
    needs: SignedDuration,
) -> Option<Timestamp> {
    let horizon = later(now, days(lookahead(windows, now)));
    let mut shut = shut;
    loop {
        let next = windows.iter().filter_map(|w| w.begins_after(shut, horizon));
        let begin = next.min().filter(|begin| *begin <= horizon)?;
        let enough = later(begin, needs);
        let end = closes(windows, begin, enough)?;
        if end >= enough {
            return Some(begin);
        }
        shut = end;
    }
}

/// In days.
fn lookahead(windows: &[Window], now: Timestamp) -> usize {
    let cycle = |w: &Window| w.cycle(w.zone.to_datetime(now).date());
    let sum = windows.iter().map(cycle).fold(0, usize::saturating_add);
    sum.min(LOOKAHEAD)
}

fn days(count: usize) -> SignedDuration {
    DAY * i32::try_from(count.min(LOOKAHEAD)).expect("at most 400")
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
