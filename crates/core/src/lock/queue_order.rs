//! Orders the waiters that a releasing holder names as next.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{HolderId, LockWaiter};

/// How many names a releasing holder writes. With [`super::CALLED_BID_INTERVAL`] between them the
/// last one bids before the waiters that are not named. More names would help only if more than
/// this many of the longest-waiting nodes died while they wait.
pub const MAX_NEXT_WAITERS: usize = 5;

/// The waiters to name, first one first, at most `most`. Control-plane nodes go last. If the group
/// goes one zone after the other, waiters of `zone` (the releasing node's own) go first, then the
/// zone with the longest wait. Within a zone the longest wait goes first; waiters whose wait cannot
/// be read go after all others, ties by name. Never `me`.
pub fn order_next_waiters(
    waiters: &[LockWaiter],
    me: &HolderId,
    zone: Option<&str>,
    most: usize,
) -> Vec<HolderId> {
    let mut waiters: Vec<&LockWaiter> = waiters
        .iter()
        .filter(|waiter| waiter.holder != *me)
        .collect();
    let oldest = oldest_wait_by_zone(&waiters);
    waiters.sort_by(|a, b| {
        let [first, second] = [a, b].map(|waiter| {
            let theirs = waiter.zone.as_deref();
            let rank = theirs.map(|theirs| (Some(theirs) != zone, oldest.get(theirs), theirs));
            (waiter.control_plane, rank)
        });
        first.cmp(&second).then_with(|| compare_waiters(a, b))
    });
    waiters.dedup_by_key(|waiter| &waiter.holder);
    waiters
        .into_iter()
        .take(most)
        .map(|waiter| waiter.holder.clone())
        .collect()
}

/// The order of two waiters where zones do not matter. The planner keeps its waiters in this order.
pub fn compare_waiters(a: &LockWaiter, b: &LockWaiter) -> Ordering {
    let rank = |waiter: &LockWaiter| (waiter.control_plane, waiter.since.is_none(), waiter.since);
    let by_rank = rank(a).cmp(&rank(b));
    by_rank.then_with(|| a.holder.cmp(&b.holder))
}

/// The time since which the longest-waiting node of each zone waits.
fn oldest_wait_by_zone<'a>(waiters: &[&'a LockWaiter]) -> BTreeMap<&'a str, Timestamp> {
    let mut oldest = BTreeMap::new();
    for waiter in waiters {
        if let (Some(zone), Some(since)) = (waiter.zone.as_deref(), waiter.since) {
            let known = oldest.entry(zone).or_insert(since);
            *known = since.min(*known);
        }
    }
    oldest
}

#[cfg(test)]
mod tests {
    use super::super::testkit::node;
    use super::*;

    fn waiter(name: &str, control_plane: bool, since: Option<i64>) -> LockWaiter {
        LockWaiter {
            holder: node(name),
            control_plane,
            zone: None,
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
        let order = order_next_waiters(&waiters, &node("me"), None, 9);
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
        assert_eq!(
            order_next_waiters(&waiters, &node("me"), None, 2),
            expected[..2]
        );
    }

    #[test]
    fn nobody_waits_nobody_is_called() {
        assert_eq!(
            order_next_waiters(&[waiter("me", false, None)], &node("me"), None, 5),
            []
        );
    }

    #[test]
    fn one_zone_after_the_other_begins_with_the_leavers_own() {
        let at = |name, zone: &str, second| LockWaiter {
            zone: Some(zone.into()),
            ..waiter(name, false, Some(second))
        };
        let waiters = [
            at("b-late", "b", 30),
            at("a-late", "a", 25),
            at("c-early", "c", 5),
            at("c-late", "c", 90),
            at("a-early", "a", 20),
            waiter("cp", true, Some(1)),
        ];
        let order = |zone| {
            let order = order_next_waiters(&waiters, &node("me"), zone, 9);
            order.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let nodes = |names: [&str; 6]| names.map(|name| format!("node/{name}")).to_vec();
        assert_eq!(
            order(Some("a")),
            nodes(["a-early", "a-late", "c-early", "c-late", "b-late", "cp"])
        );
        assert_eq!(
            order(None),
            nodes(["c-early", "c-late", "a-early", "a-late", "b-late", "cp"])
        );
    }
}
