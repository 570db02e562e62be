//! A backup that a deletion without an answer may still remove is not relied on. Serves S3.

use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::clear::ready;

#[test]
fn a_backup_that_a_deletion_may_still_remove_is_written_again_and_then_relied_on() {
    let mut it = ready();
    let host = Arc::clone(it.case.host.as_ref().unwrap());
    let there = Arc::clone(it.case.stored_backup.as_ref().unwrap());
    // As at the first decision of a process, which does not know what the last one has sent.
    it.known.doubtful_backup = Some(there.backup_version());
    let keep = RemediationAction::KeepBackup {
        host,
        backup: there.backup.clone(),
        over: Some(Arc::clone(&there)),
    };
    assert_eq!(it.decision().actions, vec![keep]);
    let mut written = (*there).clone();
    written.resource_version.push('1');
    let written = Some(Arc::new(written));
    it.case.stored_backup.clone_from(&written);
    it.known.fresh.as_mut().unwrap().stored_backup = written;
    assert!(matches!(
        it.decision().actions[..],
        [RemediationAction::Release(_)]
    ));
}

#[test]
fn a_backup_is_in_doubt_from_the_first_decision_and_after_its_deletion_was_decided() {
    let mut it = ready();
    let version = it.case.stored_backup.as_ref().unwrap().backup_version();
    let release = it.decision();
    let mut known = RemediationMemory::default();
    known.record_decision(&it.case, &release, Duration::from_secs(1));
    assert_eq!(known.doubtful_backup.as_ref(), Some(&version));
    // Another version, which this process has seen since.
    let mut newer = (**it.case.stored_backup.as_ref().unwrap()).clone();
    newer.resource_version.push('1');
    it.case.stored_backup = Some(Arc::new(newer.clone()));
    known.record_decision(&it.case, &release, Duration::from_secs(2));
    assert_eq!(known.doubtful_backup.as_ref(), Some(&version));
    let stored = Arc::new(newer.clone());
    let drop = release.with_action(RemediationAction::DropBackup { stored });
    known.record_decision(&it.case, &drop, Duration::from_secs(3));
    assert_eq!(known.doubtful_backup, Some(newer.backup_version()));
}
