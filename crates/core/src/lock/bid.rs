//! Decides when to bid for which slot.

use std::time::Duration;

use super::{BidDecision, HolderId, ObservedLease};
use crate::Now;
use crate::backoff::BackoffRange;

/// The delay between the bids of two waiters in `dogwatch.dev/next`: long enough for the first
/// winner's write to reach the others' watches, so that a handover costs one bid and not one per
/// name. Specification §2.2.
pub const CALLED_BID_INTERVAL: Duration = Duration::from_millis(50);
/// How long a waiter that was not named lets the named ones go first.
const UNCALLED_BID_DELAY: Duration = Duration::from_secs(1);
/// The first pause after a winner found the group over budget. Specification §2.2.
const MIN_YIELD_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause after a winner found the group over budget. Specification §2.2.
const MAX_YIELD_PAUSE: Duration = Duration::from_mins(1);

/// Decides when `me` bids for which of the group's slots below `slots` (holding more slots than our
/// own maximum would be over budget by their number alone).
///
/// A Lease that was free when first observed: at once. A Lease that became free: in the order that
/// the last holder named, the first at once and each further one [`CALLED_BID_INTERVAL`] later; a
/// waiter that is not named after a second and up to one more (`jitter`, 0 to 1, from the shell). A
/// Lease that was given back over budget: after a [`BidPause`], for everybody, because the next
/// winner would find the same. Of several Leases the earliest, of those the lowest slot.
pub fn decide_bid(
    leases: &[ObservedLease],
    me: &HolderId,
    slots: u32,
    jitter: f64,
    now: Now,
) -> BidDecision {
    let earliest = leases
        .iter()
        .filter(|lease| lease.holder.is_none() && lease.slot < slots)
        .map(|lease| (bid_time(lease, leases, me, jitter).max(now.mono), lease))
        .min_by_key(|(at, lease)| (*at, lease.slot));
    match earliest {
        None => BidDecision::AllHeld,
        Some((at, lease)) if at <= now.mono => BidDecision::Now {
            lease: lease.clone(),
        },
        Some((at, lease)) => BidDecision::Later {
            at,
            lease: lease.clone(),
        },
    }
}

/// The slot that `me` holds, even one above the group's present number of slots. The lowest, if a
/// lost answer left `me` with two.
pub fn find_held_lease<'a>(
    leases: &'a [ObservedLease],
    me: &HolderId,
) -> Option<&'a ObservedLease> {
    leases
        .iter()
        .filter(|lease| lease.holder.as_ref() == Some(me))
        .min_by_key(|lease| lease.slot)
}

/// How long nobody bids after the `times`-th winner in a row gave the Lease back over budget: 5 s
/// to 10 s after the first, doubling, at most a minute. `jitter` (0 to 1) spreads the waiters over
/// the upper half, so that one of them finds out for all.
fn yield_pause(times: u32, jitter: f64) -> Duration {
    let range = BackoffRange::new(MIN_YIELD_PAUSE, MAX_YIELD_PAUSE / 2);
    let base = range.pause_after(times.saturating_sub(1));
    base + base.mul_f64(clamp_jitter(jitter))
}

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

    /// When the pause ends for `me`. If a holder of the group has released its lock since, the next
    /// count may differ, so the pause ends in the order which that holder named.
    pub fn end(&self, leases: &[ObservedLease], me: &HolderId, jitter: f64) -> Duration {
        let turns = leases.iter().filter_map(|lease| {
            let released = lease.released_at.filter(|at| *at >= self.since)?;
            Some(released + turn_delay(lease, me, jitter))
        });
        turns.min().map_or(self.until, |turn| turn.min(self.until))
    }
}

/// The monotonic moment at which `me` may bid for this free Lease, one of `leases`.
fn bid_time(
    lease: &ObservedLease,
    leases: &[ObservedLease],
    me: &HolderId,
    jitter: f64,
) -> Duration {
    let Some(freed_at) = lease.freed_at else {
        return Duration::ZERO;
    };
    if lease.yield_count > 0 {
        return BidPause::after_yield(lease.yield_count, jitter, freed_at).end(leases, me, jitter);
    }
    freed_at + turn_delay(lease, me, jitter)
}

