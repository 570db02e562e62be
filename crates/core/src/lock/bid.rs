//! Decides for which slot to bid, and when.

use std::collections::BTreeSet;
use std::time::Duration;

use super::bid_turn::BidTurns;
use super::{BidDecision, HolderId, ObservedLease};
use crate::Now;

/// Up to so many equally early Leases are taken from the lowest slot on, which is easy to follow. Of
/// more, each waiter takes another one: when a window opens, those that bid at the same moment would
/// lose one bid for each of a hundred slots.
const MAX_SLOTS_IN_ORDER: usize = 8;

/// Decides when `me` bids for which of the group's slots below `slots` (holding more slots than our
/// own maximum would be over budget by their number alone).
///
/// A Lease that was free when first observed: at once. A Lease that became free: in the order that
/// the last holder named, the first at once and each further one [`CALLED_BID_INTERVAL`] later; a
/// waiter that is not named after a second and up to one more (`jitter`, 0 to 1, from the shell). A
/// Lease that was given back over budget: after a [`BidPause`], for everybody, because the next
/// winner would find the same. Of several Leases the earliest; of equally early ones the lowest
/// slot, or one by the name of `me` if there are many ([`MAX_SLOTS_IN_ORDER`]).
///
/// No Lease while the holders are as many as the smallest maximum among them and `slots` allows: the
/// winner would count them and give its Lease back. The holders of a group may have an older,
/// smaller maximum than `slots`, which applies until they release.
///
/// [`CALLED_BID_INTERVAL`]: super::CALLED_BID_INTERVAL
/// [`BidPause`]: super::BidPause
pub fn decide_bid(
    leases: &[ObservedLease],
    me: &HolderId,
    slots: u32,
    jitter: f64,
    now: Now,
) -> BidDecision {
    let turns = BidTurns::new(leases, me, jitter);
    let free = leases
        .iter()
        .filter(|lease| lease.holder.is_none() && lease.slot < slots)
        .map(|lease| (turns.bid_time(lease).max(now.mono), lease));
    match choose_lease(free.collect(), me) {
        None => BidDecision::AllHeld,
        Some(_) if let Some(max) = find_reached_max(leases, me, slots) => {
            BidDecision::MaxReached { max }
        }
        Some((at, lease)) if at <= now.mono => BidDecision::Now {
            lease: lease.clone(),
        },
        Some((at, lease)) => BidDecision::Later {
            at,
            lease: lease.clone(),
        },
    }
}

/// The earliest of these Leases, with its time.
fn choose_lease<'a>(
    mut free: Vec<(Duration, &'a ObservedLease)>,
    me: &HolderId,
) -> Option<(Duration, &'a ObservedLease)> {
    let earliest = free.iter().map(|(at, _)| *at).min()?;
    free.retain(|(at, _)| *at == earliest);
    free.sort_by_key(|(_, lease)| lease.slot);
    let place = if free.len() > MAX_SLOTS_IN_ORDER {
        hash_name(me.as_str()) % u64::try_from(free.len()).ok()?
    } else {
        0
    };
    free.get(usize::try_from(place).ok()?).copied()
}

