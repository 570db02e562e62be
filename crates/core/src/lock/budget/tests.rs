//! Tables of counts and verdicts.

use super::super::testkit::{held, node};
use super::*;
use crate::name::GroupName;

fn row(name: &str) -> GroupMember {
    GroupMember {
        name: NodeName::new(name).unwrap(),
        ready: true,
        unschedulable: false,
        ignored: false,
        control_plane: false,
    }
}

fn slot(number: u32, name: &str) -> HeldLockLease {
    HeldLockLease {
        lease: format!("dogwatch-default-{number}"),
        resource_version: format!("rv-{name}"),
        slot: Some(number),
        holder: node(name),
        node: NodeName::new(name).ok(),
        max: Some(9),
        remediation: None,
    }
}

fn reads(nodes: Vec<GroupMember>, held: Vec<HeldLockLease>) -> BudgetReads {
    BudgetReads {
        lease: "dogwatch-default-0".into(),
        group: GroupName::default_group(),
        nodes,
        held,
    }
}

fn counted(nodes: Vec<GroupMember>, held: Vec<HeldLockLease>) -> UnavailableCount {
    count_unavailable(&reads(nodes, held), &node("me"))
}

fn names(count: &UnavailableCount) -> Vec<String> {
    count
        .unavailable
        .iter()
        .map(|out| format!("{}: {}", out.name, out.why))
        .collect()
}

#[test]
fn others_that_are_not_ready_or_unschedulable_or_hold_any_lease_are_out_each_once() {
    let nodes = vec![
        GroupMember {
            ready: false,
            unschedulable: true,
            ..row("me")
        },
        row("fine"),
        GroupMember {
            ready: false,
            ..row("a")
        },
        GroupMember {
            unschedulable: true,
            ..row("b")
        },
        row("c"),
        GroupMember {
            ready: false,
            unschedulable: true,
            ..row("d")
        },
        GroupMember {
            ready: false,
            ignored: true,
            ..row("e")
        },
        row("f"),
    ];
    let count = counted(
        nodes,
        vec![
            slot(0, "me"),
            slot(1, "c"),
            slot(2, "d"),
            remedy("f", false),
        ],
    );
    assert_eq!(
        names(&count),
        [
            "a: not ready",
            "b: unschedulable",
            "c: holds dogwatch-default-1",
            "d: not ready, unschedulable, holds dogwatch-default-2",
            "f: holds dogwatch-remedy-f",
        ]
    );
    assert_eq!(count.members, 7, "the ignored one is no member");
    assert_eq!(count.for_resource_version, "rv-me");
}

#[test]
fn whoever_holds_a_slot_of_the_group_counts_though_it_is_no_member() {
    let host = HeldLockLease {
        holder: HolderId::new("api/host-7").unwrap(),
        node: None,
        ..slot(1, "unused")
    };
    let elsewhere = HeldLockLease {
        slot: None,
        ..slot(7, "foreign")
    };
    let count = counted(
        vec![row("me")],
        vec![slot(0, "me"), host, slot(2, "moved"), elsewhere],
    );
    assert_eq!(
        names(&count),
        [
            "api/host-7: holds dogwatch-default-1",
            "moved: holds dogwatch-default-2"
        ]
    );
}

#[test]
fn an_ignored_node_does_not_count_even_while_it_holds() {
    let nodes = vec![
        row("me"),
        GroupMember {
            ignored: true,
            ..row("a")
        },
    ];
    assert_eq!(
        names(&counted(nodes, vec![slot(0, "me"), slot(1, "a")])),
        [""; 0]
    );
}

#[test]
fn a_hashed_holder_without_a_record_is_still_the_member_it_is() {
    let long = format!("n{}", "x".repeat(200));
    let unread = HeldLockLease {
        node: None,
        max: None,
        ..slot(1, &long)
    };
    let count = counted(vec![row("me"), row(&long)], vec![slot(0, "me"), unread]);
    assert_eq!(names(&count), [format!("{long}: holds dogwatch-default-1")]);
    assert_eq!(count.maxima, [1], "and its maximum is the safest");
}

/// This bidder's Lease, as won at second 0.
fn won(slot: u32) -> ObservedLease {
    ObservedLease {
        resource_version: "rv-me".into(),
        ..held(slot, "me", &[])
    }
}

fn judged(max: u32, count: &UnavailableCount, second: u64) -> BudgetVerdict {
    decide_budget(
        GroupBudget { max },
        count,
        &won(0),
        Duration::from_secs(second),
    )
}

#[test]
fn a_count_for_another_win_proves_nothing() {
    let mine = counted(vec![row("me")], vec![slot(0, "me")]);
    assert_eq!(judged(1, &mine, 0), BudgetVerdict::Go);
    let later = ObservedLease {
        resource_version: "later".into(),
        ..won(0)
    };
    assert_eq!(
        decide_budget(GroupBudget { max: 1 }, &mine, &later, Duration::ZERO),
        BudgetVerdict::StaleCount
    );
    let lost = counted(vec![row("me")], vec![slot(0, "other")]);
    assert_eq!(judged(9, &lost, 0), BudgetVerdict::StaleCount);
    let other_slot = counted(vec![row("me")], vec![slot(1, "me")]);
    assert_eq!(judged(9, &other_slot, 0), BudgetVerdict::StaleCount);
}

