//! The one who leaves calls the next.

use super::{HolderId, Waiter};

/// How many names a leaver writes. With [`super::HINT_STEP`] between them the last one bids before
/// those who were not called; more would only help if more than this many of the longest-waiting
/// nodes died within their wait.
pub const HINT_LENGTH: usize = 5;

/// Whom to call, first one first, at most `most`: control-plane nodes last, within their kind the
/// longest waiting first, those whose wait cannot be read after all others, ties by name. Never
/// ourselves.
pub fn hint(waiters: &[Waiter], me: &HolderId, most: usize) -> Vec<HolderId> {
    let mut waiters: Vec<&Waiter> = waiters
        .iter()
        .filter(|waiter| waiter.holder != *me)
        .collect();
    waiters.sort_by_key(|waiter| {
        (
            waiter.control_plane,
            waiter.since.is_none(),
            waiter.since,
            &waiter.holder,
        )
    });
    waiters.dedup_by_key(|waiter| &waiter.holder);
    waiters
        .into_iter()
        .take(most)
        .map(|waiter| waiter.holder.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testkit::node;
    use super::*;
    use jiff::Timestamp;

    fn waiter(name: &str, control_plane: bool, since: Option<i64>) -> Waiter {
        Waiter {
            holder: node(name),
            control_plane,
            since: since.map(|second| Timestamp::from_second(second).unwrap()),
        }
    }

    #[test]
    fn the_control_plane_goes_last_then_the_longest_wait_counts() {
        let waiters = [
            waiter("cp1", true, Some(1)),
            waiter("unreadable", false, None),
            waiter("late", false, Some(30)),
            waiter("me", false, Some(0)),
            waiter("early", false, Some(10)),
            waiter("tie-b", false, Some(20)),
            waiter("tie-a", false, Some(20)),
            waiter("cp0", true, None),
        ];
        let order = hint(&waiters, &node("me"), 9);
        let expected = [
            "early",
            "tie-a",
            "tie-b",
            "late",
            "unreadable",
            "cp1",
            "cp0",
        ]
        .map(node);
        assert_eq!(order, expected);
        assert_eq!(hint(&waiters, &node("me"), 2), expected[..2]);
    }

    #[test]
    fn nobody_waits_nobody_is_called() {
        assert_eq!(hint(&[waiter("me", false, None)], &node("me"), 5), []);
    }
}
