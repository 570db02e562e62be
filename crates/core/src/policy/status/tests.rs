use super::*;
use crate::condition::ConditionStatus;
use crate::explain::testkit::{in_phase, node};
use crate::lock::RemediationHold;
use crate::name::GroupName;
use crate::selector::LabelSelector;

fn policy(name: &str, priority: i32, pool: &str) -> Policy {
    let selector = serde_json::json!({ "matchLabels": { "pool": pool } });
    Policy {
        selector: serde_json::from_value(selector).unwrap(),
        priority,
        ..Policy::without_rules(GroupName::new(name).unwrap())
    }
}

fn pooled(mut node: ObservedNode) -> ObservedNode {
    node.labels = [("pool".to_owned(), "a".to_owned())].into();
    node
}

fn waits(name: &str, since: i64, reason: &str) -> ObservedNode {
    pooled(in_phase(
        name,
        RebootPhase::Waiting,
        since,
        (reason, "because"),
    ))
}

fn draining(name: &str, since: i64) -> ObservedNode {
    pooled(in_phase(
        name,
        RebootPhase::Draining,
        since,
        ("Draining", "3 pods left"),
    ))
}

fn only(nodes: &[ObservedNode]) -> PolicyStatus {
    policy_statuses(&[policy("p", 0, "a")], nodes, &[]).remove(0)
}

fn condition<'a>(status: &'a PolicyStatus, kind: &str) -> (ConditionStatus, &'a str, &'a str) {
    let found = status.conditions.iter().find(|there| there.kind == kind);
    let found = found.unwrap();
    (found.status, found.reason.as_str(), found.message.as_str())
}

#[test]
fn it_tells_whom_it_rules_who_is_out_and_who_waits_the_longest_first() {
    let status = only(&[
        waits("late", 200, "LockHeldByOther"),
        waits("early", 100, "LockHeldByOther"),
        draining("n1", 300),
        pooled(node("idle")),
        node("elsewhere"),
    ]);
    assert_eq!((status.nodes, status.blocked), (4, 0));
    let waiting: Vec<&str> = status.waiting.iter().map(|w| w.node.as_str()).collect();
    assert_eq!(waiting, ["early", "late"]);
    assert_eq!(status.waiting[0].reason, "LockHeldByOther");
    assert_eq!(status.waiting[0].message, "because");
    assert_eq!(
        (status.out[0].node.as_str(), status.out[0].phase),
        ("n1", "draining")
    );
    assert_eq!(status.out[0].reason, "kernel 6.18");
    let progressing = condition(&status, "Progressing");
    assert_eq!(
        progressing,
        (
            ConditionStatus::True,
            "NodesOut",
            "1 of 4 nodes unavailable"
        )
    );
    assert_eq!(condition(&status, "Blocked").1, "InTurn");
}

#[test]
fn ready_is_ready_and_schedulable() {
    let cordoned = ObservedNode {
        unschedulable: true,
        ..pooled(node("b"))
    };
    let broken = ObservedNode {
        ready: false,
        ..pooled(node("c"))
    };
    let status = only(&[pooled(node("a")), cordoned, broken]);
    assert_eq!((status.nodes, status.ready), (3, 1));
}

#[test]
fn blocked_says_what_the_node_that_waits_longest_says() {
    let status = only(&[waits("b", 200, "Paused"), waits("a", 100, "OutsideWindow")]);
    assert_eq!(status.blocked, 2);
    let (is, reason, message) = condition(&status, "Blocked");
    assert_eq!((is, reason), (ConditionStatus::True, "OutsideWindow"));
    assert_eq!(message, "2 waiting, none may begin; a: because");
}

#[test]
fn a_pause_blocks_although_one_is_still_out_and_a_budget_only_when_nobody_is() {
    let table: [(&str, bool, ConditionStatus); 5] = [
        ("Paused", true, ConditionStatus::True),
        ("OverBudget", true, ConditionStatus::False),
        ("OverBudget", false, ConditionStatus::True),
        ("LockHeldByOther", false, ConditionStatus::False),
        ("GateShut", false, ConditionStatus::True),
    ];
    for (reason, someone_out, expected) in table {
        let mut nodes = vec![waits("a", 100, reason)];
        nodes.extend(someone_out.then(|| draining("n1", 50)));
        let status = only(&nodes);
        assert_eq!(
            condition(&status, "Blocked").0,
            expected,
            "{reason} {someone_out}"
        );
    }
}

#[test]
fn a_wait_for_a_window_a_pause_or_the_least_interval_is_not_stuck() {
    for reason in [
        "OutsideWindow",
        "WindowTooShort",
        "Paused",
        "RebootedTooRecently",
    ] {
        let status = only(&[waits("a", 100, reason)]);
        assert_eq!(status.stuck, None, "{reason}");
        assert_eq!(condition(&status, "Blocked").1, reason);
        // A node that cannot begin when the window opens is stuck already.
        let both = only(&[waits("a", 100, reason), waits("b", 200, "PolicyInvalid")]);
        assert_eq!(both.stuck.as_deref(), Some("PolicyInvalid"), "{reason}");
    }
    assert_eq!(only(&[]).stuck, None);
    let in_turn = only(&[waits("a", 100, "LockHeldByOther")]);
    assert_eq!(in_turn.stuck, None);
}

#[test]
fn one_that_may_go_in_its_turn_keeps_the_policy_from_being_blocked() {
    let status = only(&[
        waits("a", 100, "RebootedTooRecently"),
        waits("b", 200, "Bidding"),
    ]);
    assert_eq!(condition(&status, "Blocked").0, ConditionStatus::False);
    assert_eq!(status.blocked, 1);
}