#[test]
fn the_smallest_maximum_among_bidder_and_holders_rules() {
    let nodes = || vec![row("me"), row("a"), row("b")];
    let held = |max| {
        vec![
            slot(0, "me"),
            HeldLockLease {
                max: Some(max),
                ..slot(1, "a")
            },
        ]
    };
    let cordoned = |mut nodes: Vec<GroupMember>| {
        nodes[1].unschedulable = true;
        nodes
    };
    for (mine, theirs, goes) in [(2, 2, true), (1, 2, false), (2, 1, false), (2, 0, false)] {
        let count = counted(cordoned(nodes()), held(theirs));
        let verdict = judged(mine, &count, 0);
        assert_eq!(
            verdict == BudgetVerdict::Go,
            goes,
            "{mine} {theirs}: {verdict:?}"
        );
    }
}

#[test]
fn over_budget_the_highest_slot_that_has_not_cordoned_gives_back() {
    let nodes = || vec![row("me"), row("a"), row("b")];
    let of = |nodes, held| judged(1, &counted(nodes, held), 0);
    let waits = of(nodes(), vec![slot(0, "me"), slot(1, "a")]);
    assert!(
        matches!(waits, BudgetVerdict::WaitForHigherSlot { .. }),
        "{waits:?}"
    );
    let mut decided = nodes();
    decided[1].unschedulable = true;
    let gives_back = of(decided, vec![slot(0, "me"), slot(1, "a")]);
    assert_eq!(
        gives_back,
        BudgetVerdict::YieldOverBudget {
            why: "1 nodes of the group are unavailable and at most 1 may be: a (unschedulable, holds dogwatch-default-1)".into()
        }
    );
    let own = BudgetReads {
        lease: "dogwatch-default-2".into(),
        ..reads(nodes(), vec![slot(2, "me"), slot(1, "a")])
    };
    let highest = judged(1, &count_unavailable(&own, &node("me")), 0);
    assert!(
        matches!(highest, BudgetVerdict::YieldOverBudget { .. }),
        "{highest:?}"
    );
}

#[test]
fn nobody_waits_for_a_higher_slot_for_ever() {
    let held = vec![slot(0, "me"), slot(1, "a")];
    let count = counted(vec![row("me"), row("a")], held);
    let patience = WAIT_FOR_HIGHER_SLOT.as_secs();
    let early = judged(1, &count, patience - 1);
    assert!(
        matches!(early, BudgetVerdict::WaitForHigherSlot { .. }),
        "{early:?}"
    );
    let late = judged(1, &count, patience);
    assert!(
        matches!(late, BudgetVerdict::YieldOverBudget { .. }),
        "{late:?}"
    );
}

#[test]
fn a_long_list_is_cut_in_the_message() {
    let why = |number_out: u32| {
        let nodes = (0..number_out).map(|n| GroupMember {
            ready: false,
            ..row(&format!("n{n}"))
        });
        let count = counted(nodes.collect(), vec![slot(0, "me")]);
        let BudgetVerdict::YieldOverBudget { why } = judged(3, &count, 0) else {
            panic!("{number_out} are out")
        };
        why
    };
    let nine = why(9);
    assert!(nine.starts_with(
        "9 nodes of the group are unavailable and at most 3 may be: n0 (not ready), "
    ));
    assert!(nine.ends_with("and 4 more"), "{nine}");
    let five = why(5);
    assert!(five.ends_with(", n4 (not ready)"), "{five}");
}

#[test]
fn a_host_of_the_lock_api_is_not_out_on_its_own_account() {
    let me = HolderId::new("api/me").unwrap();
    let own = HeldLockLease {
        holder: me.clone(),
        ..slot(0, "me")
    };
    let nodes = || {
        vec![GroupMember {
            ready: false,
            unschedulable: true,
            ..row("me")
        }]
    };
    let reads = reads(nodes(), vec![own, slot(1, "me")]);
    let node = NodeName::new("me").unwrap();
    assert_eq!(
        names(&count_unavailable_for_node(&reads, &me, Some(&node))),
        [] as [&str; 0]
    );
    assert_eq!(
        count_unavailable_for_node(&reads, &me, Some(&node)).maxima,
        [0_u32; 0]
    );
    let elsewhere = count_unavailable_for_node(&reads, &me, None);
    assert_eq!(
        names(&elsewhere),
        ["me: not ready, unschedulable, holds dogwatch-default-1"],
        "a host that is no Node is not the Node of its name"
    );
}

fn remedy(name: &str, control_plane: bool) -> HeldLockLease {
    HeldLockLease {
        lease: format!("dogwatch-remedy-{name}"),
        slot: None,
        holder: HolderId::new("remedy").unwrap(),
        max: None,
        remediation: Some(RemediationHold {
            group: Some(GroupName::default_group()),
            control_plane,
            since: None,
        }),
        ..slot(0, name)
    }
}

