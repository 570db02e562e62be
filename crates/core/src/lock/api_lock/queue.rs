//! The first of those who wait in one process: the only one of them that bids.

use std::time::Duration;

use super::super::{Bid, HolderId, LeaseSeen, when_to_bid};
use crate::Now;

/// What the first one sees.
#[derive(Debug, Clone)]
pub struct TurnSeen<'a> {
    /// Who it is for.
    pub holder: &'a HolderId,
    /// Whose place in the call it takes ([`called`]).
    pub called_as: &'a HolderId,
    /// The group's slots.
    pub leases: &'a [LeaseSeen],
    /// Its own maximum.
    pub slots: u32,
    /// 0 to 1, drawn once per wait.
    pub jitter: f64,
    /// When its request came, in monotonic time.
    pub arrived: Duration,
    /// Not before this monotonic moment: it gave the lock back.
    pub bid_after: Option<Duration>,
}

/// What it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Writes its id: into a free Lease, or into one that its host has already.
    Bid {
        /// Which.
        lease: Box<LeaseSeen>,
    },
    /// Waits for this monotonic moment, or a change.
    At {
        /// When.
        at: Duration,
        /// For what.
        why: String,
    },
    /// Waits for a change.
    Wait {
        /// Who holds.
        why: String,
    },
}

/// Whether the first of a group's waiters in this process bids now. The same rule as everybody's
/// ([`when_to_bid`]).
pub fn turn(seen: &TurnSeen<'_>, now: Now) -> Turn {
    if let Some(at) = seen.bid_after.filter(|at| *at > now.mono) {
        let why = "gave the lock back because too many are out; asks again after a pause".into();
        return Turn::At { at, why };
    }
    // Whatever its number, and even if another maximum rules by now.
    let held = seen
        .leases
        .iter()
        .find(|lease| lease.holder.as_ref() == Some(seen.holder));
    if let Some(lease) = held {
        let lease = Box::new(lease.clone());
        return Turn::Bid { lease };
    }
    let leases: Vec<LeaseSeen> = seen.leases.iter().map(|lease| found(seen, lease)).collect();
    match when_to_bid(&leases, seen.called_as, seen.slots, seen.jitter, now) {
        Bid::Now { lease } => Turn::Bid {
            lease: Box::new(lease),
        },
        Bid::Later { at, lease } => Turn::At {
            at,
            why: format!(
                "Lease {} is free; it is another one's turn first",
                lease.name
            ),
        },
        Bid::AllHeld => Turn::Wait {
            why: held_by(seen.leases),
        },
    }
}

/// A newcomer that finds a Lease free bids at once, unless somebody was called: this process watched it
/// before the request came.
fn found(seen: &TurnSeen<'_>, lease: &LeaseSeen) -> LeaseSeen {
    let before = lease.freed_at.is_some_and(|at| at <= seen.arrived);
    let nobody_first = lease.hint.is_empty() && lease.given_back == 0;
    LeaseSeen {
        freed_at: lease.freed_at.filter(|_| !(before && nobody_first)),
        ..lease.clone()
    }
}

/// Whose place in a leaver's call the first one takes: the first name there that is one of `ours`
/// (who waits in this process, or did when the leaver looked). Whoever was called may have left
/// since, and the first one has waited longest.
pub fn called<'a>(
    leases: &'a [LeaseSeen],
    first: &'a HolderId,
    ours: impl Fn(&HolderId) -> bool,
) -> &'a HolderId {
    let mut names = leases
        .iter()
        .filter(|lease| lease.holder.is_none())
        .flat_map(|lease| lease.hint.iter().enumerate())
        .filter(|(_, name)| *name == first || ours(name))
        .collect::<Vec<_>>();
    names.sort_by_key(|(place, _)| *place);
    names.first().map_or(first, |(_, name)| name)
}

