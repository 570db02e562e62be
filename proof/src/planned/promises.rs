//! Checks each write when it lands, and each command when it is started, against the promises.

use dogwatch_core::reboot::{ObservedNode, ParsedAnnotation, RebootPhase, RebootRecord};

use super::state::{CordonOwner, RemediationStage};
use super::world::{PlannedWorld, host_boot_id};
use crate::promise::Promise;

fn phase_of(node: &ObservedNode) -> Option<RebootPhase> {
    node.record.get().map(|record| record.phase)
}

impl PlannedWorld<'_> {
    pub fn check_node_patch(
        &mut self,
        node: usize,
        before: &ObservedNode,
        after: &ObservedNode,
        counted: bool,
    ) {
        match (before.unschedulable, after.unschedulable) {
            (true, false) => {
                if self.hosts[node].cordon != CordonOwner::Ours {
                    let how = "a cordon of somebody else was removed";
                    self.break_promise(Promise::NothingForeignUndone, how);
                }
                self.hosts[node].cordon = CordonOwner::Nobody;
            }
            (false, true) => self.hosts[node].cordon = CordonOwner::Ours,
            (true, true) | (false, false) => {}
        }
        let claims = after
            .record
            .get()
            .is_some_and(|record| record.cordoned_by_us);
        if claims && after.unschedulable && self.hosts[node].cordon != CordonOwner::Ours {
            let how = "the record claims a cordon of somebody else";
            self.break_promise(Promise::NothingForeignUndone, how);
        }
        self.check_record_change(node, before, after);
        if phase_of(before) == Some(RebootPhase::Waiting)
            && phase_of(after) == Some(RebootPhase::Draining)
        {
            self.check_beginning(node, counted);
        }
    }

    fn check_record_change(&mut self, node: usize, before: &ObservedNode, after: &ObservedNode) {
        let (from, to) = (phase_of(before), phase_of(after));
        let returning = Some(RebootPhase::Returning);
        if to == returning && from != returning {
            let boot = host_boot_id(node, self.hosts[node].boot);
            if after
                .record
                .get()
                .is_some_and(|record| record.boot_id == boot)
            {
                let how = "a reboot counts as done without a new boot";
                self.break_promise(Promise::NewBootId, how);
            }
        }
        if from == Some(RebootPhase::Rebooting)
            && to < Some(RebootPhase::Rebooting)
            && self.hosts[node].pending
        {
            let how = "a reboot was undone although its command was started";
            self.break_promise(Promise::OneReboot, how);
        }
        if let (Some(record), None) = (before.record.get(), after.record.get())
            && self.is_named_by_lease(record)
        {
            let how = "the record went before the lock";
            self.break_promise(Promise::NobodyLeftBehind, how);
        }
    }

    fn is_named_by_lease(&self, record: &RebootRecord) -> bool {
        let mut held = self.leases.iter().filter_map(|lease| lease.record.as_ref());
        held.any(|lock| lock.runs.contains(&record.run))
    }

    /// A node goes out of service: beside those that are out, and node 0 if its remediation had its
    /// Lease when this node won the lock, and has it still.
    fn check_beginning(&mut self, node: usize, counted: bool) {
        if !counted {
            return self.break_promise(Promise::MutualExclusion, "a cordon without a count");
        }
        let beside = self.hosts[node].won_beside_remediation && self.is_remediation_held();
        let remediated = |other: &usize| beside && *other == 0;
        let others = (0..self.hosts.len())
            .filter(|other| *other != node && (self.is_out(*other) || remediated(other)));
        let others: Vec<usize> = others.collect();
        let maxima = others
            .iter()
            .filter(|other| self.is_out(**other))
            .chain([&node]);
        let least = maxima
            .map(|node| self.config.maxima[*node])
            .min()
            .unwrap_or(1);
        if others.len() >= usize::try_from(least).expect("a small number") {
            let how = "a node goes out beside as many as may be out";
            self.break_promise(Promise::MutualExclusion, how);
        }
    }

    pub fn check_command(&mut self, node: usize, attempt: u32) {
        let there = self.nodes[node].clone();
        let record = there.as_ref().and_then(|there| there.record.get());
        let stands = |record: &RebootRecord| {
            (record.phase, record.attempts) == (RebootPhase::Rebooting, attempt)
        };
        if !record.is_some_and(stands) {
            let how = "a command without its record";
            self.break_promise(Promise::OneReboot, how);
        }
        let attempt = u8::try_from(attempt).unwrap_or(u8::MAX);
        if self.hosts[node].commands.contains(&attempt) {
            let how = "one attempt started two commands";
            self.break_promise(Promise::OneReboot, how);
        }
        if self.hosts[node].served {
            let how = "a sentinel that was served caused another reboot";
            self.break_promise(Promise::OneReboot, how);
        }
        let name = format!("node/n{node}");
        let mut holders = self.leases.iter().filter_map(|lease| lease.holder.as_ref());
        if !holders.any(|holder| holder.as_str() == name) {
            let how = "a command without the lock";
            self.break_promise(Promise::MutualExclusion, how);
        }
        if self.hosts[node].local.pods_left || !there.is_some_and(|there| there.unschedulable) {
            let how = "a command on a node that is not cordoned and drained";
            self.break_promise(Promise::MutualExclusion, how);
        }
        self.hosts[node].commands.push(attempt);
    }

    /// Never more nodes out on Dogwatch's account than the smallest maximum of theirs allows. A
    /// remediation waits for nobody, so its node is only counted when another one begins.
    pub fn check_budget(&mut self) {
        let out = (0..self.hosts.len()).filter(|node| self.is_out(*node));
        let out: Vec<usize> = out.collect();
        let least = out.iter().map(|node| self.config.maxima[*node]).min();
        let most = least.map_or(usize::MAX, |least| usize::try_from(least).expect("small"));
        if out.len() > most && self.remediation == RemediationStage::None {
            let how = "more nodes are out than their maxima allow";
            self.break_promise(Promise::MutualExclusion, how);
        }
    }

    pub fn is_out(&self, node: usize) -> bool {
        let host = &self.hosts[node];
        let phase = self.nodes[node].as_deref().and_then(phase_of);
        let under_way = matches!(
            phase,
            Some(RebootPhase::Draining | RebootPhase::Holding | RebootPhase::Rebooting)
        );
        host.cordon == CordonOwner::Ours || host.pending || under_way
    }

    /// Nothing is held, everything asked for was done.
    pub fn is_all_back(&self) -> bool {
        let back = |node: usize| {
            let Some(there) = &self.nodes[node] else {
                return false;
            };
            let host = &self.hosts[node];
            let cordoned = there.unschedulable && host.cordon != CordonOwner::Foreign;
            let served = there
                .last_reboot
                .get()
                .is_some_and(|last| !last.fingerprints.is_empty());
            there.record == ParsedAnnotation::Absent
                && !cordoned
                && !there.waiting_label
                && (!host.local.sentinel || served)
        };
        let free = self.leases.iter().all(|lease| lease.holder.is_none());
        free && (0..self.hosts.len()).all(back) && !self.is_remediation_held()
    }
}
