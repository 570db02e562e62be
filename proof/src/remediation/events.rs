//! What happens by itself: time, the health check, people, the machine, the watches.

use std::sync::Arc;

use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{
    FreshReads, NodeBackup, NodeHeartbeat, RemediationAction, RemediationObserve, StoredBackup,
};

use super::RemediationGuard;
use super::normal_form::age_records;
use super::objects::{boot_id, register_node};
use super::process::{DecidedRemediation, RemediatorView, age_memory, newest_beat, state_time};
use super::state::{PowerStage, WatchedKind};
use super::world::RemediationWorld;

impl RemediationWorld<'_> {
    /// A release is sent with a time limit, so none is under way after a tick.
    pub fn pass_tick(&mut self) {
        let beats = self.is_kubelet_alive() && !self.is_without(RemediationGuard::NodeSilence);
        for memory in Arc::make_mut(&mut self.process).memories.values_mut() {
            age_memory(memory, beats);
        }
        age_records(self);
        if self.machine.power == PowerStage::Proved {
            self.machine.power = PowerStage::ProvedLong;
        }
        if !self.is_without(RemediationGuard::ReleaseTimeLimit) {
            self.late
                .retain(|write| !matches!(**write, RemediationAction::Release(_)));
        }
    }

    fn is_kubelet_alive(&self) -> bool {
        let ready = self.stored.node.as_ref().is_some_and(|node| node.ready);
        self.machine.running && (ready || self.config.wrong_bmc)
    }

    pub fn show(&mut self, kind: WatchedKind) {
        let stored = self.stored.clone();
        let seen = &mut Arc::make_mut(&mut self.process).seen;
        match kind {
            WatchedKind::Machine => seen.machine = stored.machine,
            WatchedKind::Host => seen.host = stored.host,
            WatchedKind::Node => seen.node = stored.node,
            WatchedKind::Claims => (seen.lease, seen.backup) = (stored.lease, stored.backup),
        }
    }

    pub fn crash(&mut self) {
        self.process = Arc::new(RemediatorView::new(self.stored.clone()));
        // The next process reads the power anew.
        if self.machine.power != PowerStage::On {
            self.machine.power = PowerStage::ReadOff;
        }
    }

    pub fn mark(&mut self) {
        self.left.marks -= 1;
        self.machine.marks_so_far += 1;
        self.machine.unserved_marks += 1;
        let need = format!("mark-{}", self.machine.marks_so_far);
        self.change_machine(|machine| machine.need = Some(need));
    }

    pub fn withdraw(&mut self) {
        self.left.withdrawals -= 1;
        self.change_machine(|machine| machine.need = None);
    }

    pub fn power_off(&mut self) {
        self.machine.running = self.config.wrong_bmc;
        self.machine.power = PowerStage::ReadOff;
        self.change_node(|node| node.ready = false);
    }

    /// The two readings take longer than a tick.
    pub fn prove_off(&mut self) {
        self.pass_tick();
        self.machine.power = PowerStage::Proved;
    }

    pub fn power_on(&mut self) {
        self.pass_tick();
        self.machine.running = true;
        self.machine.boots += u8::from(!self.config.wrong_bmc);
        self.machine.power = PowerStage::On;
    }

    pub fn post_kubelet_status(&mut self) {
        let boots = self.machine.boots;
        if self.stored.node.is_none() {
            self.stored.node = Some(Arc::new(register_node(boots)));
        }
        self.change_node(|node| {
            node.ready = true;
            node.boot_id = Some(boot_id(boots));
        });
    }

    fn change_node(&mut self, change: impl FnOnce(&mut ObservedNode)) {
        if let Some(node) = &mut self.stored.node {
            let node = Arc::make_mut(node);
            change(node);
            super::writes::bump_version(&mut node.resource_version);
        }
    }

    pub fn answer_observations(&mut self, decided: &DecidedRemediation) {
        let fresh = self.read_fresh();
        let looks: &[RemediationObserve] = &decided.decision.observe;
        let process = Arc::make_mut(&mut self.process);
        for look in looks {
            process.answer(&decided.remediation, look, &fresh);
        }
    }

    /// Without the guard the process believes that the backup is stored.
    fn read_stored_backup(&self) -> Option<Arc<StoredBackup>> {
        if self.is_without(RemediationGuard::BackupBeforeRelease) {
            return self.process.seen.backup.clone();
        }
        self.stored.backup.clone()
    }

    /// GETs of all objects.
    fn read_fresh(&self) -> FreshReads {
        let node = self.stored.node.clone();
        let backup = node
            .as_ref()
            .map(|node| NodeBackup::from_node(node, std::collections::BTreeMap::new(), Vec::new()));
        FreshReads {
            asked_at: state_time().mono,
            host: Some(self.stored.host.clone()),
            heartbeat: NodeHeartbeat {
                node_uid: node.as_ref().map(|node| node.uid.clone()),
                renewed: Some(newest_beat()),
                posted: Some(newest_beat()),
                lease_duration: Some(std::time::Duration::from_secs(40)),
            },
            backup,
            stored_backup: self.read_stored_backup(),
            node,
            needs_remediation: self.stored.machine.need.is_some(),
        }
    }
}
