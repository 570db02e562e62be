//! Tables: which remediation or reboot gives way, and which nodes get markers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::Now;
use crate::explain::testkit::{in_phase, now, record};
use crate::lock::{HeldLockLease, HolderId, RemediationHold};
use crate::name::NodeName;
use crate::policy::ClusterPolicies;
use crate::reboot::{
    ObservedNode, ParsedAnnotation, RebootConfig, RebootPhase, RebootRecord, WatchedReboots,
};

fn name(text: &str) -> NodeName {
    NodeName::new(text).unwrap()
}

fn held(lease: &str, slot: Option<u32>, holder: &str, node: Option<&str>) -> HeldLockLease {
    HeldLockLease {
        lease: lease.into(),
        resource_version: "1".into(),
        slot,
        holder: HolderId::new(holder).unwrap(),
        node: node.map(name),
        max: None,
        remediation: None,
    }
}

#[test]
fn a_control_plane_node_is_not_fenced_while_another_one_is_out_on_our_account() {
    let members = BTreeSet::from([name("cp1"), name("cp2")]);
    let remedy = |node: &str, control_plane| HeldLockLease {
        remediation: Some(RemediationHold {
            group: None,
            control_plane,
            since: None,
        }),
        ..held(
            &format!("dogwatch-remedy-{node}"),
            None,
            "remedy",
            Some(node),
        )
    };
    let table = [
        (
            held("dogwatch-control-plane-0", Some(0), "node/cp2", Some("cp2")),
            true,
        ),
        (
            held("dogwatch-control-plane-0", Some(0), "node/cp1", Some("cp1")),
            false,
        ),
        (
            held("dogwatch-control-plane-0", Some(0), "api/host", None),
            true,
        ),
        // A policy whose selector names the role creates a group of another name.
        (
            held("dogwatch-masters-1", None, "node/cp2", Some("cp2")),
            true,
        ),
        (held("dogwatch-masters-1", None, "node/cp2", None), true),
        (
            held("dogwatch-default-0", None, "node/w1", Some("w1")),
            false,
        ),
        (held("dogwatch-default-0", None, "api/host", None), false),
        (remedy("cp2", true), true),
        (remedy("cp1", true), false),
        (remedy("w1", false), false),
        // Its label has been removed since.
        (remedy("cp3", true), true),
    ];
    for (lease, taken) in table {
        let held = [lease];
        let by = find_control_plane_conflict(&held, &members, &name("cp1"));
        assert_eq!(by.is_some(), taken, "{held:?}: {by:?}");
    }
}

/// A node in phase `rebooting` at this attempt, Ready or not.
fn node(text: &str, phase: RebootPhase, ready: bool) -> Arc<ObservedNode> {
    let mut node = in_phase(text, phase, 0, ("AtWork", ""));
    node.ready = ready;
    Arc::new(node)
}

fn flags() -> RebootConfig {
    RebootConfig::default()
}

/// `rebootTimeout`, in seconds.
const LONG: i64 = 30 * 60;

fn wanted_at(nodes: &[Arc<ObservedNode>], seen: i64, at: i64) -> BTreeMap<NodeName, RebootingNode> {
    let mut watched = WatchedReboots::default();
    // Nodes were observed before, so a new attempt begins when it is first seen.
    watched.observe_nodes([], now(0));
    watched.observe_nodes(nodes.iter().map(AsRef::as_ref), now(seen));
    let nodes: BTreeMap<NodeName, Arc<ObservedNode>> = nodes
        .iter()
        .map(|node| (node.name.clone(), Arc::clone(node)))
        .collect();
    let none = ClusterPolicies::Known(Vec::new());
    wanted_markers(&nodes, &watched, &none, &flags(), now(at))
}

