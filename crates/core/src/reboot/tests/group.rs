//! §2.2: a Node's group, its size, and a Node that changes while a lock is held in its name.

use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::limit::UnavailabilityLimit;
use crate::lock::UnavailableCount;
use crate::lock::testkit::free;
use crate::name::GroupName;

fn make_control_plane(node: &mut ObservedNode) {
    let role = "node-role.kubernetes.io/control-plane";
    node.labels.insert(role.into(), String::new());
}

#[test]
fn a_node_that_was_moved_while_it_waited_releases_the_wrong_lock() {
    let mut seen = waiting(vec![ours()]);
    set(&mut seen, make_control_plane);
    let decision = decide(&seen, &config(), now(5));
    assert!(matches!(
        decision.actions.as_slice(),
        [RebootAction::Release {
            over_budget: false,
            ..
        }]
    ));
    assert_eq!(
        lock_group(&seen),
        Some(GroupName::default_group()),
        "where the lock is"
    );
    seen.lock.leases = Some(vec![]);
    assert_eq!(lock_group(&seen), Some(GroupName::control_plane_group()));
}

#[test]
fn a_node_that_was_moved_while_it_waited_asks_for_no_slot_of_its_old_group() {
    let mut seen = waiting(vec![free(0)]);
    set(&mut seen, make_control_plane);
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(decision.actions, []);
    let own = RebootObserve::Locks {
        group: GroupName::control_plane_group(),
        slots: 1,
    };
    assert!(decision.observe.contains(&own), "{:?}", decision.observe);
}

#[test]
fn an_attempt_that_was_undone_without_blame_is_called_again() {
    let mut seen = waiting(vec![free(0)]);
    set(&mut seen, |node| node.waiting_label = false);
    set_record(&mut seen, |record| {
        record.lease = Some("dogwatch-default-0".into());
    });
    let decision = decide(&seen, &config(), now(5));
    let [RebootAction::PatchNode(patch)] = decision.actions.as_slice() else {
        panic!("{:?}", decision.actions);
    };
    assert_eq!(patch.waiting_label, Some(true));
}

#[test]
fn a_node_that_was_moved_while_it_drains_keeps_the_lock_that_its_record_names() {
    for phase in [
        RebootPhase::Draining,
        RebootPhase::Rebooting,
        RebootPhase::Returning,
    ] {
        let mut seen = seen(phase);
        set(&mut seen, make_control_plane);
        seen.lock.leases = None;
        let decision = decide(&seen, &config(), now(5));
        let there = RebootObserve::Locks {
            group: GroupName::default_group(),
            slots: 0,
        };
        assert!(
            decision.observe.contains(&there),
            "{phase:?}: {:?}",
            decision.observe
        );
    }
}

#[test]
fn a_node_that_was_moved_leaves_the_maximum_of_the_old_group_on_its_lease() {
    let lease = crate::lock::testkit::held_under_max(0, "n1", 10);
    for (is_moved, max) in [(true, 10), (false, 1)] {
        let mut seen = seen(RebootPhase::Draining);
        seen.lock.leases = Some(vec![lease.clone()]);
        set(&mut seen, |node| {
            if is_moved {
                make_control_plane(node);
            }
        });
        let decision = decide(&seen, &config(), now(5));
        let [RebootAction::Bid { record, .. }] = decision.actions.as_slice() else {
            panic!("it takes over what an older run holds: {decision:?}");
        };
        assert_eq!(record.max, max);
        assert_eq!(record.group, GroupName::default_group());
        assert_eq!(record.runs, [run(RUN)]);
    }
}

#[test]
fn the_group_is_read_from_the_leases_name() {
    let table = [
        ("dogwatch-default-0", Some("default")),
        ("dogwatch-eu-west-12", Some("eu-west")),
        ("dogwatch-remedy-n1", None),
        ("dogwatch-remedy-worker-0", None),
        ("dogwatch-remedy-0", None),
        ("dogwatch-default-", None),
        ("other-default-0", None),
        ("dogwatch-default-00", None),
        ("dogwatch-default-01", None),
        ("dogwatch-default-1000", None),
        ("dogwatch-default-999", Some("default")),
    ];
    for (name, group) in table {
        let group = group.map(|group| GroupName::new(group).unwrap());
        assert_eq!(group_of_lease(name), group, "{name}");
    }
}

#[test]
fn a_percentage_needs_the_groups_size_first_and_is_worked_out_from_the_count() {
    let config = RebootConfig {
        max_unavailable: UnavailabilityLimit::Percent(50),
        ..config()
    };
    let mut seen = waiting(vec![ours()]);
    seen.lock.leases = None;
    let sizeless = decide(&seen, &config, now(5));
    assert!(
        sizeless
            .observe
            .iter()
            .any(|look| matches!(look, RebootObserve::GroupSize { .. }))
    );
    assert!(
        !sizeless
            .observe
            .iter()
            .any(|look| matches!(look, RebootObserve::Locks { .. }))
    );
    seen.lock.leases = Some(vec![ours()]);
    seen.lock.group_size = Some(4);
    let sized = decide(&seen, &config, now(5));
    let two_slots = RebootObserve::Locks {
        group: GroupName::default_group(),
        slots: 2,
    };
    assert!(sized.observe.contains(&two_slots));
    for (members, goes) in [(4, true), (3, false)] {
        let count = UnavailableCount {
            members,
            ..over_budget()
        };
        seen.lock.count = Some(ObservedBudgetCount {
            count,
            taken: Duration::ZERO,
            arrived: Duration::ZERO,
        });
        let decision = decide(&seen, &config, now(5));
        let went = matches!(decision.actions.as_slice(), [RebootAction::PatchNode(_)]);
        assert_eq!(went, goes, "{members} members, one of them out");
    }
}

#[test]
fn a_lock_that_was_taken_for_a_deleted_node_of_our_name_is_given_up_before_anybody_breaks_it() {
    let mut seen = waiting(vec![ours()]);
    seen.lock.count = Some(ObservedBudgetCount {
        count: nobody_out(),
        taken: Duration::ZERO,
        arrived: Duration::ZERO,
    });
    set(&mut seen, |node| node.uid = "made-anew".into());
    let decision = decide(&seen, &config(), now(5));
    assert!(matches!(
        decision.actions.as_slice(),
        [RebootAction::Release {
            over_budget: false,
            ..
        }]
    ));
}

#[test]
fn a_slots_number_is_written_in_one_way_and_is_below_a_thousand() {
    for (text, number) in [
        ("0", Some(0)),
        ("10", Some(10)),
        ("999", Some(999)),
        ("1000", None),
        ("00", None),
        ("01", None),
        ("+1", None),
        ("-1", None),
        ("1a", None),
        ("", None),
        ("99999999999999999999", None),
    ] {
        assert_eq!(crate::lock::parse_slot_number(text), number, "{text}");
    }
}

#[test]
fn no_more_slots_are_looked_at_than_a_group_can_have() {
    let config = RebootConfig {
        max_unavailable: UnavailabilityLimit::Count(5_000),
        ..config()
    };
    let decision = decide(&waiting(vec![]), &config, now(5));
    let slots = decision.observe.iter().find_map(|look| {
        let RebootObserve::Locks { slots, .. } = look else {
            return None;
        };
        Some(*slots)
    });
    assert_eq!(slots, Some(1_000), "{decision:?}");
}