/// How long after the release of a Lease `me` may bid: its place among those that the last holder
/// named, or after all of them.
fn turn_delay(lease: &ObservedLease, me: &HolderId, jitter: f64) -> Duration {
    match lease.next_waiters.iter().position(|called| called == me) {
        Some(place) => CALLED_BID_INTERVAL * u32::try_from(place).unwrap_or(u32::MAX),
        None => UNCALLED_BID_DELAY + UNCALLED_BID_DELAY.mul_f64(clamp_jitter(jitter)),
    }
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
    use super::super::testkit::{free, held, node};
    use super::*;

    fn at(millis: u64) -> Now {
        Now {
            wall: jiff::Timestamp::UNIX_EPOCH,
            mono: Duration::from_millis(millis),
        }
    }

    fn freed(slot: u32, millis: u64, hint: &[&str]) -> ObservedLease {
        ObservedLease {
            freed_at: Some(Duration::from_millis(millis)),
            next_waiters: hint.iter().map(|name| node(name)).collect(),
            ..free(slot)
        }
    }

    fn millis_of(bid: BidDecision) -> (u32, Option<u64>) {
        match bid {
            BidDecision::Now { lease } => (lease.slot, None),
            BidDecision::Later { at, lease } => {
                (lease.slot, Some(u64::try_from(at.as_millis()).unwrap()))
            }
            BidDecision::AllHeld => panic!("a slot is free"),
        }
    }

    #[test]
    fn a_newcomer_that_finds_the_lease_free_bids_at_once() {
        let bid = decide_bid(&[free(0)], &node("n1"), 1, 0.9, at(7));
        assert_eq!(millis_of(bid), (0, None));
    }

    #[test]
    fn who_was_called_bids_in_the_order_of_the_call_and_others_after_a_second() {
        let lease = [freed(0, 10_000, &["n1", "n2", "n3"])];
        for (me, jitter, expected) in [
            ("n1", 0.9, None),
            ("n2", 0.9, Some(10_050)),
            ("n3", 0.9, Some(10_100)),
            ("n4", 0.0, Some(11_000)),
            ("n4", 0.5, Some(11_500)),
            ("n4", 1.0, Some(12_000)),
        ] {
            let bid = decide_bid(&lease, &node(me), 1, jitter, at(10_000));
            assert_eq!(millis_of(bid), (0, expected), "{me} {jitter}");
        }
    }

    #[test]
    fn a_turn_that_has_come_is_now() {
        let lease = [freed(0, 10_000, &["n1", "n2"])];
        let bid = decide_bid(&lease, &node("n2"), 1, 0.0, at(10_050));
        assert_eq!(millis_of(bid), (0, None));
    }

    #[test]
    fn everybody_stops_when_somebody_else_holds() {
        let bid = decide_bid(&[held(0, "n2", &[])], &node("n1"), 1, 0.0, at(0));
        assert_eq!(bid, BidDecision::AllHeld);
    }

    #[test]
    fn the_earliest_slot_is_asked_for_and_of_equals_the_lowest() {
        let leases = [
            freed(2, 0, &["n1"]),
            freed(0, 0, &["n2", "n1"]),
            freed(1, 0, &["n1"]),
        ];
        assert_eq!(
            millis_of(decide_bid(&leases, &node("n1"), 3, 0.0, at(0))),
            (1, None)
        );
        assert_eq!(
            millis_of(decide_bid(&leases, &node("n2"), 3, 0.0, at(0))),
            (0, None)
        );
        let later = [freed(1, 0, &["n0", "n9", "n1"]), freed(0, 0, &["n0", "n1"])];
        assert_eq!(
            millis_of(decide_bid(&later, &node("n1"), 2, 0.0, at(0))),
            (0, Some(50))
        );
    }

    #[test]
    fn a_slot_beyond_our_own_maximum_is_not_asked_for() {
        let leases = [held(0, "n2", &[]), free(1)];
        assert_eq!(
            decide_bid(&leases, &node("n1"), 1, 0.0, at(0)),
            BidDecision::AllHeld
        );
    }

    #[test]
    fn a_lease_given_back_over_budget_is_left_alone_by_everybody_for_a_while() {
        let lease = [ObservedLease {
            yield_count: 1,
            ..freed(0, 10_000, &["n1"])
        }];
        for (me, jitter, expected) in [("n1", 0.0, 15_000), ("n2", 0.5, 17_500)] {
            let bid = decide_bid(&lease, &node(me), 1, jitter, at(10_000));
            assert_eq!(millis_of(bid), (0, Some(expected)), "{me}");
        }
    }

    #[test]
    fn a_pause_ends_early_when_a_holder_of_the_group_releases_in_the_order_that_it_named() {
        let given_back = ObservedLease {
            yield_count: 3,
            ..freed(1, 10_000, &[])
        };
        let released = |millis: u64| ObservedLease {
            released_at: Some(Duration::from_millis(millis)),
            next_waiters: ["n1", "n2"].map(node).to_vec(),
            ..held(0, "n1", &[])
        };
        for (released, me, expected) in [
            (released(12_000), "n2", 12_050),
            (released(12_000), "n3", 13_500),
            (released(9_999), "n2", 40_000),
            (held(0, "n1", &[]), "n2", 40_000),
        ] {
            let leases = [released, given_back.clone()];
            let bid = decide_bid(&leases, &node(me), 2, 0.5, at(10_500));
            assert_eq!(millis_of(bid), (1, Some(expected)), "{me} {leases:?}");
        }
    }

    #[test]
    fn a_release_never_makes_a_pause_longer() {
        let pause = BidPause::after_yield(1, 0.0, Duration::from_secs(10));
        let late = ObservedLease {
            released_at: Some(Duration::from_secs(14)),
            ..held(0, "n1", &[])
        };
        let end = pause.end(&[late], &node("n2"), 1.0);
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

    #[test]
    fn our_own_slot_is_found_even_above_the_number_of_slots() {
        let leases = [held(0, "n2", &[]), held(5, "n1", &[])];
        assert_eq!(
            find_held_lease(&leases, &node("n1")).map(|lease| lease.slot),
            Some(5)
        );
        assert_eq!(find_held_lease(&leases, &node("n3")), None);
    }
}
