//! The backup that older versions kept on a host, where people may write too. Serves S2, S6, and
//! that nothing which a person may write on a host ends up on a Node.

use std::collections::BTreeMap;

use super::super::*;
use super::kit::*;
use crate::power::HostSnapshot;
use crate::reboot::ObservedNode;

const OLD: &str = "dogwatch.dev/node-backup";

/// The backup of Node n-a, deleted by a remediation that is under way.
fn backup() -> NodeBackup {
    let mut old = node("a");
    old.uid = "uid-old".into();
    let labels = [
        ("tier", "db"),
        ("node-role.kubernetes.io/control-plane", ""),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    old.labels = labels.into();
    NodeBackup::from_node(&old, BTreeMap::new(), Vec::new())
}

fn carrying(mut host: HostSnapshot, name: &str, value: &impl serde::Serialize) -> HostSnapshot {
    let text = serde_json::to_string(value).unwrap();
    host.annotations.insert(name.into(), text);
    host
}

/// The remediation of Machine a after the release: its Node and its key are gone, and it boots.
fn remediated(record: &RemediationRecord) -> HostSnapshot {
    let host = carrying(host("a"), OLD, &backup());
    carrying(host, "dogwatch.dev/remediation", record)
}

fn record() -> RemediationRecord {
    let stamp = |step| StepStamp {
        step,
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    RemediationRecord {
        subject: "machine/machines/a".into(),
        uid: "uid-a".into(),
        node: Some("n-a".into()),
        node_uid: Some("uid-old".into()),
        cluster: None,
        cluster_uid: None,
        boot_id: Some("old-boot".into()),
        attempt: 1,
        steps: [
            RemediationStep::Requested,
            RemediationStep::KeyAdded,
            RemediationStep::KeyRemoved,
        ]
        .map(stamp)
        .into(),
    }
}

fn leased(mut world: RemediationSnapshot, subject: &str) -> RemediationSnapshot {
    let lease = HeldRemediationLease {
        subject: Some(subject.into()),
        resource_version: "1".into(),
        ..HeldRemediationLease::default()
    };
    world.leases.insert(node_name("a"), lease);
    world
}

fn decided(world: &RemediationSnapshot, subject: &str) -> RemediationDecision {
    let case = case_of(world, subject).unwrap();
    let (known, around) = (
        RemediationMemory::default(),
        ConcurrentRemediations::default(),
    );
    decide(
        &case,
        &known,
        &around,
        &RemediationConfig::default(),
        now(100),
    )
}

fn is_removed(decision: &RemediationDecision) -> bool {
    let mut actions = decision.actions.iter();
    let kept = actions
        .clone()
        .any(|it| matches!(it, RemediationAction::KeepBackup { .. }));
    !kept && actions.any(|it| matches!(it, RemediationAction::RemoveOldBackup { .. }))
}

#[test]
fn what_an_older_version_kept_in_the_middle_of_a_remediation_is_taken_over_once_and_removed() {
    let subject = "machine/machines/a";
    let mut world = leased(world([machine("a")], [remediated(&record())], []), subject);
    let first = decided(&world, subject);
    let taken = first.actions.iter().find_map(|action| {
        let RemediationAction::KeepBackup { host, backup, .. } = action else {
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
    let begun = |record: &RemediationRecord| world([machine("a")], [remediated(record)], []);
    // Both annotations can be forged; the Lease cannot.
    assert!(is_removed(&decided(&begun(&record()), subject)));
    let of_another = leased(begun(&record()), "node/n-b");
    assert!(is_removed(&decided(&of_another, subject)));
    let of_another_node = RemediationRecord {
        node_uid: Some("uid-b".into()),
        cluster: None,
        cluster_uid: None,
        ..record()
    };
    let of_another_node = leased(begun(&of_another_node), subject);
    assert!(is_removed(&decided(&of_another_node, subject)));
    let of_another_name = RemediationRecord {
        node: Some("n-b".into()),
        ..record()
    };
    let of_another_name = leased(begun(&of_another_name), subject);
    assert!(is_removed(&decided(&of_another_name, subject)));
    // The Node was not deleted.
    let there = ObservedNode {
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
fn a_backup_of_another_node_than_the_remediations_is_removed() {
    let subject = "machine/machines/a";
    let record = RemediationRecord {
        node: Some("n-b".into()),
        ..record()
    };
    let of_b = NodeBackup {
        node: "n-b".into(),
        ..backup()
    };
    let host = carrying(remediated(&record), OLD, &of_b);
    let world = leased(world([machine("a")], [host], []), subject);
    assert!(is_removed(&decided(&world, subject)));
}

#[test]
fn whoever_may_annotate_a_host_puts_nothing_on_any_node_by_it() {
    // H7: any host could name any Node.
    let mut forged = backup();
    forged.node = "n-b".into();
    let mut record = record();
    record.node = Some("n-b".into());
    record.subject = "node/n-b".into();
    let host = carrying(host("a"), OLD, &forged);
    let host = carrying(host, "dogwatch.dev/remediation", &record);
    let victim = world([machine("b")], [host], [node("b")]);
    for world in [victim.clone(), leased(victim, "machine/machines/b")] {
        for case in discover_remediations(&world) {
            let (known, around) = (
                RemediationMemory::default(),
                ConcurrentRemediations::default(),
            );
            let decision = decide(
                &case,
                &known,
                &around,
                &RemediationConfig::default(),
                now(100),
            );
            let mut actions = decision.actions.iter();
            let is_bad = |it: &RemediationAction| {
                matches!(
                    it,
                    RemediationAction::Restore { .. } | RemediationAction::KeepBackup { .. }
                )
            };
            assert!(!actions.any(is_bad), "{}: {decision:?}", case.subject);
        }
    }
}
