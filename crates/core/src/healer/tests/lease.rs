//! §2.2, §2.5: Leases that no process relies on.

use super::super::*;
use super::kit::*;
use crate::lock::{HolderNode, HolderReads, MIN_HOLDER_READ_INTERVAL, ObservedLease};
use crate::reboot::RebootReason;
use crate::reboot::{ObservedHolderNode, ObservedNode, ParsedAnnotation, RebootPhase};

/// A Node without a record that holds slot 0.
fn bare() -> Watch {
    let node = ObservedNode {
        record: ParsedAnnotation::Absent,
        unschedulable: false,
        conditions: vec![kubelet(0)],
        ..node("n1", RebootPhase::Waiting)
    };
    Watch::of(node, held(0, "n1", &["coordinator/a"]))
}

/// A fresh read of the Node arrives.
fn read(watch: &mut Watch, second: u64) {
    let node = watch.node().clone();
    let empty = node.record == ParsedAnnotation::Absent;
    let taken = now(second).mono;
    let read = NodeRead {
        node: Some(node),
        escalated: ParsedAnnotation::Absent,
        taken,
    };
    watch.seen.observations.nodes.insert(name("n1"), read);
    watch
        .seen
        .memory
        .record_node_read(&holder("node/n1"), empty, taken);
}

fn wants_read(watch: &Watch, second: u64) -> bool {
    let decision = watch.of_lease(second).unwrap();
    assert!(decision.actions.is_empty(), "{decision:?}");
    matches!(decision.observe.as_slice(), [HealerObserve::Node { .. }])
}

fn freed(watch: &Watch, second: u64) -> bool {
    let decision = watch.of_lease(second).unwrap();
    matches!(decision.actions.as_slice(), [HealerAction::Release { remaining, .. }] if remaining.is_empty())
}

#[test]
fn a_lock_without_a_reboot_goes_after_two_fresh_reads_heal_after_apart() {
    let mut watch = bare();
    assert!(wants_read(&watch, 0));
    read(&mut watch, 5);
    assert!(!wants_read(&watch, 5 + 14 * MINUTE));
    assert!(
        wants_read(&watch, 5 + 15 * MINUTE),
        "the watch may be stale: once more"
    );
    read(&mut watch, 6 + 15 * MINUTE);
    assert!(freed(&watch, 7 + 15 * MINUTE));
}

#[test]
fn a_record_in_between_or_a_lease_that_changed_begins_it_anew() {
    let mut watch = bare();
    read(&mut watch, 5);
    watch.change(60, |node| {
        node.record = ParsedAnnotation::Is(record(RebootPhase::Waiting));
    });
    watch.change(70, |node| node.record = ParsedAnnotation::Absent);
    read(&mut watch, 6 + 15 * MINUTE);
    assert!(!freed(&watch, 7 + 15 * MINUTE));
    let mut watch = bare();
    read(&mut watch, 5);
    let mut lease = held(0, "n1", &["coordinator/b"]);
    lease.resource_version = "2".into();
    watch.seen.leases.insert(lease.name.clone(), lease);
    watch.sees(60);
    read(&mut watch, 6 + 15 * MINUTE);
    assert!(!freed(&watch, 7 + 15 * MINUTE));
}

#[test]
fn who_has_a_record_keeps_the_lock_whatever_time_passes() {
    let mut watch = bare();
    read(&mut watch, 5);
    watch.change(60, |node| {
        node.record = ParsedAnnotation::Is(record(RebootPhase::Rebooting));
    });
    assert!(watch.of_lease(100 * 60 * MINUTE).is_none());
}

fn reads(watch: &mut Watch, second: u64, first: HolderNode, then: HolderNode) {
    let lease = watch.seen.leases.values().next().unwrap();
    let seen = ObservedHolderNode {
        lease: lease.name.clone(),
        resource_version: lease.resource_version.clone(),
        reads: HolderReads {
            nodes: [first, then],
            apart: MIN_HOLDER_READ_INTERVAL,
        },
        taken: now(second).mono,
    };
    watch
        .seen
        .observations
        .holders
        .insert(seen.lease.clone(), seen);
}

#[test]
fn a_lock_of_a_node_that_is_gone_is_broken_on_two_fresh_reads() {
    let there = |uid: &str| HolderNode::There { uid: uid.into() };
    let table = [
        (HolderNode::Gone, HolderNode::Gone, true),
        (there("uid-new"), there("uid-new"), true),
        (there("uid-n1"), there("uid-n1"), false),
        (HolderNode::Gone, there("uid-n1"), false),
    ];
    for (first, then, breaks) in table {
        let mut watch = bare();
        watch.seen.nodes.clear();
        watch.sees(1);
        let looking = watch.of_lease(1).unwrap();
        assert!(
            matches!(looking.observe.as_slice(), [HealerObserve::Holder { .. }]),
            "{looking:?}"
        );
        reads(&mut watch, 2, first.clone(), then.clone());
        let decision = watch.of_lease(3).unwrap();
        let broken = matches!(decision.actions.as_slice(), [HealerAction::Break { .. }]);
        assert_eq!(broken, breaks, "{first:?} {then:?}");
        assert!(decision.observe.is_empty(), "not read again at once");
    }
}

#[test]
fn another_node_of_the_same_name_is_evidence_like_a_missing_one() {
    let mut watch = bare();
    watch.change(1, |node| node.uid = "uid-new".into());
    let looking = watch.of_lease(1).unwrap();
    assert!(
        matches!(looking.observe.as_slice(), [HealerObserve::Holder { .. }]),
        "{looking:?}"
    );
}

#[test]
fn a_holder_that_is_no_node_is_reported_after_a_day_and_never_freed() {
    for holder_text in ["api/web-1", "fleetlock/default/x", "somebody"] {
        let lease = ObservedLease {
            holder: Some(holder(holder_text)),
            ..held(0, "n1", &["answered/p/1"])
        };
        let mut watch = Watch::of(node("n2", RebootPhase::Waiting), lease);
        let day = 24 * 60 * MINUTE;
        assert_eq!(watch.of_lease(day - 1).unwrap().report.events, []);
        // Another request of the same holder does not restart the time for which it has held.
        let mut lease = watch.seen.leases.values().next().unwrap().clone();
        lease.resource_version = "2".into();
        watch.seen.leases.insert(lease.name.clone(), lease);
        watch.sees(day / 2);
        let said = watch.of_lease(day).unwrap();
        assert_eq!(
            said.cause.reason,
            RebootReason::LockHeldForLong,
            "{holder_text}"
        );
        assert_eq!(said.report.events.len(), 1);
        watch.leaves_alone(100 * day);
    }
}
