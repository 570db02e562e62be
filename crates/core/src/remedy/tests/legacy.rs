//! What an older version kept on a host, where people may write too. Serves S2, S6, and that nothing which a
//! person may write on a host ends up on a Node.

use std::collections::BTreeMap;

use super::super::*;
use super::kit::*;
use crate::power::Host;
use crate::reboot::NodeSeen;

const OLD: &str = "dogwatch.dev/node-backup";

/// Of Node n-a, deleted by a remediation that is under way.
fn backup() -> Backup {
    let mut old = node("a");
    old.uid = "uid-old".into();
    let labels = [
        ("tier", "db"),
        ("node-role.kubernetes.io/control-plane", ""),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    old.labels = labels.into();
    Backup::of(&old, BTreeMap::new(), Vec::new())
}

fn carrying(mut host: Host, name: &str, value: &impl serde::Serialize) -> Host {
    let text = serde_json::to_string(value).unwrap();
    host.annotations.insert(name.into(), text);
    host
}

/// In the middle of the remediation of Machine a: its Node is gone, its key too, and it boots.
fn remediated(record: &Record) -> Host {
    let host = carrying(host("a"), OLD, &backup());
    carrying(host, "dogwatch.dev/remediation", record)
}

fn record() -> Record {
    let stamp = |step| Stamp {
        step,
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    Record {
        subject: "machine/machines/a".into(),
        uid: "uid-a".into(),
        node: Some("n-a".into()),
        node_uid: Some("uid-old".into()),
        boot_id: Some("old-boot".into()),
        attempt: 1,
        steps: [Step::Requested, Step::KeyAdded, Step::KeyRemoved]
            .map(stamp)
            .into(),
    }
}

fn leased(mut world: World, subject: &str) -> World {
    let lease = RemedyLease {
        subject: Some(subject.into()),
        resource_version: "1".into(),
    };
    world.leases.insert(node_name("a"), lease);
    world
}

fn decided(world: &World, subject: &str) -> Decision {
    let case = case_of(world, subject).unwrap();
    let (known, around) = (Known::default(), Around::default());
    decide(&case, &known, &around, &Config::default(), now(100))
}

fn is_removed(decision: &Decision) -> bool {
    let mut actions = decision.actions.iter();
    let kept = actions
        .clone()
        .any(|it| matches!(it, Action::KeepBackup { .. }));
    !kept && actions.any(|it| matches!(it, Action::RemoveOldBackup { .. }))
}

#[test]
fn what_an_older_version_kept_in_the_middle_of_a_remediation_is_taken_over_once_and_removed() {
    let subject = "machine/machines/a";
    let mut world = leased(world([machine("a")], [remediated(&record())], []), subject);
    let first = decided(&world, subject);
    let taken = first.actions.iter().find_map(|action| {
        let Action::KeepBackup { host, backup, .. } = action else {
            return None;
        };
        Some(stored(host, backup.clone()))
    });
    let taken = taken.unwrap();
    assert_eq!(taken.backup.labels, [("tier".into(), "db".into())].into());
    assert_eq!(
        (&*taken.backup.node, &*taken.backup.uid),
        ("n-a", "uid-old")
    );
    world = keeping(world, taken);
    assert!(is_removed(&decided(&world, subject)));
}

#[test]
fn what_nobody_but_a_person_shows_to_be_ours_is_removed_and_goes_on_no_node() {
    let subject = "machine/machines/a";
    let begun = |record: &Record| world([machine("a")], [remediated(record)], []);
    // Both annotations can be forged; the Lease cannot.
    assert!(is_removed(&decided(&begun(&record()), subject)));
    let of_another = leased(begun(&record()), "node/n-b");
    assert!(is_removed(&decided(&of_another, subject)));
    let of_another_node = Record {
        node_uid: Some("uid-b".into()),
        ..record()
    };
    let of_another_node = leased(begun(&of_another_node), subject);
    assert!(is_removed(&decided(&of_another_node, subject)));
    // The Node was not deleted.
    let there = NodeSeen {
        uid: "uid-old".into(),
        ..node("a")
    };
    let there = leased(
        world([machine("a")], [remediated(&record())], [there]),
        subject,
    );
    assert!(is_removed(&decided(&there, subject)));
}

#[test]
fn whoever_may_annotate_a_host_puts_nothing_on_any_node_by_it() {
    // H7: any host, any Node.
    let mut forged = backup();
    forged.node = "n-b".into();
    let mut record = record();
    record.node = Some("n-b".into());
    record.subject = "node/n-b".into();
    let host = carrying(host("a"), OLD, &forged);
    let host = carrying(host, "dogwatch.dev/remediation", &record);
    let victim = world([machine("b")], [host], [node("b")]);
    for world in [victim.clone(), leased(victim, "machine/machines/b")] {
        for case in cases(&world) {
            let (known, around) = (Known::default(), Around::default());
            let decision = decide(&case, &known, &around, &Config::default(), now(100));
            let mut actions = decision.actions.iter();
            let is_bad =
                |it: &Action| matches!(it, Action::Restore { .. } | Action::KeepBackup { .. });
            assert!(!actions.any(is_bad), "{}: {decision:?}", case.subject);
        }
    }
}
