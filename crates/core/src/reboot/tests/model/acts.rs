//! The actions of a process, and what happens to them on the way.

use super::process::Process;
use super::server::{Answer, Write};
use super::world::{Fate, World};
use crate::Now;
use crate::lock;
use crate::reboot::*;

pub(super) enum Sent {
    Answered(Answer),
    Unanswered,
    Crashed,
}

impl World {
    /// The process decides and acts. `None`: it does not exist or has stopped.
    pub(super) fn act(&mut self, node: usize, index: usize, fate: Fate) -> Option<RebootDecision> {
        let now = self.now(node);
        if index >= self.hosts[node].processes.len() || self.hosts[node].processes[index].stopped {
            return None;
        }
        let mut process = self.hosts[node].processes.remove(index);
        let decision = process.decide(&self.config, now);
        assert!(!decision.cause.message.is_empty());
        if decision.actions.is_empty() {
            let spins = decision
                .wake
                .as_ref()
                .is_some_and(|wake| wake.at <= now.mono);
            assert!(
                !spins,
                "a wake-up that has passed, with nothing to do: {:?}",
                decision.cause
            );
        }
        let mut fate = fate;
        for action in &decision.actions {
            match self.perform(node, &mut process, action, fate) {
                Flow::On => fate = Fate::Good,
                Flow::Failed => break,
                Flow::Crashed => return Some(decision),
            }
        }
        self.hosts[node].processes.insert(index, process);
        Some(decision)
    }

    fn perform(
        &mut self,
        node: usize,
        process: &mut Process,
        action: &RebootAction,
        fate: Fate,
    ) -> Flow {
        let now = self.now(node);
        match action {
            RebootAction::PatchNode(patch) => self.patch_node(node, process, patch, fate),
            RebootAction::Bid { lease, record } => {
                process.seen.lock.unsettled_bid = Some(lease.name.clone());
                let holder = Some(process.seen.run.holder.clone());
                let record = Some(record.as_ref().clone());
                let flow = self.write_lease(process, lease, holder, record, fate, now);
                if matches!(flow, Flow::On) {
                    process.seen.lock.unsettled_bid = None;
                }
                flow
            }
            RebootAction::Release { lease, over_budget } => {
                self.release(process, lease, *over_budget, fate, now)
            }
            RebootAction::Break { .. } => panic!("no Node is ever deleted here"),
            RebootAction::Reboot { attempt } => self.command(node, process, *attempt, fate),
            RebootAction::Stop { .. } => {
                process.stopped = true;
                Flow::On
            }
        }
    }

    fn patch_node(
        &mut self,
        node: usize,
        process: &mut Process,
        patch: &NodePatch,
        fate: Fate,
    ) -> Flow {
        let now = self.now(node);
        let OwnNodeState::There(seen) = process.seen.node.clone() else {
            return Flow::Failed;
        };
        process
            .seen
            .run
            .record_patch_sending(seen.record.get(), patch);
        self.grant(node, process, patch);
        let write = Write::Patch {
            node,
            patch: Box::new(patch.clone()),
        };
        match self.send(write, fate) {
            Sent::Answered(Answer::Node(answer)) => {
                process.seen.run.record_patch_answer(patch, now);
                process.saw_node(&answer, now);
            }
            Sent::Answered(_) => process.saw_node(self.server.node(node), now),
            Sent::Unanswered => return Flow::Failed,
            Sent::Crashed => return Flow::Crashed,
        }
        Flow::On
    }

    fn release(
        &mut self,
        process: &mut Process,
        lease: &lock::ObservedLease,
        over_budget: bool,
        fate: Fate,
        now: Now,
    ) -> Flow {
        let run = &process.seen.run;
        let (holder, record) = match lock::plan_release(lease, &run.holder, &run.id) {
            lock::LockReleasePlan::Nothing => {
                process.saw_leases(self.server.leases(), None, now);
                return Flow::On;
            }
            lock::LockReleasePlan::RemoveRun { remaining } => {
                let record = lease.record.clone().map(|record| lock::LockRecord {
                    runs: remaining,
                    ..record
                });
                (lease.holder.clone(), record)
            }
            lock::LockReleasePlan::Free => (None, None),
        };
        let sent = UnansweredRelease::sent_for(lease, over_budget);
        process.seen.lock.unanswered_release = Some(sent);
        let flow = self.write_lease(process, lease, holder, record, fate, now);
        if matches!(flow, Flow::On) {
            process.seen.lock.unanswered_release = None;
            process.gave_back(over_budget, now);
        }
        flow
    }