/// FNV-1a.
fn hash_name(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The smallest maximum among `slots` and the other holders, if as many others hold a Lease. A
/// holder whose record cannot be read has a maximum of 1, as in the count of the budget.
fn find_reached_max(leases: &[ObservedLease], me: &HolderId, slots: u32) -> Option<u32> {
    let mut max = slots;
    let mut others = BTreeSet::new();
    for lease in leases {
        let Some(holder) = lease.effective_holder().filter(|holder| holder != me) else {
            continue;
        };
        others.insert(holder);
        max = max.min(lease.record.as_ref().map_or(1, |record| record.max));
    }
    let max = max.max(1);
    (others.len() >= usize::try_from(max).unwrap_or(usize::MAX)).then_some(max)
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

#[cfg(test)]
mod tests {
    use super::super::testkit::{free, held, held_under_max, node};
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
            BidDecision::AllHeld | BidDecision::MaxReached { .. } => panic!("a slot is free"),
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
    fn of_many_equally_early_slots_each_waiter_takes_another_one() {
        let leases: Vec<ObservedLease> = (0..100).map(free).collect();
        let slot_of = |name: &str, slots| {
            let bid = decide_bid(&leases, &node(name), slots, 0.5, at(0));
            millis_of(bid).0
        };
        let names: Vec<String> = (0..100).map(|number| format!("worker-{number}")).collect();
        let taken: BTreeSet<u32> = names.iter().map(|name| slot_of(name, 100)).collect();
        assert!(taken.len() > 50, "{taken:?}");
        let few: BTreeSet<u32> = names.iter().map(|name| slot_of(name, 8)).collect();
        assert_eq!(few, BTreeSet::from([0]));
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
    fn nobody_bids_while_the_holders_are_as_many_as_their_smallest_maximum_allows() {
        let holders = |maxima: [u32; 2]| {
            let [first, second] = maxima;
            let held = [(0, "n1", first), (1, "n2", second)];
            let held = held.map(|(slot, name, max)| held_under_max(slot, name, max));
            held.into_iter().chain([free(2)]).collect::<Vec<_>>()
        };
        for (maxima, max) in [([2, 3], 2), ([3, 1], 1), ([0, 3], 1)] {
            let bid = decide_bid(&holders(maxima), &node("n3"), 3, 0.0, at(0));
            assert_eq!(bid, BidDecision::MaxReached { max }, "{maxima:?}");
        }
        let bid = decide_bid(&holders([3, 3]), &node("n3"), 3, 0.0, at(0));
        assert_eq!(millis_of(bid), (2, None));
        let freed_below = [
            free(0),
            held_under_max(3, "n1", 4),
            held_under_max(2, "n2", 4),
        ];
        let bid = decide_bid(&freed_below, &node("n3"), 2, 0.0, at(0));
        assert_eq!(bid, BidDecision::MaxReached { max: 2 }, "our own maximum");
    }

    #[test]
    fn a_holder_whose_record_cannot_be_read_has_a_maximum_of_one() {
        let unreadable = ObservedLease {
            record: None,
            ..held(0, "n1", &[])
        };
        let bid = decide_bid(&[unreadable, free(1)], &node("n3"), 2, 0.0, at(0));
        assert_eq!(bid, BidDecision::MaxReached { max: 1 });
    }

    #[test]
    fn a_holder_counts_once_and_our_own_node_not_at_all() {
        let twice = [
            held_under_max(0, "n1", 2),
            held_under_max(1, "n1", 2),
            free(2),
        ];
        let bid = decide_bid(&twice, &node("n3"), 3, 0.0, at(0));
        assert_eq!(millis_of(bid), (2, None));
        let through_api = ObservedLease {
            holder: Some(HolderId::for_api_host("n3.example.com")),
            ..held_under_max(0, "n3", 1)
        };
        let bid = decide_bid(&[through_api, free(1)], &node("n3"), 2, 0.0, at(0));
        assert_eq!(millis_of(bid), (1, None));
    }

    #[test]
    fn a_lease_that_was_free_in_vain_is_taken_in_the_order_of_the_latest_release() {
        let released = ObservedLease {
            room_since: Some(Duration::from_secs(20)),
            next_waiters: ["n1", "n2"].map(node).to_vec(),
            ..held_under_max(0, "n0", 3)
        };
        for (long_free, me, expected) in [
            (free(1), "n2", 20_050),
            (free(1), "n3", 21_500),
            (freed(1, 18_000, &["n3"]), "n3", 21_500),
            // Its own turns are not over yet.
            (freed(1, 18_999, &["n3"]), "n3", 18_999),
        ] {
            let leases = [released.clone(), long_free];
            let bid = decide_bid(&leases, &node(me), 3, 0.5, at(15_000));
            assert_eq!(millis_of(bid), (1, Some(expected)), "{me} {leases:?}");
        }
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
            room_since: Some(Duration::from_millis(millis)),
            next_waiters: ["n1", "n2"].map(node).to_vec(),
            ..held_under_max(0, "n1", 2)
        };
        for (released, me, expected) in [
            (released(12_000), "n2", 12_050),
            (released(12_000), "n3", 13_500),
            (released(9_999), "n2", 40_000),
            (held_under_max(0, "n1", 2), "n2", 40_000),
        ] {
            let leases = [released, given_back.clone()];
            let bid = decide_bid(&leases, &node(me), 2, 0.5, at(10_500));
            assert_eq!(millis_of(bid), (1, Some(expected)), "{me} {leases:?}");
        }
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
