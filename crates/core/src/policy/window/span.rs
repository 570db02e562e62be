//! Converts days and clock times to instants.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::MaintenanceWindow;

/// One stretch of time in which a window is open: from `begin` until just before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WindowSpan {
    pub(super) begin: Timestamp,
    pub(super) end: Timestamp,
}

impl MaintenanceWindow {
    /// When the window closes if it is open at `at`.
    pub(super) fn open_until(&self, at: Timestamp) -> Option<Timestamp> {
        let today = self.zone.to_datetime(at).date();
        // Tomorrow's span may already have begun where the clock is set back over midnight (as it
        // once was in St. John's).
        let (from, last) = (today.yesterday().ok()?, today.tomorrow().ok()?);
        // Spans of one window may touch, but never overlap.
        self.spans_between(from, last)
            .find(|span| span.begin <= at && at < span.end)
            .map(|span| span.end)
    }

    /// When the window next opens after `at`, searching until the day of `horizon`.
    pub(super) fn begins_after(&self, at: Timestamp, horizon: Timestamp) -> Option<Timestamp> {
        let today = self.zone.to_datetime(at).date();
        let last = self.zone.to_datetime(horizon).date();
        self.spans_between(today, last)
            .map(|span| span.begin)
            .find(|begin| *begin > at)
    }

    /// The instants at which the window opens, after `after` and until `last`, in order.
    pub(crate) fn begins_between(
        &self,
        after: Timestamp,
        last: Timestamp,
    ) -> impl Iterator<Item = Timestamp> {
        let day = |at| self.zone.to_datetime(at).date();
        // Where the clock jumps over midnight, the span of the day before begins on this day.
        let from = day(after).yesterday().unwrap_or(Date::MIN);
        self.spans_between(from, day(last))
            .map(|span| span.begin)
            .skip_while(move |begin| *begin <= after)
            .take_while(move |begin| *begin <= last)
    }

    /// The spans whose days are `from` to `last`, in order.
    fn spans_between(&self, from: Date, last: Date) -> impl Iterator<Item = WindowSpan> {
        let mut next = Some(from);
        std::iter::from_fn(move || {
            let day = self.next_start_day(next?, last)?;
            next = day.tomorrow().ok();
            Some(day)
        })
        .filter_map(|day| self.span_on_day(day))
    }

    /// The span whose day is `day`; `None` if nothing of it exists on that zone's clock.
    fn span_on_day(&self, day: Date) -> Option<WindowSpan> {
        let last = if self.end > self.start {
            day
        } else {
            day.tomorrow().ok()?
        };
        let begin = clock_instant(&self.zone, day.to_datetime(self.start))?;
        let end = clock_instant(&self.zone, last.to_datetime(self.end))?;
        (begin < end).then_some(WindowSpan { begin, end })
    }
}

/// When that clock first shows `clock`, or jumps over it. The later of two clock times never gives
/// the earlier instant, so that no window has a negative length.
pub(crate) fn clock_instant(zone: &TimeZone, clock: DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(clock).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(clock).ok()
        }
        AmbiguousOffset::Gap { after, .. } => {
            // With the later offset, a skipped time lies before the jump.
            let early = after.to_timestamp(clock).ok()?;
            let mut jumps = zone.following(early).take(3);
            Some(jumps.find(|jump| jump.offset() == after)?.timestamp())
        }
    }
}
