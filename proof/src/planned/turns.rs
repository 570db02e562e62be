//! A coordinator's turn: it decides, and performs its actions as the live loop does
//! (`crates/coordinator/src/agent/actions.rs`), with one misfortune at most.

use std::sync::Arc;

use dogwatch_core::lock::{self, BidPause, HolderId, LockRecord, LockReleasePlan, ObservedLease};
use dogwatch_core::reboot::{
    NodePatch, OwnNodeState, ParsedAnnotation, RebootAction, RebootCommandState, RebootPhase,
    RecordChange, UnansweredRelease,
};

use super::PlannedGuard;
use super::coordinator::CoordinatorView;
use super::server::{self, ServerAnswer, ServerWrite, SkippedPreconditions};
use super::state::{CordonOwner, Fate};
use super::time::{self, Clock, state_time};
use super::world::{PlannedWorld, decide_for_view, node_name};

enum TurnEnd {
    GoesOn,
    /// The live loop stops at the first failure and decides anew.
    Failed,
    Crashed,
}

impl PlannedWorld<'_> {
    pub fn take_turn(&mut self, node: usize, actions: &[RebootAction], which: usize, fate: Fate) {
        for (place, action) in actions.iter().enumerate() {
            let fate = if place == which { fate } else { Fate::Good };
            match self.perform_action(node, action, fate) {
                TurnEnd::GoesOn => {}
                TurnEnd::Failed => return,
                TurnEnd::Crashed => return self.start_run(node),
            }
        }
    }

    fn perform_action(&mut self, node: usize, action: &RebootAction, fate: Fate) -> TurnEnd {
        match action {
            RebootAction::PatchNode(patch) => self.patch_own_node(node, patch, fate),
            RebootAction::Bid { lease, record } => {
                let mut record = record.clone();
                time::forget_lock_times(&mut record);
                self.view_mut(node).seen.lock.unsettled_bid = Some(lease.name.clone());
                let write = ServerWrite::Bid {
                    slot: slot_of(lease),
                    version: lease.resource_version.clone(),
                    holder: self.view_mut(node).seen.run.holder.clone(),
                    record,
                };
                let end = self.write_lease(node, write, fate);
                if matches!(end, TurnEnd::GoesOn) {
                    self.view_mut(node).seen.lock.unsettled_bid = None;
                }
                end
            }
            RebootAction::Release { lease, over_budget } => {
                self.release_own_lock(node, lease, *over_budget, fate)
            }
            RebootAction::Break { lease, .. } => {
                let write = ServerWrite::Free {
                    slot: slot_of(lease),
                    version: lease.resource_version.clone(),
                    over_budget: false,
                };
                self.write_lease(node, write, fate)
            }
            RebootAction::Reboot { attempt } => self.start_command(node, *attempt, fate),
            RebootAction::Stop { .. } => {
                self.view_mut(node).stopped = true;
                TurnEnd::GoesOn
            }
        }
    }

    pub(super) fn view_mut(&mut self, node: usize) -> &mut CoordinatorView {
        Arc::make_mut(self.coordinators[node].as_mut().expect("it takes its turn"))
    }

    fn patch_own_node(&mut self, node: usize, patch: &NodePatch, fate: Fate) -> TurnEnd {
        let OwnNodeState::There(seen) = self.view_mut(node).seen.node.clone() else {
            return TurnEnd::Failed;
        };
        let mut patch = patch.clone();
        time::forget_patch_times(&mut patch);
        self.mutate_patch(node, &mut patch);
        if !self.is_without(PlannedGuard::AdoptedAttempt) {
            let run = &mut self.view_mut(node).seen.run;
            run.record_patch_sending(seen.record.get(), &patch);
        }
        let write = ServerWrite::Node {
            node,
            patch: Box::new(patch.clone()),
            uid: seen.uid.clone(),
            counted: self.view_mut(node).counted,
        };
        let (answer, end) = self.send_write(write, fate);
        match answer {
            Some(ServerAnswer::Node(answer)) => {
                let run = &mut self.view_mut(node).seen.run;
                run.record_patch_answer(&patch, state_time());
                let there = OwnNodeState::There(Box::new(answer.as_ref().clone()));
                self.view_mut(node).observe_node(there);
            }
            Some(ServerAnswer::Conflict | ServerAnswer::NotFound | ServerAnswer::Lease(_)) => {
                self.show_node(node);
            }
            None => {}
        }
        end
    }

    /// What only a mutation changes about a patch.
    fn mutate_patch(&self, node: usize, patch: &mut NodePatch) {
        let RecordChange::Set(record) = &mut patch.record else {
            return;
        };
        let foreign = self.hosts[node].cordon == CordonOwner::Foreign;
        if self.is_without(PlannedGuard::CordonOwner)
            && record.phase == RebootPhase::Draining
            && foreign
        {
            record.cordoned_by_us = true;
        }
    }

    fn release_own_lock(
        &mut self,
        node: usize,
        lease: &ObservedLease,
        over_budget: bool,
        fate: Fate,
    ) -> TurnEnd {
        let run = &self.view_mut(node).seen.run;
        let (version, slot) = (lease.resource_version.clone(), slot_of(lease));
        let write = match lock::plan_release(lease, &run.holder, &run.id) {
            LockReleasePlan::Nothing => {
                self.show_leases(node);
                return TurnEnd::GoesOn;
            }
            LockReleasePlan::RemoveRun { remaining } => ServerWrite::Bid {
                slot,
                version,
                holder: run.holder.clone(),
                record: Box::new(lock::LockRecord {
                    runs: remaining,
                    ..lease.record.clone().expect("a plan needs a record")
                }),
            },
            LockReleasePlan::Free => ServerWrite::Free {
                slot,
                version,
                over_budget,
            },
        };
        if !self.is_without(PlannedGuard::RepeatedRelease) {
            let sent = UnansweredRelease::sent_for(lease, over_budget);
            self.view_mut(node).seen.lock.unanswered_release = Some(sent);
        }
        let end = self.write_lease(node, write, fate);
        if matches!(end, TurnEnd::GoesOn) {
            self.view_mut(node).seen.lock.unanswered_release = None;
            let pause = over_budget.then(|| BidPause::after_yield(1, 0.5, state_time().mono));
            self.view_mut(node).seen.run.bid_pause = pause;
        }
        end
    }

    fn write_lease(&mut self, node: usize, write: ServerWrite, fate: Fate) -> TurnEnd {
        let (answer, end) = self.send_write(write, fate);
        match answer {
            Some(ServerAnswer::Lease(lease)) => self.view_mut(node).observe_lease(&lease),
            Some(ServerAnswer::Conflict | ServerAnswer::NotFound | ServerAnswer::Node(_)) => {
                self.show_leases(node);
            }
            None => {}
        }
        end
    }

    fn send_write(&mut self, write: ServerWrite, fate: Fate) -> (Option<ServerAnswer>, TurnEnd) {
        match fate {
            Fate::Good => {}
            Fate::AnswerLost | Fate::Delayed | Fate::Doubled => self.faults -= 1,
            Fate::CrashAfter => self.crashes -= 1,
            Fate::CrashDelayed => (self.crashes, self.faults) = (self.crashes - 1, self.faults - 1),
        }
        match fate {
            Fate::Good => (Some(self.land_write(&write)), TurnEnd::GoesOn),
            Fate::AnswerLost => {
                self.land_write(&write);
                (None, TurnEnd::Failed)
            }
            Fate::Delayed => {
                self.late.push(Arc::new(write));
                (None, TurnEnd::Failed)
            }
            Fate::Doubled => {
                let answer = self.land_write(&write);
                self.late.push(Arc::new(write));
                (Some(answer), TurnEnd::GoesOn)
            }
            Fate::CrashAfter => {
                self.land_write(&write);
                (None, TurnEnd::Crashed)
            }
            Fate::CrashDelayed => {
                self.late.push(Arc::new(write));
                (None, TurnEnd::Crashed)
            }
        }
    }

    pub fn land_write(&mut self, write: &ServerWrite) -> ServerAnswer {
        let skipped = SkippedPreconditions {
            bid_version: self.is_without(PlannedGuard::BidVersion),
            release_version: self.is_without(PlannedGuard::ReleaseVersion),
            node_version: self.is_without(PlannedGuard::NodeVersion),
        };
        match write {
            ServerWrite::Bid {
                slot,
                version,
                holder,
                record,
            } => {
                let was_free = self.leases[*slot].holder.is_none();
                let lease = &mut self.leases[*slot];
                let answer = server::apply_bid(lease, version, holder, record, skipped);
                if was_free && matches!(answer, ServerAnswer::Lease(_)) {
                    self.remember_win(holder, self.is_remediation_held());
                }
                answer
            }
            ServerWrite::Free {
                slot,
                version,
                over_budget,
            } => {
                let lease = &mut self.leases[*slot];
                let holder = lease.holder.clone();
                let answer = server::free_lease(lease, version, *over_budget, skipped);
                if let (Some(holder), ServerAnswer::Lease(_)) = (holder, &answer) {
                    self.remember_win(&holder, false);
                }
                answer
            }
            ServerWrite::Node {
                node,
                patch,
                uid,
                counted,
            } => {
                let Some(mut there) = self.nodes[*node].clone() else {
                    return ServerAnswer::NotFound;
                };
                if there.uid != *uid {
                    return ServerAnswer::Conflict;
                }
                let before = there.clone();
                let answer = server::patch_node(&mut there, patch, skipped);
                self.nodes[*node] = Some(there.clone());
                if let ServerAnswer::Node(_) = answer {
                    self.check_node_patch(*node, &before, &there, *counted);
                }
                answer
            }
        }
    }

    /// Remembers beside what a node won its Lease, until the Lease is free.
    fn remember_win(&mut self, holder: &HolderId, beside_remediation: bool) {
        let hosts = self.hosts.iter_mut().enumerate();
        for (number, host) in hosts {
            if HolderId::for_node(&node_name(number)) == *holder {
                host.won_beside_remediation = beside_remediation;
            }
        }
    }

    /// The Node and the Leases are read once more before the command, and the decision has to stay.
    fn start_command(&mut self, node: usize, attempt: u32, fate: Fate) -> TurnEnd {
        self.show_node(node);
        self.show_leases(node);
        let view = self.coordinators[node].clone().expect("it takes its turn");
        let again = decide_for_view(self.config, node, &view, Clock::Same);
        if !again.actions.contains(&RebootAction::Reboot { attempt }) {
            return TurnEnd::GoesOn;
        }
        self.check_command(node, attempt);
        self.hosts[node].pending = true;
        self.view_mut(node).seen.run.command = RebootCommandState::Started {
            attempt,
            ended: None,
        };
        match fate {
            Fate::CrashAfter => {
                self.crashes -= 1;
                TurnEnd::Crashed
            }
            Fate::Good | Fate::AnswerLost | Fate::Delayed | Fate::Doubled | Fate::CrashDelayed => {
                TurnEnd::GoesOn
            }
        }
    }

    pub fn show_node(&mut self, node: usize) {
        let there = self.nodes[node].as_deref();
        let there = there.map_or(OwnNodeState::Gone, |there| {
            OwnNodeState::There(Box::new(there.clone()))
        });
        let known = self.coordinators[node].as_ref();
        if known.is_none_or(|view| view.seen.node != there) {
            self.view_mut(node).observe_node(there);
        }
    }

    pub fn show_leases(&mut self, node: usize) {
        let leases = self.leases.clone();
        let view = self.coordinators[node].as_ref().expect("it takes its turn");
        let known = view.seen.lock.leases.as_ref();
        // When it became free is not the server's to say.
        let same = |(one, other): (&lock::ObservedLease, &Arc<ObservedLease>)| {
            (&one.resource_version, &one.uid) == (&other.resource_version, &other.uid)
        };
        let same = known.is_some_and(|known| known.iter().zip(&leases).all(same));
        if same {
            return;
        }
        if self.is_without(PlannedGuard::SmallestMaximum) {
            let blind: Vec<ObservedLease> = leases.iter().map(|it| without_limit(it)).collect();
            return self.view_mut(node).observe_leases(blind.iter());
        }
        self.view_mut(node)
            .observe_leases(leases.iter().map(AsRef::as_ref));
    }

    /// Whether the Node shows a record of ours.
    pub(super) fn has_record(&self, node: usize) -> bool {
        let there = self.nodes[node].as_ref();
        there.is_some_and(|there| there.record != ParsedAnnotation::Absent)
    }
}

/// The Lease as a node sees it that does not heed its holder's maximum.
fn without_limit(lease: &ObservedLease) -> ObservedLease {
    let record = lease.record.clone();
    ObservedLease {
        record: record.map(|record| LockRecord {
            max: u32::MAX,
            ..record
        }),
        ..lease.clone()
    }
}

fn slot_of(lease: &ObservedLease) -> usize {
    usize::try_from(lease.slot).expect("a small number")
}
