//! Groups and their budgets.

use super::*;
use crate::explain::testkit::{fleet, held, in_phase, node, waiting};
use crate::limit::UnavailabilityLimit;

#[test]
fn a_group_names_what_others_take_from_its_budget() {
    let mut cordoned = node("n3");
    cordoned.unschedulable = true;
    let mut lost = node("n4");
    lost.ready = false;
    let draining = in_phase("n1", RebootPhase::Draining, 5, ("Draining", "3 pods gone"));
    let nodes = vec![draining, waiting("n2", 10), cordoned, lost];
    let mut workers = policy("workers");
    workers.max_unavailable = Some(UnavailabilityLimit::Count(3));
    let mut lease = held(0, "n1", 5);
    lease.group = GroupName::new("workers").unwrap();
    if let Some(record) = &mut lease.lease.record {
        record.max = 3;
    }
    let view = view_of(&with_policy(fleet(nodes, vec![lease]), workers), 100);
    assert_eq!(view.groups.len(), 1);
    let group = &view.groups[0];
    assert_eq!((group.name.as_str(), group.members), ("workers", 4));
    assert_eq!((group.allowed, group.used), (3, 3));
    assert_eq!(group.allowed_source, "RebootPolicy workers: 3");
    assert_eq!((group.out, group.waiting), (1, 1));
    let taken: Vec<(&str, &str)> = group
        .taken_by_others
        .iter()
        .map(|slot| (slot.node.as_str(), slot.why.as_str()))
        .collect();
    assert_eq!(taken, [("n3", "unschedulable"), ("n4", "not ready")]);
}

#[test]
fn the_smallest_maximum_of_the_holders_rules() {
    let mut workers = policy("workers");
    workers.max_unavailable = Some(UnavailabilityLimit::Percent(50));
    let nodes: Vec<ObservedNode> = (0..10).map(|n| node(&format!("n{n}"))).collect();
    let alone = with_policy(fleet(nodes, vec![]), workers);
    assert_eq!(view_of(&alone, 100).groups[0].allowed, 5);
    let mut lease = held(0, "n1", 5);
    lease.group = GroupName::new("workers").unwrap();
    let beside = FleetSnapshot {
        leases: vec![lease],
        ..alone
    };
    assert_eq!(view_of(&beside, 100).groups[0].allowed, 1);
}

#[test]
fn a_group_of_hosts_without_nodes_is_shown_while_its_lock_is_held() {
    let mut lease = held(0, "n1", 5);
    lease.group = GroupName::new("db").unwrap();
    lease.lease.holder = crate::lock::HolderId::new("fleetlock/db/7").ok();
    lease.lease.record = None;
    let view = view_of(&fleet(vec![node("n1")], vec![lease]), 100);
    let names: Vec<(&str, usize)> = view
        .groups
        .iter()
        .map(|group| (group.name.as_str(), group.used))
        .collect();
    assert_eq!(names, [("db", 1), ("default", 0)]);
}

#[test]
fn windows_are_listed_around_now() {
    use crate::policy::window::{MaintenanceWindow, WindowSpec};
    let spec = WindowSpec {
        start: Some("22:00".into()),
        end: Some("04:00".into()),
        time_zone: Some("UTC".into()),
        ..WindowSpec::default()
    };
    let nightly = Policy {
        windows: vec![MaintenanceWindow::new(&spec).unwrap()],
        ..policy("workers")
    };
    let day = 24 * 3600;
    let noon = 3 * day + day / 2;
    let view = view_of(&with_policy(fleet(vec![node("n1")], vec![]), nightly), noon);
    let windows = &view.groups[0].windows;
    assert_eq!(windows.len(), 9);
    assert_eq!(windows[0].from, at(day + 22 * 3600));
    assert_eq!(windows[0].until, at(2 * day + 4 * 3600));
    assert_eq!(windows[8].from, at(9 * day + 22 * 3600));
}
