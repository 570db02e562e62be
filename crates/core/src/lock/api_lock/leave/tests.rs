//! How a request leaves, and how a host unlocks, case by case.

use jiff::Timestamp;

use super::super::super::testkit::{free, held, record, run};
use super::super::node::tests::{locked, node};
use super::*;
use crate::reboot::ParsedAnnotation;

fn me() -> HolderId {
    HolderId::for_api_host("h")
}

fn mine(runs: &[&str]) -> ObservedLease {
    ObservedLease {
        holder: Some(me()),
        record: Some(record("h", runs)),
        ..free(0)
    }
}

fn step(
    who: LeavingParty,
    leases: &[ObservedLease],
    node: Option<&ApiNode>,
    suspect: &CordonInFlight,
) -> LeaveStep {
    let (holder, run) = (me(), run("api/p/1"));
    let seen = LeaveSnapshot {
        holder: &holder,
        run: &run,
        who,
        node,
        leases,
        bid: None,
        suspect,
    };
    decide_leave(&seen, Timestamp::UNIX_EPOCH)
}

fn left(record: &LockRecord) -> Vec<&str> {
    record.runs.iter().map(RunId::as_str).collect()
}

#[test]
fn a_request_takes_only_its_own_id_and_the_last_one_out_frees() {
    for own in ["api/p/1", "answered/p/1"] {
        let step = step(
            LeavingParty::Request,
            &[mine(&[own, "api/q/2"])],
            None,
            &CordonInFlight::No,
        );
        let LeaveStep::Remove { record, .. } = step else {
            panic!("{step:?}")
        };
        assert_eq!(left(&record), ["api/q/2"]);
        let last = self::step(
            LeavingParty::Request,
            &[mine(&[own])],
            None,
            &CordonInFlight::No,
        );
        assert!(matches!(last, LeaveStep::Free { .. }), "{last:?}");
    }
    let others = step(
        LeavingParty::Request,
        &[mine(&["answered/q/2"])],
        None,
        &CordonInFlight::No,
    );
    assert_eq!(others, LeaveStep::Done);
    let foreign = step(
        LeavingParty::Request,
        &[held(0, "n1", &["api/p/1"])],
        None,
        &CordonInFlight::No,
    );
    assert_eq!(foreign, LeaveStep::Done);
}

#[test]
fn the_cordon_goes_before_the_lock() {
    let closed = node(true, locked("api/p/1", true));
    for who in [LeavingParty::Request, LeavingParty::Host] {
        let step = step(
            who,
            &[mine(&["api/p/1"])],
            Some(&closed),
            &CordonInFlight::No,
        );
        let LeaveStep::Node { write } = step else {
            panic!("{step:?}")
        };
        assert_eq!((write.unschedulable, write.lock), (Some(false), None));
        let open = node(false, ParsedAnnotation::Absent);
        let step = self::step(who, &[mine(&["api/p/1"])], Some(&open), &CordonInFlight::No);
        assert!(matches!(step, LeaveStep::Free { .. }), "{step:?}");
    }
}

#[test]
fn while_another_request_relies_on_the_cordon_it_stays() {
    let closed = node(true, locked("api/p/1", true));
    let leases = [mine(&["api/p/1", "api/q/2"])];
    let step = step(
        LeavingParty::Request,
        &leases,
        Some(&closed),
        &CordonInFlight::No,
    );
    assert!(matches!(step, LeaveStep::Remove { .. }), "{step:?}");
}

#[test]
fn who_took_its_id_away_leaves_the_cordon_to_the_one_who_stays() {
    // The leaving request wrote the annotation last, beside a request that had cordoned before.
    let closed = node(true, locked("api/p/1", true));
    for stays in ["api/q/2", "answered/q/2"] {
        let step = step(
            LeavingParty::Request,
            &[mine(&[stays])],
            Some(&closed),
            &CordonInFlight::No,
        );
        assert_eq!(step, LeaveStep::Done, "{stays}");
    }
}

