//! The model world without further faults: every reboot that was begun has to end.

use std::time::Duration;

use super::world::{Fate, World};
use crate::reboot::{OwnNodeState, RebootReason};

/// More rounds than any reboot takes that ends at all.
const ROUNDS: usize = 6000;

impl World {
    /// The node's coordinator sees everything, counts if it asks for it, and acts. Returns whether
    /// it did anything, and when it wants to wake.
    pub(super) fn works(&mut self, node: usize) -> (bool, Option<Duration>) {
        let Some(process) = self.hosts[node]
            .processes
            .iter()
            .rposition(|process| !process.stopped)
        else {
            return (false, None);
        };
        self.deliver(node, process, 0);
        self.count(node, process);
        self.deliver(node, process, 0);
        match self.act(node, process, Fate::Good) {
            // Reported until a person looks and reboots the node by hand.
            Some(decision) if decision.cause.reason == RebootReason::RebootFailed => {
                self.boots(node);
                (true, None)
            }
            Some(decision) => (
                !decision.actions.is_empty(),
                decision.wake.map(|wake| wake.at),
            ),
            None => (false, None),
        }
    }

    /// S6: no node is left behind.
    pub(super) fn comes_to_its_end(&mut self) {
        self.comes_to_rest();
        self.assert_all_is_back();
    }

    /// From now on only coordinators act, and their hosts for them.
    pub(super) fn comes_to_rest(&mut self) {
        while !self.late.is_empty() {
            self.arrive(0);
        }
        for node in 0..self.hosts.len() {
            // Older runs see that they were superseded, and end.
            let processes = &mut self.hosts[node].processes;
            processes.retain(|process| !process.stopped);
            processes.drain(..processes.len().saturating_sub(1));
            if self.foreign_cordon(node) {
                self.uncordon(node);
            }
            self.hosts[node].refused = false;
            self.withdraw_hold(node);
        }
        for _ in 0..ROUNDS {
            self.late.clear();
            let busy = self.round();
            self.check_budget();
            if !busy && !self.sleeps_until_something_is_due() {
                return;
            }
        }
        panic!("it goes on for ever: {}", self.words());
    }

    fn round(&mut self) -> bool {
        let mut busy = false;
        for node in 0..self.hosts.len() {
            self.hosts[node]
                .processes
                .retain(|process| !process.stopped);
            if self.hosts[node].processes.is_empty() {
                self.start(node);
            }
            self.kubelet(node);
            self.hosts[node].pods = 0;
            for _ in 0..2 {
                busy |= self.works(node).0;
            }
            if self.hosts[node].pending {
                self.boots(node);
                busy = true;
            }
            busy |= self.heals(node);
        }
        busy
    }

    /// What only the healer can do: a late bid of a run that is gone took a lock that no node
    /// wants.
    fn heals(&mut self, node: usize) -> bool {
        let name = format!("node/{}", self.hosts[node].name);
        let relies = self.server.node(node).record.get();
        let named = |lease: &crate::lock::ObservedLease| {
            relies.is_some_and(|record| record.lease.as_ref() == Some(&lease.name))
        };
        let held = |lease: &crate::lock::ObservedLease| {
            lease.holder.as_ref().is_some_and(|h| h.as_str() == name) && !named(lease)
        };
        let Some(slot) = self.server.leases().iter().position(held) else {
            return false;
        };
        let live = |run: &crate::name::RunId| {
            self.hosts[node]
                .processes
                .iter()
                .any(|process| process.seen.run.id == *run)
        };
        let runs = self.server.leases()[slot]
            .record
            .iter()
            .flat_map(|record| &record.runs);
        let lives = runs.into_iter().any(live);
        if lives && relies.is_some() {
            return false;
        }
        assert!(!lives, "S6: a live run left its lock behind");
        self.unlock(slot);
        true
    }

    fn sleeps_until_something_is_due(&mut self) -> bool {
        let mut due = None;
        for node in 0..self.hosts.len() {
            let (acted, wake) = self.works(node);
            if acted {
                return true;
            }
            due = [due, wake].into_iter().flatten().min();
        }
        self.mono = due.map_or(self.mono, |due| self.mono.max(due));
        due.is_some()
    }

    fn assert_all_is_back(&self) {
        for node in 0..self.hosts.len() {
            let seen = self.server.node(node);
            assert!(seen.record.get().is_none(), "S6: {}", self.words());
            assert!(
                !seen.unschedulable && !seen.waiting_label,
                "S6: {}",
                self.words()
            );
            assert!(
                seen.request.get().is_none(),
                "S5: a request was lost: {}",
                self.words()
            );
            let wants = self.hosts[node].file.map(|print| print.to_string());
            let served = seen.last_reboot.get().and_then(|last| {
                last.fingerprints
                    .values()
                    .find(|f| Some(&f.0) == wants.as_ref())
            });
            assert!(
                wants.is_none() || served.is_some(),
                "S5: a sentinel was lost: {}",
                self.words()
            );
        }
        let free = self
            .server
            .leases()
            .iter()
            .all(|lease| lease.holder.is_none());
        assert!(free, "S6: {}", self.words());
    }

    pub(super) fn words(&self) -> String {
        let mut words = format!("{:?}\n", self.server.leases());
        for host in &self.hosts {
            for process in &host.processes {
                let record = match &process.seen.node {
                    OwnNodeState::There(node) => format!("{:?}", node.record),
                    OwnNodeState::NotYet | OwnNodeState::Gone => "no Node".into(),
                };
                let because = crate::reboot::decide(&process.seen, &self.config, self.now(0)).cause;
                words = format!("{words}{}: {because:?} {record}\n", host.name);
            }
        }
        words
    }
}