#[test]
fn every_policy_that_lost_a_node_names_the_one_that_rules_it_and_an_example() {
    let policies = [
        policy("low", 0, "a"),
        policy("also-low", 0, "a"),
        policy("high", 9, "a"),
    ];
    let all = policy_statuses(&policies, &[pooled(node("n2")), pooled(node("n1"))], &[]);
    for loser in &all[..2] {
        let lost = PolicyConflict {
            winner: 2,
            nodes: 2,
            example: NodeName::new("n1").unwrap(),
        };
        assert_eq!(
            (loser.nodes, loser.conflicts.as_slice()),
            (0, [lost].as_slice())
        );
    }
    assert_eq!((all[2].nodes, all[2].conflicts.len()), (2, 0));
}

#[test]
fn what_cannot_be_understood_is_not_accepted_and_names_the_field() {
    let bad = Policy {
        problems: vec!["windows[0].timeZone: there is no Mars/Olympus".into()],
        ..policy("p", 0, "a")
    };
    let told = policy_statuses(&[bad], &[], &[]).remove(0);
    let (is, reason, message) = condition(&told, "Accepted");
    assert_eq!((is, reason), (ConditionStatus::False, "Invalid"));
    assert!(message.contains("windows[0].timeZone"), "{message}");
    assert_eq!(
        condition(&only(&[]), "Accepted"),
        (ConditionStatus::True, "Valid", "")
    );
}

#[test]
fn a_node_that_the_lock_api_took_out_is_out_and_waits_no_more() {
    let locked = ObservedNode {
        api_lock: true,
        ..waits("a", 1, "LockedThroughApi")
    };
    let status = only(&[locked]);
    assert_eq!((status.out[0].phase, status.waiting.len()), ("locked", 0));
}

fn remediated(name: &str, group: Option<&str>) -> HeldLockLease {
    HeldLockLease {
        lease: format!("dogwatch-remedy-{name}"),
        resource_version: "1".into(),
        slot: None,
        holder: HolderId::new("remedy").unwrap(),
        node: NodeName::new(name).ok(),
        max: None,
        remediation: Some(RemediationHold {
            group: group.map(|group| GroupName::new(group).unwrap()),
            control_plane: false,
            since: Timestamp::from_second(7).ok(),
        }),
    }
}

#[test]
fn a_node_whose_machine_is_remediated_is_out_once_whether_or_not_its_node_exists() {
    let policies = [policy("p", 0, "a"), policy("q", 0, "b")];
    let out = |nodes: &[ObservedNode], held: HeldLockLease| {
        let told = policy_statuses(&policies, nodes, &[held]);
        let names = |status: &PolicyStatus| {
            let out = status.out.iter();
            let told = out.map(|out| (out.node.to_string(), out.phase));
            told.collect::<Vec<_>>()
        };
        [names(&told[0]), names(&told[1])]
    };
    let n1 = || vec![("n1".to_owned(), "remediation")];
    let none = Vec::new;
    // Its Node exists, even in a planned reboot; its Node is deleted; its Node is new and has no
    // labels yet.
    assert_eq!(
        out(&[draining("n1", 5)], remediated("n1", Some("p"))),
        [n1(), none()]
    );
    assert_eq!(out(&[], remediated("n1", Some("p"))), [n1(), none()]);
    assert_eq!(
        out(&[node("n1")], remediated("n1", Some("p"))),
        [n1(), none()]
    );
    // A record of an older version, and a group that no policy has any more.
    assert_eq!(out(&[], remediated("n1", None)), [n1(), n1()]);
    assert_eq!(out(&[], remediated("n1", Some("gone"))), [n1(), n1()]);
    assert_eq!(
        out(&[], remediated("n1", Some("default"))),
        [none(), none()]
    );
}

#[test]
fn a_waiting_node_whose_coordinator_has_not_spoken_yet_is_told_by_its_record() {
    let mut silent = waits("a", 100, "x");
    silent.conditions.clear();
    assert_eq!(only(&[silent]).waiting[0].reason, "RebootPlanned");
}

#[test]
fn a_policy_that_selects_every_node_rules_every_node() {
    let all = Policy {
        selector: LabelSelector::default(),
        ..policy("all", 0, "a")
    };
    assert_eq!(
        policy_statuses(&[all], &[node("x"), node("y")], &[])[0].nodes,
        2
    );
}

/// The loop makes at most one pass a second; the test prints how long one took.
#[test]
#[allow(clippy::disallowed_methods, reason = "it is measured, not decided by")]
fn a_pass_over_5_000_nodes_and_20_policies_tells_each_of_them() {
    let nodes: Vec<ObservedNode> = (0..5_000)
        .map(|number| {
            let name = format!("n{number}");
            match number % 3 {
                0 => waits(&name, number, "LockHeldByOther"),
                1 => draining(&name, number),
                _ => pooled(node(&name)),
            }
        })
        .collect();
    let policies: Vec<Policy> = (0..20)
        .map(|number| policy(&format!("p{number}"), number, "a"))
        .collect();
    let began = std::time::Instant::now();
    let told = policy_statuses(&policies, &nodes, &[]);
    let took = began.elapsed();
    println!("5,000 nodes, 20 policies that all match: {took:?}");
    assert_eq!(told[19].nodes, 5_000);
    assert!(told.iter().take(19).all(|told| told.nodes == 0));
}