#[test]
fn who_leaves_one_lease_of_its_host_hands_the_cordon_to_the_request_on_another() {
    let second = || ObservedLease {
        name: free(1).name,
        slot: 1,
        ..mine(&["api/p/1"])
    };
    let lock = |lease: &str, by: &str| {
        let lock = crate::lock::api_lock::ApiLock {
            lease: lease.to_owned(),
            ..locked(by, true).get().unwrap().clone()
        };
        ParsedAnnotation::Is(lock)
    };
    let (first_name, second_name) = (free(0).name, free(1).name);
    let (theirs, ours) = (lock(&first_name, "api/q/2"), lock(&second_name, "api/p/1"));
    let here = CordonInFlight::Version("7".into());
    // The Node, the suspicion, and the write: cordon and Lease, or none.
    let handed = || Some((None, Some(first_name.clone())));
    let table = [
        (true, theirs.clone(), CordonInFlight::No, None),
        (true, theirs.clone(), here.clone(), handed()),
        (true, ours.clone(), CordonInFlight::No, handed()),
        (true, ours.clone(), here.clone(), handed()),
        (false, ours, CordonInFlight::No, Some((None, None))),
        (false, theirs, CordonInFlight::No, None),
        (false, ParsedAnnotation::Absent, CordonInFlight::No, None),
        (
            false,
            ParsedAnnotation::Absent,
            here,
            Some((None, Some(second_name))),
        ),
    ];
    for stays in ["api/q/2", "answered/q/2"] {
        for (closed, lock, suspect, expected) in table.clone() {
            let node = node(closed, lock);
            let leases = [mine(&[stays]), second()];
            let wrote = match step(LeavingParty::Request, &leases, Some(&node), &suspect) {
                LeaveStep::Node { write } => {
                    let lock = write.lock;
                    let by = lock.as_ref().map(|lock| lock.run.clone());
                    assert!(by.is_none_or(|by| by == run("api/p/1")), "{node:?}");
                    Some((write.unschedulable, lock.map(|lock| lock.lease)))
                }
                LeaveStep::Free { lease } => {
                    assert_eq!(lease.name, free(1).name);
                    None
                }
                other @ (LeaveStep::Done
                | LeaveStep::Unreadable { .. }
                | LeaveStep::Settle { .. }
                | LeaveStep::Claim { .. }
                | LeaveStep::Remove { .. }) => panic!("{other:?}"),
            };
            assert_eq!(wrote, expected, "{node:?} {suspect:?}");
        }
    }
    // A host that unlocks gives up all its Leases.
    let closed = node(true, locked("answered/q/2", true));
    let leases = [mine(&["answered/q/2"]), second()];
    let host = step(
        LeavingParty::Host,
        &leases,
        Some(&closed),
        &CordonInFlight::No,
    );
    let LeaveStep::Node { write } = host else {
        panic!("{host:?}")
    };
    assert_eq!(write.unschedulable, Some(false));
}

#[test]
fn a_cordon_that_may_be_on_its_way_is_made_to_fail_before_the_lock_goes() {
    let open = node(false, ParsedAnnotation::Absent);
    let table = [
        (CordonInFlight::Version("7".into()), true),
        (CordonInFlight::Any, true),
        (CordonInFlight::Version("6".into()), false),
        (CordonInFlight::No, false),
    ];
    for (suspect, touches) in table {
        for leases in [vec![mine(&["api/p/1"])], vec![free(0)]] {
            let step = step(LeavingParty::Request, &leases, Some(&open), &suspect);
            let LeaveStep::Node { write } = step else {
                assert!(!touches, "{suspect:?} {step:?}");
                continue;
            };
            assert!(touches && write.unschedulable.is_none(), "{suspect:?}");
            assert!(!write.lock.unwrap().cordoned_by_us);
        }
    }
}

