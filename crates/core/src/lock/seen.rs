//! One Lease seen again.

use super::LeaseSeen;
use crate::Now;

/// What is known of a Lease once it was seen `again`, by a watch, a list or the answer to a write,
/// in whatever order they arrive.
///
/// An older version never replaces a newer one. When it became free, as far as this process could
/// see, is kept until it is held again; a free Lease whose call or count has changed was held in
/// between.
pub fn seen_again(known: Option<&LeaseSeen>, again: LeaseSeen, now: Now) -> LeaseSeen {
    let Some(known) = known.filter(|known| known.uid == again.uid) else {
        return again;
    };
    if is_older(&again.resource_version, &known.resource_version) {
        return known.clone();
    }
    let left_since =
        known.holder.is_some() || known.hint != again.hint || known.given_back != again.given_back;
    let freed_at = match (&again.holder, left_since) {
        (Some(_), _) => None,
        (None, true) => again.freed_at.or(Some(now.mono)),
        (None, false) => known.freed_at,
    };
    LeaseSeen { freed_at, ..again }
}

/// Versions of one object are decimal numbers that grow (KEP-5504 made that a promise); where they
/// are not, the later message wins.
fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        (Ok(_) | Err(_), _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{free, held, node};
    use super::*;
    use std::time::Duration;

    fn at(second: u64) -> Now {
        Now {
            wall: jiff::Timestamp::UNIX_EPOCH,
            mono: Duration::from_secs(second),
        }
    }

    fn version(version: &str, lease: LeaseSeen) -> LeaseSeen {
        LeaseSeen {
            resource_version: version.into(),
            ..lease
        }
    }

    fn called(version_: &str, next: &str) -> LeaseSeen {
        LeaseSeen {
            hint: vec![node(next)],
            ..version(version_, free(0))
        }
    }

    #[test]
    fn a_lease_found_free_is_free_since_first_seen() {
        let first = seen_again(None, free(0), at(3));
        assert_eq!(first.freed_at, None);
        assert_eq!(
            seen_again(Some(&first), version("2", free(0)), at(4)).freed_at,
            None
        );
    }

    #[test]
    fn becoming_free_is_remembered_until_it_is_held_again() {
        let first = version("9", held(0, "a", &[]));
        let freed = seen_again(Some(&first), called("10", "b"), at(5));
        assert_eq!(freed.freed_at, Some(Duration::from_secs(5)));
        let listed = seen_again(Some(&freed), called("10", "b"), at(9));
        assert_eq!(listed.freed_at, Some(Duration::from_secs(5)));
        let taken = seen_again(Some(&listed), version("11", held(0, "b", &[])), at(10));
        assert_eq!(taken.freed_at, None);
    }

    #[test]
    fn a_hold_that_was_never_seen_still_makes_it_newly_free() {
        let first = called("1", "a");
        let again = seen_again(Some(&first), called("9", "c"), at(7));
        assert_eq!(again.freed_at, Some(Duration::from_secs(7)));
        let back = LeaseSeen {
            given_back: 1,
            ..version("12", called("9", "c"))
        };
        assert_eq!(
            seen_again(Some(&again), back, at(8)).freed_at,
            Some(Duration::from_secs(8))
        );
    }

    #[test]
    fn a_late_message_never_undoes_what_an_answer_has_shown() {
        let won = version("10", held(0, "me", &[]));
        assert_eq!(seen_again(Some(&won), version("9", free(0)), at(1)), won);
        let later = version("11", free(0));
        assert_eq!(seen_again(Some(&won), later, at(1)).holder, None);
    }

    #[test]
    fn another_incarnation_has_no_history() {
        let old = version("10", held(0, "a", &[]));
        let anew = LeaseSeen {
            uid: "other".into(),
            ..version("2", free(0))
        };
        assert_eq!(seen_again(Some(&old), anew.clone(), at(1)), anew);
    }
}