fn held_by(leases: &[LeaseSeen]) -> String {
    let held = |lease: &LeaseSeen| Some(format!("{} by {}", lease.name, lease.holder.as_ref()?));
    let names: Vec<String> = leases.iter().filter_map(held).collect();
    if names.is_empty() {
        "the group's Leases are not there yet".into()
    } else {
        format!("held: {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testkit::{free, held};
    use super::*;

    fn api(host: &str) -> HolderId {
        HolderId::api(host)
    }

    fn at(millis: u64) -> Now {
        Now {
            wall: jiff::Timestamp::UNIX_EPOCH,
            mono: Duration::from_millis(millis),
        }
    }

    fn calling(names: &[&HolderId]) -> LeaseSeen {
        LeaseSeen {
            freed_at: Some(Duration::from_secs(1)),
            hint: names.iter().map(|name| (*name).clone()).collect(),
            ..free(0)
        }
    }

    fn decided(leases: &[LeaseSeen], called_as: &HolderId, bid_after: Option<u64>) -> Turn {
        let seen = TurnSeen {
            holder: &api("h"),
            called_as,
            leases,
            slots: 1,
            jitter: 0.0,
            arrived: Duration::ZERO,
            bid_after: bid_after.map(Duration::from_millis),
        };
        turn(&seen, at(1000))
    }

    fn is_bid(turn: &Turn) -> bool {
        matches!(turn, Turn::Bid { .. })
    }

    #[test]
    fn the_first_bids_at_once_for_what_is_free_or_its_hosts_already() {
        assert!(is_bid(&decided(&[free(0)], &api("h"), None)));
        let ours = LeaseSeen {
            holder: Some(api("h")),
            ..held(5, "x", &[])
        };
        assert!(is_bid(&decided(
            &[held(0, "x", &[]), ours],
            &api("h"),
            None
        )));
        let others = decided(&[held(0, "x", &[])], &api("h"), None);
        let Turn::Wait { why } = others else {
            panic!("{others:?}")
        };
        assert!(why.contains("dogwatch-default-0 by node/x"), "{why}");
    }

    #[test]
    fn after_a_give_back_nobody_bids_before_the_pause_is_over() {
        let turn = decided(&[free(0)], &api("h"), Some(3000));
        assert!(matches!(turn, Turn::At { at, .. } if at == Duration::from_secs(3)));
        assert!(is_bid(&decided(&[free(0)], &api("h"), Some(1000))));
    }

    #[test]
    fn the_first_takes_the_place_of_one_who_was_called_here() {
        let (left, node) = (api("left"), super::super::super::testkit::node("n"));
        let leases = [calling(&[&node, &left])];
        let first = api("h");
        let ours = |name: &HolderId| *name == left;
        let as_called = called(&leases, &first, ours);
        assert_eq!(*as_called, left);
        let turn = decided(&leases, as_called, None);
        assert!(
            matches!(turn, Turn::At { at, .. } if at == Duration::from_millis(1050)),
            "{turn:?}"
        );
        assert_eq!(
            *called(&leases, &first, |_| false),
            first,
            "nobody of ours was called"
        );
    }

    #[test]
    fn a_newcomer_takes_what_was_free_before_it_came_unless_somebody_was_called() {
        let bids = |lease: LeaseSeen, arrived| {
            let me = api("h");
            let seen = TurnSeen {
                holder: &me,
                called_as: &me,
                leases: &[lease],
                slots: 1,
                jitter: 0.0,
                arrived: Duration::from_millis(arrived),
                bid_after: None,
            };
            is_bid(&turn(&seen, at(1200)))
        };
        let another = api("another");
        assert!(bids(calling(&[]), 1100));
        assert!(!bids(calling(&[]), 900), "it saw it become free");
        assert!(!bids(calling(&[&another]), 1100));
        let given_back = LeaseSeen {
            given_back: 1,
            ..calling(&[])
        };
        assert!(!bids(given_back, 1100));
    }

    #[test]
    fn a_call_on_a_lease_that_is_held_again_calls_nobody() {
        let leases = [LeaseSeen {
            hint: vec![api("left")],
            ..held(0, "x", &[])
        }];
        assert_eq!(*called(&leases, &api("h"), |_| true), api("h"));
    }
}
