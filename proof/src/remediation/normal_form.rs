//! Makes states that differ in nothing that matters equal: resourceVersions are renumbered, and the
//! steps of a record are new or old.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dogwatch_core::remediation::{RemediationAction, RemediationRecord, record_on_host};

use super::objects::{ClusterObjects, RECORD};
use super::process::state_wall;
use super::world::RemediationWorld;

/// Every step of a record is older than every pause after a tick.
const OLD_STEP: jiff::SignedDuration = jiff::SignedDuration::from_hours(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VersionedKind {
    Machine,
    Host,
    Node,
    Backup,
}

pub fn renumber_versions(world: &mut RemediationWorld<'_>) {
    for kind in [
        VersionedKind::Machine,
        VersionedKind::Host,
        VersionedKind::Node,
        VersionedKind::Backup,
    ] {
        let mut known = BTreeSet::new();
        visit_world(world, kind, &mut |version| {
            known.insert(number_of(version));
        });
        let pairs = || known.iter().zip(1_u64..);
        if pairs().all(|(old, new)| *old == new) {
            continue;
        }
        let numbers: BTreeMap<u64, String> =
            pairs().map(|(old, new)| (*old, new.to_string())).collect();
        visit_world(world, kind, &mut |version| {
            version.clone_from(&numbers[&number_of(version)]);
        });
    }
}

pub fn number_of(version: &str) -> u64 {
    version.parse().expect("the model's versions are numbers")
}

fn visit_world(
    world: &mut RemediationWorld<'_>,
    kind: VersionedKind,
    visit: &mut dyn FnMut(&mut String),
) {
    visit_objects(&mut world.stored, kind, visit);
    let process = Arc::make_mut(&mut world.process);
    visit_objects(&mut process.seen, kind, visit);
    for memory in process.memories.values_mut() {
        if let (VersionedKind::Backup, Some(doubtful)) = (kind, &mut memory.doubtful_backup) {
            visit(&mut doubtful.resource_version);
        }
        let Some(fresh) = &mut memory.fresh else {
            continue;
        };
        if let (VersionedKind::Host, Some(host)) = (kind, &mut fresh.host) {
            visit(&mut Arc::make_mut(host).resource_version);
        }
        if let (VersionedKind::Node, Some(node)) = (kind, &mut fresh.node) {
            visit(&mut Arc::make_mut(node).resource_version);
        }
        if let (VersionedKind::Backup, Some(stored)) = (kind, &mut fresh.stored_backup) {
            visit(&mut Arc::make_mut(stored).resource_version);
        }
    }
    for write in &mut world.late {
        visit_action(Arc::make_mut(write), kind, visit);
    }
}

fn visit_objects(
    objects: &mut ClusterObjects,
    kind: VersionedKind,
    visit: &mut dyn FnMut(&mut String),
) {
    match kind {
        VersionedKind::Machine => visit(&mut Arc::make_mut(&mut objects.machine).resource_version),
        VersionedKind::Host => visit(&mut Arc::make_mut(&mut objects.host).resource_version),
        VersionedKind::Node => {
            if let Some(node) = &mut objects.node {
                visit(&mut Arc::make_mut(node).resource_version);
            }
        }
        VersionedKind::Backup => {
            if let Some(backup) = &mut objects.backup {
                visit(&mut Arc::make_mut(backup).resource_version);
            }
        }
    }
}

fn visit_action(
    action: &mut RemediationAction,
    kind: VersionedKind,
    visit: &mut dyn FnMut(&mut String),
) {
    match action {
        RemediationAction::MarkNode { node, .. }
        | RemediationAction::UnmarkNode { node }
        | RemediationAction::RemoveNodeNeed { node }
        | RemediationAction::Restore { node, .. }
        | RemediationAction::Untaint { node, .. } => {
            if kind == VersionedKind::Node {
                visit(&mut Arc::make_mut(node).resource_version);
            }
        }
        RemediationAction::AddKey { host, .. }
        | RemediationAction::RemoveKey { host, .. }
        | RemediationAction::WriteRecord { host, .. }
        | RemediationAction::RemoveOldBackup { host } => {
            if kind == VersionedKind::Host {
                visit(&mut Arc::make_mut(host).resource_version);
            }
        }
        RemediationAction::KeepBackup { host, over, .. } => match (kind, over) {
            (VersionedKind::Host, _) => visit(&mut Arc::make_mut(host).resource_version),
            (VersionedKind::Backup, Some(over)) => {
                visit(&mut Arc::make_mut(over).resource_version);
            }
            (VersionedKind::Machine | VersionedKind::Node | VersionedKind::Backup, _) => {}
        },
        RemediationAction::DropBackup { stored } => {
            if kind == VersionedKind::Backup {
                visit(&mut Arc::make_mut(stored).resource_version);
            }
        }
        RemediationAction::RemoveMachineNeed { machine }
        | RemediationAction::HandBack { machine, .. } => {
            if kind == VersionedKind::Machine {
                visit(&mut Arc::make_mut(machine).resource_version);
            }
        }
        RemediationAction::TakeLease { .. }
        | RemediationAction::FreeLease { .. }
        | RemediationAction::Release(_)
        | RemediationAction::WriteStatus { .. }
        | RemediationAction::AddFinalizer { .. }
        | RemediationAction::RemoveFinalizer { .. } => {}
    }
}

/// A tick is longer than every pause that counts from a step.
pub fn age_records(world: &mut RemediationWorld<'_>) {
    age_record(&mut world.stored);
    age_record(&mut Arc::make_mut(&mut world.process).seen);
    for write in &mut world.late {
        if let RemediationAction::AddKey { record, .. }
        | RemediationAction::WriteRecord { record, .. }
        | RemediationAction::RemoveKey {
            record: Some(record),
            ..
        } = Arc::make_mut(write)
        {
            age_steps(record);
        }
    }
}

fn age_record(objects: &mut ClusterObjects) {
    let Some(mut record) = record_on_host(&objects.host) else {
        return;
    };
    age_steps(&mut record);
    let text = serde_json::to_string(&record).expect("text and numbers only");
    if objects.host.annotations.get(RECORD) != Some(&text) {
        let host = Arc::make_mut(&mut objects.host);
        host.annotations.insert(RECORD.into(), text);
    }
}

fn age_steps(record: &mut RemediationRecord) {
    for stamp in &mut record.steps {
        stamp.at = state_wall() - OLD_STEP;
    }
}
