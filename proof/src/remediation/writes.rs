//! What the API server does with each write of the remediator, and what is checked when it lands.

use std::sync::Arc;

use dogwatch_core::power::HostSnapshot;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{
    NodeBackup, ObservedMachine, RemediationAction, RemediationRecord, RemediationStep,
    StoredBackup, WorkloadRelease, record_on_host,
};

use super::RemediationGuard;
use super::normal_form::number_of;
use super::objects::{RECORD, boot_id};
use super::state::{PowerStage, WatchedKind, WriteFate};
use super::world::RemediationWorld;
use crate::promise::Promise;

pub fn bump_version(version: &mut String) {
    let number: u64 = version.parse().expect("the model's versions are numbers");
    *version = (number + 1).to_string();
}

pub fn name_action(action: &RemediationAction) -> &'static str {
    match action {
        RemediationAction::TakeLease { .. } => "TakeLease",
        RemediationAction::FreeLease { .. } => "FreeLease",
        RemediationAction::MarkNode { .. } => "MarkNode",
        RemediationAction::UnmarkNode { .. } => "UnmarkNode",
        RemediationAction::AddKey { .. } => "AddKey",
        RemediationAction::RemoveKey { .. } => "RemoveKey",
        RemediationAction::WriteRecord { .. } => "WriteRecord",
        RemediationAction::KeepBackup { .. } => "KeepBackup",
        RemediationAction::DropBackup { .. } => "DropBackup",
        RemediationAction::Release(_) => "Release",
        RemediationAction::RemoveMachineNeed { .. } => "RemoveMachineNeed",
        RemediationAction::RemoveNodeNeed { .. } => "RemoveNodeNeed",
        RemediationAction::Restore { .. } => "Restore",
        RemediationAction::RemoveOldBackup { .. } => "RemoveOldBackup",
        RemediationAction::Untaint { .. } => "Untaint",
        RemediationAction::WriteStatus { .. } => "WriteStatus",
        RemediationAction::AddFinalizer { .. } => "AddFinalizer",
        RemediationAction::RemoveFinalizer { .. } => "RemoveFinalizer",
        RemediationAction::HandBack { .. } => "HandBack",
    }
}

