//! Decides when the first waiter of a process bids; the others of the process do not bid.

use std::time::Duration;

use super::super::{BidDecision, BidPause, HolderId, ObservedLease, decide_bid, list_holders};
use crate::Now;
use crate::name::NodeName;

#[derive(Debug, Clone)]
pub struct QueueSnapshot<'a> {
    pub holder: &'a HolderId,
    /// The name in `dogwatch.dev/next` whose place it takes ([`find_called_holder`]).
    pub called_as: &'a HolderId,
    /// The Node that the host is, if any. The other holders of its lock are no obstacle.
    pub node: Option<&'a NodeName>,
    pub leases: &'a [ObservedLease],
    /// Its own maximum of slots.
    pub slots: u32,
    /// 0 to 1, drawn once per wait.
    pub jitter: f64,
    /// When its request arrived, in monotonic time.
    pub arrived: Duration,
    /// When it bids again, if it gave the lock back over budget.
    pub bid_pause: Option<BidPause>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueStep {
    /// Writes its id: into a free Lease, or into one that its host has already.
    Bid {
        lease: Box<ObservedLease>,
    },
    /// Waits until this monotonic moment, or for a change.
    At {
        at: Duration,
        why: String,
    },
    Wait {
        why: String,
    },
}

/// Decides whether the first of a group's waiters in this process bids now, by the rule that all
/// bidders follow ([`decide_bid`]).
pub fn decide_queue(seen: &QueueSnapshot<'_>, now: Now) -> QueueStep {
    let pause_end = seen
        .bid_pause
        .map(|pause| pause.end_for_waiter(seen.leases, seen.called_as, seen.jitter));
    if let Some(at) = pause_end.filter(|at| *at > now.mono) {
        let why =
            "released the lock because too many nodes are unavailable; tries again after a pause"
                .into();
        return QueueStep::At { at, why };
    }
    // Whatever the slot's number, and even if the maximum has changed since.
    let held = seen
        .leases
        .iter()
        .find(|lease| lease.holder.as_ref() == Some(seen.holder));
    if let Some(lease) = held {
        let lease = Box::new(lease.clone());
        return QueueStep::Bid { lease };
    }
    // The count of the budget leaves out other holders for the same Node, too.
    let own_node = seen.node.map(HolderId::for_node);
    let is_of_own_node =
        |lease: &ObservedLease| own_node.is_some() && lease.effective_holder() == own_node;
    let leases: Vec<ObservedLease> = seen
        .leases
        .iter()
        .filter(|lease| !is_of_own_node(lease))
        .map(|lease| lease_as_newcomer(seen, lease))
        .collect();
    match decide_bid(&leases, seen.called_as, seen.slots, seen.jitter, now) {
        BidDecision::Now { lease } => QueueStep::Bid {
            lease: Box::new(lease),
        },
        BidDecision::Later { at, lease } => QueueStep::At {
            at,
            why: format!(
                "Lease {} is free; another holder is first in the queue",
                lease.name
            ),
        },
        BidDecision::AllHeld => QueueStep::Wait {
            why: describe_holders(seen.leases),
        },
        BidDecision::MaxReached { max } => QueueStep::Wait {
            why: format!(
                "at most {max} may hold the lock until a present holder releases it; {}",
                describe_holders(seen.leases)
            ),
        },
    }
}

/// A new request bids at once for a Lease that was free before it came, unless the last holder
/// named the next ones: the times that this process watched before do not count for it.
fn lease_as_newcomer(seen: &QueueSnapshot<'_>, lease: &ObservedLease) -> ObservedLease {
    let before = lease.freed_at.is_some_and(|at| at <= seen.arrived);
    let nobody_first = lease.next_waiters.is_empty() && lease.yield_count == 0;
    ObservedLease {
        freed_at: lease.freed_at.filter(|_| !(before && nobody_first)),
        room_since: lease.room_since.filter(|at| *at > seen.arrived),
        ..lease.clone()
    }
}

/// The name in `dogwatch.dev/next` whose place the first waiter takes: the first that is one of
/// `ours` (waits in this process, or did when the last holder released). The named waiter may have
/// left since, and the first one has waited longest.
pub fn find_called_holder<'a>(
    leases: &'a [ObservedLease],
    first: &'a HolderId,
    ours: impl Fn(&HolderId) -> bool,
) -> &'a HolderId {
    let mut names = leases
        .iter()
        .filter(|lease| lease.holder.is_none())
        .flat_map(|lease| lease.next_waiters.iter().enumerate())
        .filter(|(_, name)| *name == first || ours(name))
        .collect::<Vec<_>>();
    names.sort_by_key(|(place, _)| *place);
    names.first().map_or(first, |(_, name)| name)
}

