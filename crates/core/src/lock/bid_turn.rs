//! Decides when a waiter may bid for a free Lease: the order after a release, and the pause after a
//! winner that was over budget.

use std::time::Duration;

use super::{HolderId, ObservedLease};
use crate::backoff::BackoffRange;

/// The delay between the bids of two waiters in `dogwatch.dev/next`: long enough for the first
/// winner's write to reach the others' watches, so that a handover costs one bid and not one per
/// name. Specification §2.2.
pub const CALLED_BID_INTERVAL: Duration = Duration::from_millis(50);
/// How long a waiter that was not named lets the named ones go first.
const UNCALLED_BID_DELAY: Duration = Duration::from_secs(1);
/// When all waiters may bid after a release.
const LAST_TURN: Duration = UNCALLED_BID_DELAY.saturating_mul(2);
/// The first pause after a winner found the group over budget. Specification §2.2.
const MIN_YIELD_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause after a winner found the group over budget. Specification §2.2.
const MAX_YIELD_PAUSE: Duration = Duration::from_mins(1);

/// The time in which nobody bids for a Lease, or a bidder for none, after a winner gave a Lease back
/// over budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BidPause {
    /// When the Lease was given back, in monotonic time.
    pub since: Duration,
    /// The latest end, in monotonic time.
    pub until: Duration,
}

impl BidPause {
    /// The pause that begins now, after the `times`-th winner in a row gave the Lease back.
    pub fn after_yield(times: u32, jitter: f64, now: Duration) -> Self {
        Self {
            since: now,
            until: now + yield_pause(times, jitter),
        }
    }

    /// When the pause ends for `me`. If a holder of the group has made room since, the next count may
    /// differ, so the pause ends in the order which that Lease names.
    pub fn end_for_waiter(&self, leases: &[ObservedLease], me: &HolderId, jitter: f64) -> Duration {
        let turns = leases.iter().filter_map(|lease| {
            let room_since = lease.room_since.filter(|at| *at >= self.since)?;
            Some(room_since + turn_delay(lease, me, jitter))
        });
        turns.min().map_or(self.until, |turn| turn.min(self.until))
    }
}

/// When one waiter may bid for each of a group's free Leases.
pub(super) struct BidTurns<'a> {
    leases: &'a [ObservedLease],
    me: &'a HolderId,
    jitter: f64,
    /// The Lease whose holder made room last, and when.
    latest_room: Option<(Duration, &'a ObservedLease)>,
}

impl<'a> BidTurns<'a> {
    pub(super) fn new(leases: &'a [ObservedLease], me: &'a HolderId, jitter: f64) -> Self {
        let latest = leases.iter().max_by_key(|lease| lease.room_since);
        Self {
            leases,
            me,
            jitter,
            latest_room: latest.and_then(|lease| Some((lease.room_since?, lease))),
        }
    }

    /// The monotonic moment at which the waiter may bid for this free Lease of the group.
    pub(super) fn bid_time(&self, lease: &ObservedLease) -> Duration {
        if let (Some(freed_at), 1..) = (lease.freed_at, lease.yield_count) {
            let pause = BidPause::after_yield(lease.yield_count, self.jitter, freed_at);
            return pause.end_for_waiter(self.leases, self.me, self.jitter);
        }
        // Whether even the last turn after its own release was over: nobody took it then, because
        // the holders' maxima did not allow it. A holder that makes room changes that for all
        // waiters at the same moment, so they follow the order that its Lease names.
        let last_turn = lease.freed_at.map(|freed_at| freed_at + LAST_TURN);
        match (self.latest_room, lease.freed_at) {
            (Some((at, other)), _) if last_turn.is_none_or(|last_turn| last_turn <= at) => {
                at + turn_delay(other, self.me, self.jitter)
            }
            (_, Some(freed_at)) => freed_at + turn_delay(lease, self.me, self.jitter),
            (_, None) => Duration::ZERO,
        }
    }
}

/// How long after the release of a Lease `me` may bid: its place among those that the last holder
/// named, or after all of them.
fn turn_delay(lease: &ObservedLease, me: &HolderId, jitter: f64) -> Duration {
    match lease.next_waiters.iter().position(|called| called == me) {
        Some(place) => CALLED_BID_INTERVAL * u32::try_from(place).unwrap_or(u32::MAX),
        None => UNCALLED_BID_DELAY + UNCALLED_BID_DELAY.mul_f64(clamp_jitter(jitter)),
    }
}

/// How long nobody bids after the `times`-th winner in a row gave the Lease back over budget: 5 s
/// to 10 s after the first, doubling, at most a minute. `jitter` (0 to 1) spreads the waiters over
/// the upper half, so that one of them finds out for all.
fn yield_pause(times: u32, jitter: f64) -> Duration {
    let range = BackoffRange::new(MIN_YIELD_PAUSE, MAX_YIELD_PAUSE / 2);
    let base = range.pause_after(times.saturating_sub(1));
    base + base.mul_f64(clamp_jitter(jitter))
}

fn clamp_jitter(jitter: f64) -> f64 {
    // NaN becomes a number as well: `mul_f64` would panic on it.
    if jitter.is_nan() {
        0.5
    } else {
        jitter.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{held, node};
    use super::*;

    #[test]
    fn a_release_never_makes_a_pause_longer() {
        let pause = BidPause::after_yield(1, 0.0, Duration::from_secs(10));
        let late = ObservedLease {
            room_since: Some(Duration::from_secs(14)),
            ..held(0, "n1", &[])
        };
        let end = pause.end_for_waiter(&[late], &node("n2"), 1.0);
        assert_eq!(end, Duration::from_secs(15));
    }

    #[test]
    fn the_pause_doubles_from_five_seconds_and_never_passes_a_minute() {
        let seconds = |times, jitter| yield_pause(times, jitter).as_secs();
        assert_eq!(
            [1, 2, 3, 4, 5, u32::MAX].map(|times| seconds(times, 0.0)),
            [5, 10, 20, 30, 30, 30]
        );
        assert_eq!(
            [1, 2, 3, 4, 5, u32::MAX].map(|times| seconds(times, 1.0)),
            [10, 20, 40, 60, 60, 60]
        );
        assert_eq!(yield_pause(1, f64::NAN), Duration::from_millis(7_500));
    }
}
