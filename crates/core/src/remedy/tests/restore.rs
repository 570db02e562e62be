//! What comes back on a new Node, and what never does. Source: specification §4.1.

use std::collections::BTreeMap;

use super::super::*;
use super::kit::*;
use crate::reboot::{NodeSeen, Parsed, Phase};

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn taint(key: &str, value: &str, effect: &str) -> Taint {
    Taint {
        key: key.into(),
        value: value.into(),
        effect: effect.into(),
    }
}

fn labelled(pairs: &[(&str, &str)]) -> NodeSeen {
    NodeSeen {
        labels: texts(pairs),
        ..node("a")
    }
}

#[test]
fn what_dogwatch_wrote_the_need_and_taints_by_state_are_never_kept() {
    let labels = [("tier", "db"), ("dogwatch.dev/reboot", "waiting")];
    let annotations = texts(&[
        ("site", "x"),
        ("dogwatch.dev/fencing", "{}"),
        ("dogwatch.dev/reboot", "{}"),
        ("host.metal3.io/external-remediation", ""),
    ]);
    let taints = vec![
        taint("example.com/dedicated", "db", "NoSchedule"),
        taint("node.kubernetes.io/unreachable", "", "NoExecute"),
        taint(
            "node.kubernetes.io/out-of-service",
            "nodeshutdown",
            "NoExecute",
        ),
        taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),
        taint(
            "node.cloudprovider.kubernetes.io/shutdown",
            "",
            "NoSchedule",
        ),
        taint("dogwatch.dev/x", "", "NoSchedule"),
    ];
    let backup = Backup::of(&labelled(&labels), annotations, taints);
    assert_eq!(backup.labels, texts(&[("tier", "db")]));
    assert_eq!(backup.annotations, texts(&[("site", "x")]));
    let kept = [taint("example.com/dedicated", "db", "NoSchedule")];
    assert_eq!(backup.taints, kept);
    assert_eq!((&*backup.node, &*backup.uid), ("n-a", "uid-n-a"));
    assert!(!backup.cordoned);
}

#[test]
fn a_cordon_comes_back_unless_it_was_ours() {
    let cordoned = |ours: bool, api_lock: bool| {
        let mut node = node("a");
        node.unschedulable = true;
        node.api_lock = api_lock;
        if ours {
            node.record = Parsed::Is(reboot_record(Phase::Draining, 5));
        }
        Backup::of(&node, BTreeMap::new(), Vec::new()).cordoned
    };
    assert!(cordoned(false, false));
    assert!(!cordoned(true, false));
    assert!(!cordoned(false, true));
}

#[test]
fn what_is_on_the_new_node_already_wins() {
    let mut backup = Backup::of(
        &labelled(&[("tier", "db"), ("zone", "old")]),
        texts(&[("site", "x"), ("ip", "old")]),
        vec![
            taint("a", "old", "NoSchedule"),
            taint("a", "old", "NoExecute"),
        ],
    );
    backup.cordoned = true;
    let there = Backup::of(
        &labelled(&[("zone", "new")]),
        texts(&[("ip", "new")]),
        vec![taint("a", "new", "NoSchedule")],
    );
    let missing = backup.missing(&there);
    assert_eq!(missing.labels, texts(&[("tier", "db")]));
    assert_eq!(missing.annotations, texts(&[("site", "x")]));
    assert_eq!(missing.taints, [taint("a", "old", "NoExecute")]);
    assert!(missing.cordoned);
    assert!(backup.missing(&backup).is_empty());
}

#[test]
fn what_somebody_wrote_into_a_backup_that_may_not_be_in_one_does_not_come_back() {
    let forged = Backup {
        annotations: texts(&[("dogwatch.dev/reboot-requested", "{}")]),
        taints: vec![taint("node.kubernetes.io/out-of-service", "", "NoExecute")],
        ..Backup::default()
    };
    assert!(forged.missing(&Backup::default()).is_empty());
}

#[test]
fn a_backup_that_gets_too_large_leaves_out_the_longest_annotations_and_says_how_many() {
    let long = "x".repeat(60_000);
    let longer = "x".repeat(80_000);
    let annotations = texts(&[("long", &long), ("longer", &longer), ("site", "x")]);
    let backup = Backup::of(&labelled(&[("tier", "db")]), annotations, Vec::new());
    assert_eq!(
        backup.annotations.keys().collect::<Vec<_>>(),
        ["long", "site"]
    );
    assert_eq!(backup.labels.len(), 1);
    assert_eq!(backup.left_out, 1);
    let text = serde_json::to_string(&backup).unwrap();
    assert_eq!(serde_json::from_str::<Backup>(&text).unwrap(), backup);
}

/// A host that keeps something for Node n-a, and this Node now.
fn decided(kept: &Backup, node: Option<NodeSeen>, there: Option<&Backup>) -> Decision {
    let mut host = host("a");
    let text = serde_json::to_string(kept).unwrap();
    host.annotations
        .insert("dogwatch.dev/node-backup".into(), text);
    let world = world([machine("a")], [host], node);
    let case = case_of(&world, "host/machines/h-a").unwrap();
    let now = now(100);
    let beat = beat(case.node.as_ref(), 5);
    let fresh = there.map(|there| Fresh {
        backup: Some(there.clone()),
        ..fresh(&world, &case, &beat, now.mono)
    });
    let known = Known {
        fresh,
        ..Known::default()
    };
    decide(&case, &known, &Around::default(), &Config::default(), now)
}

fn kept(uid: &str) -> Backup {
    Backup {
        uid: uid.into(),
        ..Backup::of(&labelled(&[("tier", "db")]), BTreeMap::new(), Vec::new())
    }
}

#[test]
fn it_is_restored_as_soon_as_another_node_of_that_name_is_there_and_then_dropped() {
    let old = kept("uid-old");
    let waits = decided(&old, None, None);
    assert_eq!(waits.actions, vec![]);
    assert_eq!(waits.because.reason, reason::RESTORING);
    let looks = decided(&old, Some(node("a")), None);
    assert!(matches!(&looks.looks[..], [Look::Fresh { .. }]));
    let bare = Backup::of(&node("a"), BTreeMap::new(), Vec::new());
    let back = decided(&old, Some(node("a")), Some(&bare));
    let [Action::Restore { backup, .. }, Action::DropBackup { .. }] = &back.actions[..] else {
        panic!("{back:?}");
    };
    assert_eq!(backup.labels, texts(&[("tier", "db")]));
    let done = decided(&old, Some(node("a")), Some(&old));
    assert!(matches!(&done.actions[..], [Action::DropBackup { .. }]));
}

#[test]
fn what_was_kept_of_a_node_that_was_not_deleted_is_dropped() {
    let same = kept("uid-n-a");
    let dropped = decided(&same, Some(node("a")), None);
    assert!(matches!(&dropped.actions[..], [Action::DropBackup { .. }]));
}