    fn write_lease(
        &mut self,
        process: &mut Process,
        seen: &lock::ObservedLease,
        holder: Option<lock::HolderId>,
        record: Option<lock::LockRecord>,
        fate: Fate,
        now: Now,
    ) -> Flow {
        let seen = Box::new(seen.clone());
        let write = Write::Lease {
            seen,
            holder,
            record,
        };
        match self.send(write, fate) {
            Sent::Answered(Answer::Lease(lease)) => process.saw_lease(&lease, now),
            Sent::Answered(_) => process.saw_leases(self.server.leases(), None, now),
            Sent::Unanswered => return Flow::Failed,
            Sent::Crashed => return Flow::Crashed,
        }
        Flow::On
    }

    pub(super) fn send(&mut self, write: Write, fate: Fate) -> Sent {
        match fate {
            Fate::Good | Fate::NotStarted => {
                let answer = self.land(&write);
                if self.late.len() < 8 {
                    self.late.push((write, true));
                }
                Sent::Answered(answer)
            }
            Fate::Lost => Sent::Unanswered,
            Fate::AnswerLost => {
                self.land(&write);
                Sent::Unanswered
            }
            Fate::Delayed => {
                self.late.push((write, false));
                Sent::Unanswered
            }
            Fate::CrashBefore => Sent::Crashed,
            Fate::CrashAfter => {
                self.land(&write);
                Sent::Crashed
            }
            Fate::CrashDelayed => {
                self.late.push((write, false));
                Sent::Crashed
            }
        }
    }

    /// A write that was under way arrives. If it took effect already, nothing happens.
    pub(super) fn arrive(&mut self, which: usize) {
        if self.late.is_empty() {
            return;
        }
        let (write, done) = self.late.remove(which % self.late.len());
        let before = (self.server.nodes.clone(), self.server.leases.clone());
        let answer = self.land(&write);
        if done {
            let same = before == (self.server.nodes.clone(), self.server.leases.clone());
            assert!(
                matches!(answer, Answer::Conflict) || same,
                "a late duplicate did something: {write:?}"
            );
        }
    }

    fn land(&mut self, write: &Write) -> Answer {
        let before = match write {
            Write::Patch { node, .. } => Some(self.server.node(*node).clone()),
            Write::Lease { .. } => None,
        };
        let answer = self.server.apply(write);
        if let (Write::Patch { node, .. }, Answer::Node(after), Some(before)) =
            (write, &answer, before)
        {
            self.hold_cordon_to_its_grant(*node, &before, after);
            self.hold_patch_to_the_promises(*node, &before, after);
        }
        answer
    }

    fn command(&mut self, node: usize, process: &mut Process, attempt: u32, fate: Fate) -> Flow {
        if fate == Fate::CrashBefore {
            return Flow::Crashed;
        }
        // A person's abort, served by a newer run, may free the lock within the ten seconds of a
        // permit. The live loop lists the Leases once more before the command, and decides anew.
        if self.policies.len() > 1 {
            let now = self.now(node);
            process.saw_leases(self.server.leases(), None, now);
            let again = decide(&process.seen, &self.config, now);
            if !again.actions.contains(&RebootAction::Reboot { attempt }) {
                return Flow::On;
            }
        }
        if fate == Fate::NotStarted {
            let why = "no such file".into();
            process.seen.run.command = RebootCommandState::FailedToStart { attempt, why };
            return Flow::On;
        }
        self.hold_command_to_the_promises(node, process, attempt);
        process.seen.run.command = RebootCommandState::Started {
            attempt,
            ended: None,
        };
        self.hosts[node].pending = true;
        let crashes = matches!(fate, Fate::CrashAfter | Fate::CrashDelayed);
        if crashes { Flow::Crashed } else { Flow::On }
    }
}

enum Flow {
    On,
    Failed,
    Crashed,
}