impl RemediationWorld<'_> {
    /// The live job shows the process what was answered, stops at the first write that fails, and
    /// reads everything again.
    pub fn take_turn(&mut self, actions: &[RemediationAction], which: usize, fate: WriteFate) {
        self.forget_reads();
        for (place, action) in actions.iter().enumerate() {
            let fate = if place == which {
                fate
            } else {
                WriteFate::Good
            };
            match fate {
                WriteFate::Good => {
                    if !self.land_write(action) {
                        return;
                    }
                    self.show_answer(action);
                }
                WriteFate::AnswerLost => {
                    self.left.faults -= 1;
                    self.land_write(action);
                    return;
                }
                WriteFate::Late => {
                    self.left.faults -= 1;
                    self.late.push(Arc::new(action.clone()));
                    return;
                }
                WriteFate::CrashAfter => {
                    self.left.crashes -= 1;
                    self.land_write(action);
                    return self.crash();
                }
            }
        }
    }

    fn show_answer(&mut self, action: &RemediationAction) {
        let kind = match action {
            RemediationAction::KeepBackup { .. }
                if self.is_without(RemediationGuard::BackupBeforeRelease) =>
            {
                return;
            }
            RemediationAction::TakeLease { .. }
            | RemediationAction::FreeLease { .. }
            | RemediationAction::KeepBackup { .. }
            | RemediationAction::DropBackup { .. } => WatchedKind::Claims,
            RemediationAction::MarkNode { .. }
            | RemediationAction::UnmarkNode { .. }
            | RemediationAction::RemoveNodeNeed { .. }
            | RemediationAction::Restore { .. }
            | RemediationAction::Untaint { .. }
            | RemediationAction::Release(_) => WatchedKind::Node,
            RemediationAction::AddKey { .. }
            | RemediationAction::RemoveKey { .. }
            | RemediationAction::WriteRecord { .. }
            | RemediationAction::RemoveOldBackup { .. } => WatchedKind::Host,
            RemediationAction::RemoveMachineNeed { .. }
            | RemediationAction::HandBack { .. }
            | RemediationAction::WriteStatus { .. }
            | RemediationAction::AddFinalizer { .. }
            | RemediationAction::RemoveFinalizer { .. } => WatchedKind::Machine,
        };
        self.show(kind);
    }

    fn forget_reads(&mut self) {
        for memory in Arc::make_mut(&mut self.process).memories.values_mut() {
            memory.forget_reads();
        }
    }

    /// Whether the write was accepted.
    pub fn land_write(&mut self, action: &RemediationAction) -> bool {
        match action {
            RemediationAction::TakeLease { subject, .. } => {
                self.stored.lease = Some(subject.to_string());
                true
            }
            RemediationAction::FreeLease { .. } => self.stored.lease.take().is_some(),
            RemediationAction::MarkNode { node, .. } => {
                self.write_node(node, |node| node.being_fenced = true)
            }
            RemediationAction::UnmarkNode { node } => {
                self.write_node(node, |node| node.being_fenced = false)
            }
            RemediationAction::AddKey { host, key, record } => {
                let (name, value) = (key.annotation_name(), key.annotation_value());
                let landed = self.write_host(host, Some(record), |host| {
                    host.annotations.insert(name, value);
                });
                if landed {
                    self.check_new_key();
                }
                landed
            }
            RemediationAction::RemoveKey { host, key, record } => {
                self.write_host(host, record.as_ref(), |host| {
                    host.annotations.remove(key);
                })
            }
            RemediationAction::WriteRecord { host, record } => {
                self.check_record_end(record);
                self.write_host(host, Some(record), |_| {})
            }
            RemediationAction::KeepBackup { host, backup, over } => {
                self.keep_backup(host, backup, over.as_deref())
            }
            RemediationAction::DropBackup { stored } => {
                let same = self.stored.backup.as_deref() == Some(&**stored);
                if same {
                    self.stored.backup = None;
                }
                same
            }
            RemediationAction::Release(release) => self.release_node(release),
            RemediationAction::RemoveMachineNeed { machine } => self.remove_need(machine),
            RemediationAction::Restore { node, backup } => self.write_node(node, |node| {
                node.labels.extend(backup.labels.clone());
                node.unschedulable |= backup.cordoned;
            }),
            RemediationAction::RemoveNodeNeed { .. }
            | RemediationAction::RemoveOldBackup { .. }
            | RemediationAction::Untaint { .. }
            | RemediationAction::WriteStatus { .. }
            | RemediationAction::AddFinalizer { .. }
            | RemediationAction::RemoveFinalizer { .. }
            | RemediationAction::HandBack { .. } => true,
        }
    }

    pub fn change_machine(&mut self, change: impl FnOnce(&mut ObservedMachine)) {
        let machine = Arc::make_mut(&mut self.stored.machine);
        change(machine);
        bump_version(&mut machine.resource_version);
    }

    fn write_node(&mut self, seen: &ObservedNode, change: impl FnOnce(&mut ObservedNode)) -> bool {
        let Some(there) = self.stored.node.as_mut().filter(|it| it.uid == seen.uid) else {
            return false;
        };
        let there = Arc::make_mut(there);
        change(there);
        bump_version(&mut there.resource_version);
        true
    }

    fn write_host(
        &mut self,
        seen: &HostSnapshot,
        record: Option<&RemediationRecord>,
        change: impl FnOnce(&mut HostSnapshot),
    ) -> bool {
        let same = self.stored.host.resource_version == seen.resource_version;
        if !same && !self.is_without(RemediationGuard::HostVersion) {
            return false;
        }
        let host = Arc::make_mut(&mut self.stored.host);
        change(host);
        if let Some(record) = record {
            let text = serde_json::to_string(record).expect("text and numbers only");
            host.annotations.insert(RECORD.into(), text);
        }
        bump_version(&mut host.resource_version);
        true
    }

    fn keep_backup(
        &mut self,
        host: &HostSnapshot,
        backup: &NodeBackup,
        over: Option<&StoredBackup>,
    ) -> bool {
        if self.stored.backup.as_deref() != over {
            return false;
        }
        let version = self.next_backup_version();
        let kept = Arc::new(StoredBackup {
            host: host.name.clone(),
            host_uid: host.uid.clone(),
            consumer: host.consumer.clone(),
            backup: backup.clone(),
            uid: "uid-backup".into(),
            resource_version: version,
        });
        if self.is_without(RemediationGuard::BackupBeforeRelease) {
            // The process believes that it is stored.
            Arc::make_mut(&mut self.process).seen.backup = Some(kept);
            return true;
        }
        self.stored.backup = Some(kept);
        true
    }

    /// No version is used twice, also after the backup was deleted.
    fn next_backup_version(&self) -> String {
        let late = self.late.iter().filter_map(|write| match &**write {
            RemediationAction::DropBackup { stored } => Some(stored),
            RemediationAction::KeepBackup { over, .. } => over.as_ref(),
            _ => None,
        });
        let objects = [&self.stored.backup, &self.process.seen.backup];
        let used = objects.into_iter().flatten().chain(late);
        let versions = used.map(|stored| number_of(&stored.resource_version));
        let doubtful = self.process.memories.values();
        let doubtful = doubtful.filter_map(|memory| memory.doubtful_backup.as_ref());
        let doubtful = doubtful.map(|version| number_of(&version.resource_version));
        let highest = versions.chain(doubtful).max().unwrap_or(0);
        (highest + 1).to_string()
    }

    /// S2 and S3: a Node is deleted only while its machine is off, and with what others put on it
    /// kept.
    fn release_node(&mut self, release: &WorkloadRelease) -> bool {
        let uid = release.permit.node_uid();
        let there = self.stored.node.as_ref();
        if there.is_none_or(|there| there.uid != uid) {
            return false;
        }
        let backup = self.stored.backup.as_ref();
        if backup.is_none_or(|backup| backup.backup.uid != uid) {
            let how = "a Node is deleted, and what others put on it is not kept";
            self.break_promise(Promise::NothingForeignUndone, how);
        }
        if self.machine.running {
            let how = "a Node is deleted while its machine runs";
            self.break_promise(Promise::ProofBeforeRelease, how);
        }
        self.stored.node = None;
        true
    }

    /// S3: a mark that somebody set again is not removed.
    fn remove_need(&mut self, seen: &ObservedMachine) -> bool {
        let there = &self.stored.machine;
        let same = there.resource_version == seen.resource_version;
        if !same && !self.is_without(RemediationGuard::MachineVersion) {
            return false;
        }
        if there.need.is_some() && there.need != seen.need {
            let how = "a mark that was set again is removed";
            self.break_promise(Promise::NothingForeignUndone, how);
        }
        self.change_machine(|machine| machine.need = None);
        true
    }

    /// S5: no host is switched off twice for one mark.
    fn check_new_key(&mut self) {
        if self.machine.unserved_marks == 0 {
            let how = "a host gets a key twice for one mark";
            self.break_promise(Promise::OneReboot, how);
        }
        self.machine.unserved_marks = self.machine.unserved_marks.saturating_sub(1);
    }

    /// S4: only a new boot ends a remediation well.
    fn check_record_end(&mut self, record: &RemediationRecord) {
        let ends = record.time_of_step(RemediationStep::NodeReady).is_some();
        let ended = record_on_host(&self.stored.host)
            .is_some_and(|record| record.time_of_step(RemediationStep::NodeReady).is_some());
        let boot = boot_id(self.machine.boots).to_string();
        if ends && !ended && record.boot_id.as_ref() == Some(&boot) {
            let how = "a remediation counts as done without a new boot";
            self.break_promise(Promise::NewBootId, how);
        }
    }

    /// The power controller is a part of the same process, and sees the host by the same watch.
    pub fn can_switch_off(&self) -> bool {
        let seen = self.process.seen.is_keyed();
        seen && self.stored.is_keyed() && self.machine.power == PowerStage::On
    }

    pub fn can_switch_on(&self) -> bool {
        let seen = self.process.seen.is_keyed();
        !seen && !self.stored.is_keyed() && self.machine.power != PowerStage::On
    }
}