#[test]
fn others_are_told_from_the_command_until_the_node_is_ready_and_no_longer_than_the_timeout() {
    let table = [
        (RebootPhase::Waiting, false, 0, false),
        (RebootPhase::Draining, false, 0, false),
        (RebootPhase::Rebooting, true, 0, true),
        (RebootPhase::Rebooting, false, LONG, true),
        (RebootPhase::Rebooting, false, LONG + 29, true),
        (RebootPhase::Rebooting, false, LONG + 30, false),
        (RebootPhase::Returning, false, 5, true),
        (RebootPhase::Returning, false, LONG + 30, false),
        (RebootPhase::Returning, true, 5, false),
    ];
    for (phase, ready, at, told) in table {
        let wanted = wanted_at(&[node("n1", phase, ready)], 0, at);
        assert_eq!(!wanted.is_empty(), told, "{phase:?} {ready} {at}");
    }
    let again = RebootRecord {
        attempts: 2,
        ..record(RebootPhase::Rebooting, 0)
    };
    let mut second = ObservedNode::clone(&node("n1", RebootPhase::Rebooting, false));
    second.record = ParsedAnnotation::Is(again);
    let wanted = wanted_at(&[Arc::new(second)], LONG, LONG + 31);
    assert_eq!(
        wanted[&name("n1")].until,
        Duration::from_secs(2 * 30 * 60 + 30)
    );
}

#[test]
fn others_are_told_for_as_long_as_the_coordinator_waits() {
    for phase in [RebootPhase::Rebooting, RebootPhase::Returning] {
        let mut slow = ObservedNode::clone(&node("n1", phase, false));
        let mut two_hours = record(phase, 0);
        two_hours.limits.reboot_timeout_seconds = Some(7_200);
        slow.record = ParsedAnnotation::Is(two_hours);
        let nodes = [Arc::new(slow)];
        assert!(!wanted_at(&nodes, 0, 7_229).is_empty(), "{phase:?}");
        assert!(wanted_at(&nodes, 0, 7_230).is_empty(), "{phase:?}");
    }
}

fn told(node: &str) -> BTreeMap<NodeName, RebootingNode> {
    let rebooting = RebootingNode {
        uid: format!("uid-{node}"),
        until: Duration::from_secs(100),
    };
    BTreeMap::from([(name(node), rebooting)])
}

fn machine(text: &str, node: &str, skip: Option<&str>) -> MachineMarker {
    MachineMarker {
        namespace: "ns".into(),
        name: text.into(),
        uid: format!("uid-{text}"),
        resource_version: "1".into(),
        node: Some(node.into()),
        node_uid: None,
        skip: skip.map(str::to_owned),
    }
}

fn words(actions: &[MarkerAction]) -> Vec<String> {
    let word = |action: &MarkerAction| match action {
        MarkerAction::MarkMachine(machine) => format!("mark {}", machine.name),
        MarkerAction::UnmarkMachine(machine) => format!("unmark {}", machine.name),
        MarkerAction::TakeLease { node, lease, .. } => {
            let what = if lease.is_some() { "take" } else { "make" };
            format!("{what} {node}")
        }
        MarkerAction::DeleteLease(lease) => format!("delete {}", lease.name),
    };
    actions.iter().map(word).collect()
}

#[test]
fn a_machine_carries_our_mark_while_its_node_reboots_and_nobody_elses_is_touched() {
    let with_uid = |uid: &str, skip| MachineMarker {
        node_uid: Some(uid.into()),
        ..machine("m", "n1", skip)
    };
    let table: [(&str, Vec<MachineMarker>, &[&str]); 10] = [
        ("to be marked", vec![machine("m", "n1", None)], &["mark m"]),
        (
            "is marked",
            vec![machine("m", "n1", Some(MARKER_VALUE))],
            &[],
        ),
        ("by somebody else", vec![machine("m", "n1", Some(""))], &[]),
        ("of another node", vec![machine("m", "n2", None)], &[]),
        (
            "left over",
            vec![machine("m", "n2", Some(MARKER_VALUE))],
            &["unmark m"],
        ),
        (
            "somebody else's stays",
            vec![machine("m", "n2", Some("true"))],
            &[],
        ),
        ("the very Node", vec![with_uid("uid-n1", None)], &["mark m"]),
        (
            "another Node of that name",
            vec![with_uid("other", None)],
            &[],
        ),
        (
            "no more",
            vec![with_uid("other", Some(MARKER_VALUE))],
            &["unmark m"],
        ),
        (
            "two of one name: one is another cluster's",
            vec![machine("m", "n1", None), machine("k", "n1", None)],
            &[],
        ),
    ];
    for (what, machines, expected) in table {
        let actions = decide(&told("n1"), &machines, None, now(0));
        assert_eq!(words(&actions), expected, "{what}");
    }
}

