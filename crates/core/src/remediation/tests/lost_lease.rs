//! A Lease that is lost while its node is out is taken again. Serves S1.

use super::super::*;
use super::clear::{Ready, ready};
use super::kit::*;
use crate::power::CurrentPower;

fn takes_lease(action: &RemediationAction) -> bool {
    let rule = LeaseConflictRule::Continue;
    matches!(action, RemediationAction::TakeLease { on_conflict, .. } if *on_conflict == rule)
}

/// The key is on the host, the Lease is lost, and the power cannot be read.
fn held_off() -> Ready {
    let mut it = ready();
    it.case.held_lease = None;
    *it.power() = unproved_power(CurrentPower::Unknown);
    it
}

#[test]
fn a_lost_lease_is_taken_again_before_the_node_is_released() {
    let mut it = ready();
    assert!(!it.decision().actions.iter().any(takes_lease));
    it.case.held_lease = None;
    let actions = it.decision().actions;
    let [first, RemediationAction::Release(_)] = &actions[..] else {
        panic!("{actions:?}");
    };
    assert!(takes_lease(first));
}

#[test]
fn while_nothing_else_is_to_be_done_a_lost_lease_is_taken_again() {
    let actions = held_off().decision().actions;
    assert!(
        matches!(&actions[..], [action] if takes_lease(action)),
        "{actions:?}"
    );
    // No Lease counts the Node there, and of a cluster that cannot be read nothing is known.
    let mut it = held_off();
    it.case.cluster.has_dogwatch = false;
    assert_eq!(it.decision().actions, []);
    let mut it = held_off();
    it.case.cluster.problem = Some((RemediationReason::TakenUp, "not read yet".into()));
    assert_eq!(it.decision().actions, []);
}

#[test]
fn a_refused_lease_delays_neither_reads_nor_the_removal_of_the_key() {
    let mut it = ready();
    it.case.held_lease = None;
    it.known.fresh = None;
    let reads = it.decision();
    assert!(!reads.observe.is_empty());
    assert_eq!(reads.actions, []);
    it.case.needs_remediation = false;
    let actions = it.decision().actions;
    assert!(
        matches!(&actions[..], [RemediationAction::RemoveKey { .. }]),
        "{actions:?}"
    );
}

/// Two that a person has confirmed off would wait for each other for ever.
#[test]
fn a_control_plane_host_that_is_held_off_waits_for_no_other_one() {
    let mut it = ready();
    (it.case.control_plane, it.case.record) = (true, None);
    // Its Lease is not `alone`.
    let actions = it.decision().actions;
    assert!(
        matches!(&actions[..], [RemediationAction::WriteRecord { .. }]),
        "{actions:?}"
    );
    it.case.held_lease = None;
    let actions = it.decision().actions;
    let [first, RemediationAction::WriteRecord { .. }] = &actions[..] else {
        panic!("{actions:?}");
    };
    assert!(takes_lease(first));
}

#[test]
fn the_labels_of_a_deleted_node_are_those_of_its_backup() {
    let labels = std::collections::BTreeMap::from([("pool".to_owned(), "db".to_owned())]);
    let mut it = ready();
    assert_eq!(
        it.case.node_labels(),
        it.case.node.as_ref().map(|it| &it.labels)
    );
    it.case.node = None;
    let mut kept = it.case.stored_backup.as_deref().unwrap().clone();
    kept.backup.labels.clone_from(&labels);
    for (node, cluster, wanted) in [
        ("n-a", None, Some(&labels)),
        ("n-b", None, None),
        ("n-a", Some("machines/other"), None),
    ] {
        kept.backup.node = node.into();
        kept.backup.cluster = cluster.map(str::to_owned);
        it.case.stored_backup = Some(std::sync::Arc::new(kept.clone()));
        assert_eq!(it.case.node_labels(), wanted, "{node} {cluster:?}");
    }
    it.case.stored_backup = None;
    assert_eq!(it.case.node_labels(), None);
}

#[test]
fn until_its_node_is_back_a_remediation_takes_a_lost_lease_again() {
    let key_removed = StepStamp {
        step: RemediationStep::KeyRemoved,
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    for (is_removed, is_taken) in [(true, true), (false, false)] {
        let mut it = held_off();
        it.case.host = Ok(std::sync::Arc::new(host("a")));
        it.case.needs_remediation = false;
        it.case.node = None;
        if is_removed {
            let record = it.case.record.as_mut().unwrap();
            record.push_step(key_removed.clone());
        }
        let actions = it.decision().actions;
        assert_eq!(actions.iter().any(takes_lease), is_taken, "{actions:?}");
    }
}