fn describe_holders(leases: &[ObservedLease]) -> String {
    let held = list_holders(leases);
    if held.is_empty() {
        "the group's Leases do not exist yet".into()
    } else {
        format!("held: {held}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testkit::{free, held, held_under_max};
    use super::*;

    fn api(host: &str) -> HolderId {
        HolderId::for_api_host(host)
    }

    fn at(millis: u64) -> Now {
        Now {
            wall: jiff::Timestamp::UNIX_EPOCH,
            mono: Duration::from_millis(millis),
        }
    }

    fn calling(names: &[&HolderId]) -> ObservedLease {
        ObservedLease {
            freed_at: Some(Duration::from_secs(1)),
            next_waiters: names.iter().map(|name| (*name).clone()).collect(),
            ..free(0)
        }
    }

    fn decided(
        leases: &[ObservedLease],
        called_as: &HolderId,
        paused_until: Option<u64>,
    ) -> QueueStep {
        let seen = QueueSnapshot {
            holder: &api("h"),
            called_as,
            node: None,
            leases,
            slots: 1,
            jitter: 0.0,
            arrived: Duration::ZERO,
            bid_pause: paused_until.map(|millis| BidPause {
                since: Duration::ZERO,
                until: Duration::from_millis(millis),
            }),
        };
        decide_queue(&seen, at(1000))
    }

    fn is_bid(turn: &QueueStep) -> bool {
        matches!(turn, QueueStep::Bid { .. })
    }

    #[test]
    fn the_first_bids_at_once_for_what_is_free_or_its_hosts_already() {
        assert!(is_bid(&decided(&[free(0)], &api("h"), None)));
        let ours = ObservedLease {
            holder: Some(api("h")),
            ..held(5, "x", &[])
        };
        assert!(is_bid(&decided(
            &[held(0, "x", &[]), ours],
            &api("h"),
            None
        )));
        let others = decided(&[held(0, "x", &[])], &api("h"), None);
        let QueueStep::Wait { why } = others else {
            panic!("{others:?}")
        };
        assert!(why.contains("dogwatch-default-0 by node/x"), "{why}");
    }

    #[test]
    fn after_a_give_back_nobody_bids_before_the_pause_is_over() {
        let turn = decided(&[free(0)], &api("h"), Some(3000));
        assert!(matches!(turn, QueueStep::At { at, .. } if at == Duration::from_secs(3)));
        assert!(is_bid(&decided(&[free(0)], &api("h"), Some(1000))));
    }

    #[test]
    fn the_first_takes_the_place_of_one_who_was_called_here() {
        let (left, node) = (api("left"), super::super::super::testkit::node("n"));
        let leases = [calling(&[&node, &left])];
        let first = api("h");
        let ours = |name: &HolderId| *name == left;
        let as_called = find_called_holder(&leases, &first, ours);
        assert_eq!(*as_called, left);
        let turn = decided(&leases, as_called, None);
        assert!(
            matches!(turn, QueueStep::At { at, .. } if at == Duration::from_millis(1050)),
            "{turn:?}"
        );
        assert_eq!(
            *find_called_holder(&leases, &first, |_| false),
            first,
            "nobody of ours was called"
        );
    }

    #[test]
    fn a_newcomer_takes_what_was_free_before_it_came_unless_somebody_was_called() {
        let bids = |lease: ObservedLease, arrived| {
            let me = api("h");
            let seen = QueueSnapshot {
                holder: &me,
                called_as: &me,
                node: None,
                leases: &[lease],
                slots: 1,
                jitter: 0.0,
                arrived: Duration::from_millis(arrived),
                bid_pause: None,
            };
            is_bid(&decide_queue(&seen, at(1200)))
        };
        let another = api("another");
        assert!(bids(calling(&[]), 1100));
        assert!(!bids(calling(&[]), 900), "it saw it become free");
        assert!(!bids(calling(&[&another]), 1100));
        let given_back = ObservedLease {
            yield_count: 1,
            ..calling(&[])
        };
        assert!(!bids(given_back, 1100));
    }

    /// What host `h`, which is Node `n`, decides about these Leases with two slots.
    fn decided_for_node(leases: &[ObservedLease]) -> QueueStep {
        let (me, node) = (api("h"), NodeName::new("n").unwrap());
        let seen = QueueSnapshot {
            holder: &me,
            called_as: &me,
            node: Some(&node),
            leases,
            slots: 2,
            jitter: 0.0,
            arrived: Duration::from_millis(500),
            bid_pause: None,
        };
        decide_queue(&seen, at(1000))
    }

    #[test]
    fn a_holder_with_a_smaller_maximum_is_waited_for_and_named() {
        let turn = decided_for_node(&[held(0, "x", &[]), free(1)]);
        let QueueStep::Wait { why } = turn else {
            panic!("{turn:?}")
        };
        assert!(why.starts_with("at most 1 may hold the lock"), "{why}");
        assert!(why.contains("dogwatch-default-0 by node/x"), "{why}");
    }

    #[test]
    fn another_holder_for_the_same_node_is_no_obstacle() {
        assert!(is_bid(&decided_for_node(&[held(0, "n", &[]), free(1)])));
    }

    #[test]
    fn room_that_was_made_before_a_request_came_gives_nobody_a_turn_before_it() {
        let made_room = |millis| ObservedLease {
            room_since: Some(Duration::from_millis(millis)),
            next_waiters: vec![api("another")],
            ..held(0, "n", &[])
        };
        assert!(is_bid(&decided_for_node(&[made_room(400), free(1)])));
        let own_node_only = decided_for_node(&[made_room(600), free(1)]);
        assert!(is_bid(&own_node_only), "{own_node_only:?}");
        let of_other = ObservedLease {
            record: held_under_max(0, "x", 2).record,
            ..made_room(600)
        };
        let turn = decided_for_node(&[of_other.clone(), free(1)]);
        assert!(
            matches!(turn, QueueStep::At { at, .. } if at == Duration::from_millis(1600)),
            "{turn:?}"
        );
        for before in [400, 500] {
            let room_since = Some(Duration::from_millis(before));
            let made_before = ObservedLease {
                room_since,
                ..of_other.clone()
            };
            let turn = decided_for_node(&[made_before, free(1)]);
            assert!(is_bid(&turn), "{before}: {turn:?}");
        }
    }

    #[test]
    fn a_call_on_a_lease_that_is_held_again_calls_nobody() {
        let leases = [ObservedLease {
            next_waiters: vec![api("left")],
            ..held(0, "x", &[])
        }];
        assert_eq!(*find_called_holder(&leases, &api("h"), |_| true), api("h"));
    }
}