#[test]
fn no_control_plane_node_goes_beside_the_remediation_of_another_one() {
    let member = |name: &str, control_plane| GroupMember {
        control_plane,
        ..row(name)
    };
    let ignored = |name: &str| GroupMember {
        ignored: true,
        ..member(name, true)
    };
    let table = [
        (
            "a member",
            vec![member("me", true), member("a", true)],
            remedy("a", true),
            false,
        ),
        (
            "of another group",
            vec![member("me", true)],
            remedy("a", true),
            false,
        ),
        (
            "ignored",
            vec![member("me", true), ignored("a")],
            remedy("a", true),
            false,
        ),
        (
            "a worker's",
            vec![member("me", true), member("a", false)],
            remedy("a", false),
            true,
        ),
        (
            "beside a worker",
            vec![member("me", false), member("a", true)],
            remedy("a", true),
            true,
        ),
        (
            "our own",
            vec![member("me", true)],
            remedy("me", true),
            true,
        ),
    ];
    for (what, nodes, fenced, goes) in table {
        let count = counted(nodes, vec![slot(0, "me"), fenced]);
        let verdict = judged(3, &count, 0);
        assert_eq!(verdict == BudgetVerdict::Go, goes, "{what}: {verdict:?}");
        let expected: &[&str] = if what == "our own" {
            &[]
        } else {
            &["a: holds dogwatch-remedy-a"]
        };
        assert_eq!(names(&count), expected, "{what}: each once");
    }
}

/// The remediation of n1, whose Node is deleted and whose machine boots.
fn deleted(group: Option<&str>) -> HeldLockLease {
    let mut held = remedy("n1", false);
    let group = group.map(|group| GroupName::new(group).unwrap());
    held.remediation.as_mut().unwrap().group = group;
    held
}

#[test]
fn a_machine_that_is_remediated_is_out_of_its_group_also_while_its_node_is_deleted() {
    let table = [
        ("its group", deleted(Some("default")), false),
        ("another group", deleted(Some("other")), true),
        ("a record of an older version", deleted(None), false),
    ];
    for (what, held, goes) in table {
        let count = counted(vec![row("me"), row("n3")], vec![slot(0, "me"), held]);
        let verdict = judged(1, &count, 0);
        assert_eq!(verdict == BudgetVerdict::Go, goes, "{what}: {verdict:?}");
        let expected: &[&str] = if goes {
            &[]
        } else {
            &["n1: holds dogwatch-remedy-n1"]
        };
        assert_eq!(names(&count), expected, "{what}");
        assert_eq!(
            count.maxima, [0_u32; 0],
            "it says nothing of how many may be out"
        );
    }
}

#[test]
fn a_remediation_whose_node_has_registered_again_counts_once_in_its_old_group_and_in_its_new() {
    let held = || deleted(Some("other"));
    let back = counted(vec![row("me"), row("n1")], vec![slot(0, "me"), held()]);
    assert_eq!(names(&back), ["n1: holds dogwatch-remedy-n1"]);
    let group = GroupName::new("other").unwrap();
    let reads = BudgetReads {
        group,
        ..reads(vec![row("me")], vec![slot(0, "me"), held()])
    };
    assert_eq!(
        names(&count_unavailable(&reads, &node("me"))),
        ["n1: holds dogwatch-remedy-n1"]
    );
}

#[test]
fn the_slot_that_a_remediated_node_held_may_be_broken_and_it_is_out_all_the_same() {
    let both = vec![slot(0, "me"), slot(1, "n1"), deleted(Some("default"))];
    let count = counted(vec![row("me")], both);
    assert_eq!(
        names(&count),
        ["n1: holds dogwatch-default-1, holds dogwatch-remedy-n1"]
    );
    let broken = counted(
        vec![row("me")],
        vec![slot(0, "me"), deleted(Some("default"))],
    );
    assert!(matches!(
        judged(1, &broken, 0),
        BudgetVerdict::YieldOverBudget { .. }
    ));
}

#[test]
fn a_remediation_of_a_group_that_no_policy_makes_any_more_counts_in_every_group() {
    let policy = |name: &str| Policy::without_rules(GroupName::new(name).unwrap());
    let read = |policies: &[Policy]| {
        let held = deleted(Some("other")).without_vanished_group(policies);
        let count = counted(vec![row("me")], vec![slot(0, "me"), held]);
        judged(1, &count, 0) == BudgetVerdict::Go
    };
    assert!(read(&[policy("other")]));
    assert!(!read(&[policy("renamed")]));
    let default = deleted(Some("default")).without_vanished_group(&[]);
    assert_eq!(default, deleted(Some("default")), "it needs no policy");
}

#[test]
fn a_remediation_without_a_readable_node_is_named_by_its_lease() {
    let unread = HeldLockLease {
        node: None,
        ..deleted(None)
    };
    let count = counted(vec![row("me")], vec![slot(0, "me"), unread]);
    assert_eq!(
        names(&count),
        ["dogwatch-remedy-n1: holds dogwatch-remedy-n1"]
    );
}