fn lease(node: &str, holder: Option<&str>, ends: Option<i64>) -> MaintenanceLease {
    MaintenanceLease {
        name: format!("node-{node}"),
        uid: "u".into(),
        resource_version: "1".into(),
        holder: holder.map(str::to_owned),
        ends: ends.map(|second| now(second).wall),
        transitions: 0,
    }
}

#[test]
fn medik8s_lease_is_taken_only_when_it_is_nobodys_and_given_back_only_when_it_is_ours() {
    let other = Some("node-healthcheck");
    let table: [(&str, Vec<MaintenanceLease>, &[&str]); 12] = [
        ("there is none", vec![], &["make n1"]),
        ("another's", vec![lease("n1", other, Some(50))], &[]),
        (
            "nobody's, but valid",
            vec![lease("n1", None, Some(50))],
            &[],
        ),
        (
            "another's, over",
            vec![lease("n1", other, Some(9))],
            &["take n1"],
        ),
        (
            "without times",
            vec![lease("n1", other, None)],
            &["take n1"],
        ),
        (
            "ours",
            vec![lease("n1", Some(MARKER_VALUE), Some(100))],
            &[],
        ),
        (
            "ours, longer",
            vec![lease("n1", Some(MARKER_VALUE), Some(900))],
            &[],
        ),
        (
            "ours, nearly",
            vec![lease("n1", Some(MARKER_VALUE), Some(90))],
            &[],
        ),
        (
            "ours, too short",
            vec![lease("n1", Some(MARKER_VALUE), Some(89))],
            &["take n1"],
        ),
        (
            "ours, without times",
            vec![lease("n1", Some(MARKER_VALUE), None)],
            &["take n1"],
        ),
        (
            "left over",
            vec![
                lease("n1", Some(MARKER_VALUE), Some(100)),
                lease("n2", Some(MARKER_VALUE), Some(5)),
            ],
            &["delete node-n2"],
        ),
        (
            "another's left over",
            vec![
                lease("n1", Some(MARKER_VALUE), Some(100)),
                lease("n2", other, Some(5)),
            ],
            &[],
        ),
    ];
    for (what, leases, expected) in table {
        let actions = decide(&told("n1"), &[], Some(&leases), now(10));
        assert_eq!(words(&actions), expected, "{what}");
    }
    assert_eq!(decide(&told("n1"), &[], None, now(10)), []);
}

#[test]
fn once_nothing_reboots_exactly_our_marks_are_taken_off() {
    let machines = [
        machine("m", "n1", Some(MARKER_VALUE)),
        machine("k", "n2", Some("x")),
    ];
    let leases = [
        lease("n1", Some(MARKER_VALUE), Some(100)),
        lease("n2", Some("x"), None),
    ];
    let actions = decide(&BTreeMap::new(), &machines, Some(&leases), now(10));
    assert_eq!(words(&actions), ["unmark m", "delete node-n1"]);
}

#[test]
fn a_lease_ends_when_the_time_of_the_reboot_does() {
    let actions = decide(&told("n1"), &[], Some(&[]), at(7, 1000));
    let [MarkerAction::TakeLease { ends, node_uid, .. }] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    let expected = Timestamp::from_second(1000 + 93).unwrap();
    assert_eq!((*ends, node_uid.as_str()), (expected, "uid-n1"));
}

fn at(mono: u64, wall: i64) -> Now {
    Now {
        wall: Timestamp::from_second(wall).unwrap(),
        mono: Duration::from_secs(mono),
    }
}
