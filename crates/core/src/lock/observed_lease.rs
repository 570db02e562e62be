//! Merges repeated observations of one Lease.

use super::ObservedLease;
use crate::Now;
use crate::resource_version::is_older_version;

/// Merges a new observation (`again`) of a Lease into what is known, whether it comes from a watch,
/// a list or the answer to a write, and in whatever order they arrive.
///
/// An older version never replaces a newer one. The time at which this process saw the Lease become
/// free is kept until it is held again. A free Lease whose `next_waiters` or `yield_count` has
/// changed was held in between. A Lease that has another holder was released in between.
pub fn merge_observed_lease(
    known: Option<&ObservedLease>,
    again: ObservedLease,
    now: Now,
) -> ObservedLease {
    let Some(known) = known.filter(|known| known.uid == again.uid) else {
        return again;
    };
    if is_older_version(&again.resource_version, &known.resource_version) {
        return known.clone();
    }
    let left_since = known.holder.is_some()
        || known.next_waiters != again.next_waiters
        || known.yield_count != again.yield_count;
    let freed_at = match (&again.holder, left_since) {
        (Some(_), _) => None,
        (None, true) => again.freed_at.or(Some(now.mono)),
        (None, false) => known.freed_at,
    };
    let was_released = again.yield_count == 0
        && match &again.holder {
            Some(_) => known.holder.is_some() && known.holder != again.holder,
            None => left_since,
        };
    let room_since = if was_released || is_maximum_raised(known, &again) {
        freed_at.or(Some(now.mono))
    } else {
        known.room_since
    };
    ObservedLease {
        freed_at,
        room_since,
        ..again
    }
}

/// Whether the same holder has a higher maximum than before: its new run knows a newer policy.
fn is_maximum_raised(known: &ObservedLease, again: &ObservedLease) -> bool {
    let max = |lease: &ObservedLease| lease.record.as_ref().map_or(1, |record| record.max);
    again.holder.is_some() && known.holder == again.holder && max(known) < max(again)
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{free, held, held_under_max, node};
    use super::*;
    use std::time::Duration;

    fn at(second: u64) -> Now {
        Now {
            wall: jiff::Timestamp::UNIX_EPOCH,
            mono: Duration::from_secs(second),
        }
    }

    fn version(version: &str, lease: ObservedLease) -> ObservedLease {
        ObservedLease {
            resource_version: version.into(),
            ..lease
        }
    }

    fn called(version_: &str, next: &str) -> ObservedLease {
        ObservedLease {
            next_waiters: vec![node(next)],
            ..version(version_, free(0))
        }
    }

    #[test]
    fn a_lease_found_free_is_free_since_first_seen() {
        let first = merge_observed_lease(None, free(0), at(3));
        assert_eq!(first.freed_at, None);
        assert_eq!(
            merge_observed_lease(Some(&first), version("2", free(0)), at(4)).freed_at,
            None
        );
    }

    #[test]
    fn becoming_free_is_remembered_until_it_is_held_again() {
        let first = version("9", held(0, "a", &[]));
        let freed = merge_observed_lease(Some(&first), called("10", "b"), at(5));
        assert_eq!(freed.freed_at, Some(Duration::from_secs(5)));
        let listed = merge_observed_lease(Some(&freed), called("10", "b"), at(9));
        assert_eq!(listed.freed_at, Some(Duration::from_secs(5)));
        let taken = merge_observed_lease(Some(&listed), version("11", held(0, "b", &[])), at(10));
        assert_eq!(taken.freed_at, None);
    }

    #[test]
    fn a_hold_that_was_never_seen_still_makes_it_newly_free() {
        let first = called("1", "a");
        let again = merge_observed_lease(Some(&first), called("9", "c"), at(7));
        assert_eq!(again.freed_at, Some(Duration::from_secs(7)));
        let back = ObservedLease {
            yield_count: 1,
            ..version("12", called("9", "c"))
        };
        assert_eq!(
            merge_observed_lease(Some(&again), back, at(8)).freed_at,
            Some(Duration::from_secs(8))
        );
    }

    #[test]
    fn a_release_is_remembered_while_the_lease_is_held_again_and_a_yield_is_none() {
        let first = version("9", held(0, "a", &[]));
        let freed = merge_observed_lease(Some(&first), called("10", "b"), at(5));
        let taken = merge_observed_lease(Some(&freed), version("11", held(0, "b", &[])), at(6));
        assert_eq!(taken.room_since, Some(Duration::from_secs(5)));
        let yielded = ObservedLease {
            yield_count: 1,
            ..version("12", free(0))
        };
        let yielded = merge_observed_lease(Some(&taken), yielded, at(7));
        assert_eq!(yielded.freed_at, Some(Duration::from_secs(7)));
        assert_eq!(yielded.room_since, Some(Duration::from_secs(5)));
    }

    #[test]
    fn another_holder_shows_a_release_that_was_never_seen() {
        let first = version("9", held(0, "a", &[]));
        let again = merge_observed_lease(Some(&first), version("12", held(0, "b", &[])), at(8));
        assert_eq!(again.room_since, Some(Duration::from_secs(8)));
        let same = merge_observed_lease(Some(&first), version("12", held(0, "a", &[])), at(8));
        assert_eq!(same.room_since, None);
    }

    #[test]
    fn a_holder_that_raises_its_maximum_makes_room_and_one_that_lowers_it_does_not() {
        let under_max = |version_: &str, max| version(version_, held_under_max(0, "a", max));
        let raised = merge_observed_lease(Some(&under_max("9", 1)), under_max("10", 2), at(5));
        assert_eq!(raised.room_since, Some(Duration::from_secs(5)));
        let lowered = merge_observed_lease(Some(&raised), under_max("11", 1), at(8));
        assert_eq!(lowered.room_since, Some(Duration::from_secs(5)));
    }

    #[test]
    fn a_late_message_never_undoes_what_an_answer_has_shown() {
        let won = version("10", held(0, "me", &[]));
        assert_eq!(
            merge_observed_lease(Some(&won), version("9", free(0)), at(1)),
            won
        );
        let later = version("11", free(0));
        assert_eq!(merge_observed_lease(Some(&won), later, at(1)).holder, None);
    }

    #[test]
    fn another_incarnation_has_no_history() {
        let old = version("10", held(0, "a", &[]));
        let anew = ObservedLease {
            uid: "other".into(),
            ..version("2", free(0))
        };
        assert_eq!(merge_observed_lease(Some(&old), anew.clone(), at(1)), anew);
    }
}
