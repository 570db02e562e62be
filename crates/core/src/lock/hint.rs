//! The one who leaves calls the next.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{HolderId, Waiter};

/// How many names a leaver writes. With [`super::HINT_STEP`] between them the last one bids before
/// those who were not called; more would only help if more than this many of the longest-waiting
/// nodes died within their wait.
pub const HINT_LENGTH: usize = 5;

/// Whom to call, first one first, at most `most`: control-plane nodes last; where the group goes one
/// zone after the other those of `zone`, the leaver's own, first, and then the zone in which
/// somebody waits longest; within that the longest waiting first, those whose wait cannot be read
/// after all others, ties by name. Never ourselves.
pub fn hint(waiters: &[Waiter], me: &HolderId, zone: Option<&str>, most: usize) -> Vec<HolderId> {
    let mut waiters: Vec<&Waiter> = waiters
        .iter()
        .filter(|waiter| waiter.holder != *me)
        .collect();
    let oldest = oldest_of_zones(&waiters);
    waiters.sort_by_key(|waiter| {
        let theirs = waiter.zone.as_deref();
        let zone = theirs.map(|theirs| (Some(theirs) != zone, oldest.get(theirs), theirs));
        (
            waiter.control_plane,
            zone,
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

/// The longest wait in each zone.
fn oldest_of_zones<'a>(waiters: &[&'a Waiter]) -> BTreeMap<&'a str, Timestamp> {
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

    fn waiter(name: &str, control_plane: bool, since: Option<i64>) -> Waiter {
        Waiter {
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
        let order = hint(&waiters, &node("me"), None, 9);
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
        assert_eq!(hint(&waiters, &node("me"), None, 2), expected[..2]);
    }

    #[test]
    fn nobody_waits_nobody_is_called() {
        assert_eq!(hint(&[waiter("me", false, None)], &node("me"), None, 5), []);
    }

    #[test]
    fn one_zone_after_the_other_begins_with_the_leavers_own() {
        let at = |name, zone: &str, second| Waiter {
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
            let order = hint(&waiters, &node("me"), zone, 9);
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
