//! Treats several windows as one calendar.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::MaintenanceWindow;

const DAY_LENGTH: SignedDuration = SignedDuration::from_hours(24);

/// For how long a run of adjoining windows is followed at least, so that `until` is of use to
/// people. A run that goes on is reported to close between this time and a day later.
const MIN_FOLLOWED_RUN: SignedDuration = SignedDuration::from_hours(8 * 24);

/// How many days ahead a next opening is searched for; weekly windows need less. A run is followed
/// no longer than this either, because such a run is long enough for any need.
const MAX_LOOKAHEAD_DAYS: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowOpening {
    /// A window is open for at least as long as needed.
    Open {
        /// When it closes. For windows that follow each other without end: a time until which they
        /// are open, at least 8 days ahead (and as far ahead as needed).
        until: Timestamp,
    },
    /// A window is open, but closes too soon.
    TooShort {
        ends: Timestamp,
        /// When the next window opens that is long enough.
        opens: Option<Timestamp>,
    },
    Shut {
        /// When the next window opens that is long enough.
        opens: Option<Timestamp>,
    },
}

/// Whether one of the windows is open at `at` for at least `needs`. Without windows the answer is
/// `Shut`.
///
/// A later opening is searched for 400 days ahead if a window has a rule. Without rules the search
/// ends after three weeks, and as many more as excluded days may spoil; it may miss a night that is long
/// enough only because the clock is set back in it.
pub fn window_opening(
    windows: &[MaintenanceWindow],
    at: Timestamp,
    needs: Duration,
) -> WindowOpening {
    let needs = SignedDuration::try_from(needs).unwrap_or(SignedDuration::MAX);
    let needs = needs.min(days_duration(MAX_LOOKAHEAD_DAYS));
    match run_closes_at(
        windows,
        at,
        saturating_add_time(at, needs.max(MIN_FOLLOWED_RUN)),
    ) {
        Some(end) if end >= saturating_add_time(at, needs) => WindowOpening::Open { until: end },
        Some(end) => WindowOpening::TooShort {
            ends: end,
            opens: next_long_opening(windows, at, end, needs),
        },
        None => WindowOpening::Shut {
            opens: next_long_opening(windows, at, at, needs),
        },
    }
}

/// The most spans that are listed: windows of a few minutes each would fill a chart.
const MAX_LISTED_SPANS: usize = 200;

/// When windows are open between `from` and `until`, as begin and end, in order. The first begins
/// no earlier than `from`; the last may end after `until`. At most 200.
pub fn list_open_spans(
    windows: &[MaintenanceWindow],
    from: Timestamp,
    until: Timestamp,
) -> Vec<(Timestamp, Timestamp)> {
    let mut spans = Vec::new();
    let mut at = from;
    while at < until && spans.len() < MAX_LISTED_SPANS {
        let is_open = windows.iter().any(|w| w.open_until(at).is_some());
        let next = || windows.iter().filter_map(|w| w.begins_after(at, until));
        let begin = if is_open { Some(at) } else { next().min() };
        let Some(begin) = begin.filter(|begin| *begin < until) else {
            break;
        };
        let Some(end) = run_closes_at(windows, begin, until) else {
            break;
        };
        spans.push((begin, end));
        at = end;
    }
    spans
}

/// When the run of windows that is open at `at` closes; the run is followed no further than
/// `enough`.
fn run_closes_at(
    windows: &[MaintenanceWindow],
    at: Timestamp,
    enough: Timestamp,
) -> Option<Timestamp> {
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

/// When the first run that is long enough begins after `shut`, a time at which no window is open.
fn next_long_opening(
    windows: &[MaintenanceWindow],
    now: Timestamp,
    shut: Timestamp,
    needs: SignedDuration,
) -> Option<Timestamp> {
    let horizon = saturating_add_time(now, days_duration(lookahead_of_windows(windows, now)));
    let mut shut = shut;
    loop {
        let next = windows.iter().filter_map(|w| w.begins_after(shut, horizon));
        let begin = next.min().filter(|begin| *begin <= horizon)?;
        let enough = saturating_add_time(begin, needs);
        let end = run_closes_at(windows, begin, enough)?;
        if end >= enough {
            return Some(begin);
        }
        shut = end;
    }
}

/// In days.
fn lookahead_of_windows(windows: &[MaintenanceWindow], now: Timestamp) -> usize {
    let cycle = |w: &MaintenanceWindow| w.lookahead_days(w.zone.to_datetime(now).date());
    let sum = windows.iter().map(cycle).fold(0, usize::saturating_add);
    sum.min(MAX_LOOKAHEAD_DAYS)
}

fn days_duration(count: usize) -> SignedDuration {
    DAY_LENGTH * i32::try_from(count.min(MAX_LOOKAHEAD_DAYS)).expect("at most 400")
}

fn saturating_add_time(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