#[test]
fn a_bid_that_may_land_is_settled_first() {
    let (holder, run) = (me(), run("api/p/1"));
    let (bid, suspect) = (free(0), CordonInFlight::No);
    let mut seen = LeaveSnapshot {
        holder: &holder,
        run: &run,
        who: LeavingParty::Request,
        node: None,
        leases: &[free(0)],
        bid: Some(&bid),
        suspect: &suspect,
    };
    let settles = decide_leave(&seen, Timestamp::UNIX_EPOCH);
    assert!(matches!(settles, LeaveStep::Settle { .. }), "{settles:?}");
    let others = [
        ObservedLease {
            resource_version: "2".into(),
            ..free(0)
        },
        ObservedLease {
            uid: "made again".into(),
            ..free(0)
        },
        ObservedLease {
            name: free(1).name,
            ..free(0)
        },
    ];
    for other in &others {
        seen.leases = std::slice::from_ref(other);
        let step = decide_leave(&seen, Timestamp::UNIX_EPOCH);
        assert_eq!(step, LeaveStep::Done, "{other:?}");
    }
}

#[test]
fn the_cordon_goes_with_the_first_lease_where_only_the_leaving_request_holds_both() {
    let second = ObservedLease {
        name: free(1).name,
        slot: 1,
        ..mine(&["answered/p/1"])
    };
    let others = ObservedLease {
        holder: Some(HolderId::for_api_host("another")),
        ..second.clone()
    };
    let closed = node(true, locked("api/p/1", true));
    for beside in [second, others] {
        let leases = [mine(&["api/p/1"]), beside];
        let step = step(
            LeavingParty::Request,
            &leases,
            Some(&closed),
            &CordonInFlight::No,
        );
        let LeaveStep::Node { write } = step else {
            panic!("{step:?}")
        };
        assert_eq!((write.unschedulable, write.lock), (Some(false), None));
    }
}

#[test]
fn a_host_that_unlocks_takes_all_its_requests_along() {
    let told = step(
        LeavingParty::Host,
        &[mine(&["answered/q/2", "answered/r/3"])],
        None,
        &CordonInFlight::No,
    );
    assert!(matches!(told, LeaveStep::Free { .. }), "{told:?}");
    let busy = step(
        LeavingParty::Host,
        &[mine(&["answered/q/2", "api/r/3"])],
        None,
        &CordonInFlight::No,
    );
    let LeaveStep::Claim { record, .. } = busy else {
        panic!("{busy:?}")
    };
    assert_eq!(left(&record), ["api/p/1"]);
    let claimed = step(
        LeavingParty::Host,
        &[mine(&["api/p/1"])],
        None,
        &CordonInFlight::Any,
    );
    assert!(matches!(claimed, LeaveStep::Free { .. }), "{claimed:?}");
    assert_eq!(
        step(
            LeavingParty::Host,
            &[held(0, "n1", &[])],
            None,
            &CordonInFlight::No
        ),
        LeaveStep::Done
    );
}

#[test]
fn a_lock_that_cannot_be_read_goes_by_its_hosts_word_only() {
    let unreadable = ObservedLease {
        record: None,
        ..mine(&[])
    };
    let request = step(
        LeavingParty::Request,
        std::slice::from_ref(&unreadable),
        None,
        &CordonInFlight::No,
    );
    assert!(
        matches!(request, LeaveStep::Unreadable { .. }),
        "{request:?}"
    );
    let host = step(LeavingParty::Host, &[unreadable], None, &CordonInFlight::No);
    assert!(matches!(host, LeaveStep::Free { .. }), "{host:?}");
}

#[test]
fn a_cordon_left_behind_by_a_lock_that_was_taken_away_is_undone_by_who_made_it() {
    let closed = node(true, locked("api/p/1", true));
    let step_of = |who, by: &str| {
        let node = node(true, locked(by, true));
        step(who, &[free(0)], Some(&node), &CordonInFlight::No)
    };
    for step in [
        step_of(LeavingParty::Request, "api/p/1"),
        step_of(LeavingParty::Host, "answered/q/9"),
    ] {
        assert!(matches!(step, LeaveStep::Node { .. }), "{step:?}");
    }
    assert_eq!(step_of(LeavingParty::Request, "api/q/9"), LeaveStep::Done);
    let other = ObservedLease {
        holder: Some(HolderId::for_fleetlock_client("default", "x")),
        ..mine(&["answered/q/9"])
    };
    let anothers = step(
        LeavingParty::Host,
        &[other],
        Some(&closed),
        &CordonInFlight::No,
    );
    assert_eq!(
        anothers,
        LeaveStep::Done,
        "another holder's lock of the same Node"
    );
}
