//! A model of one coordinator process, as far as it uses the lock.

use std::time::Duration;

use super::super::testkit::{node as holder, record};
use super::super::*;
use super::node_name;
use super::store::{ModelNode, ModelPhase, ModelStore, ModelWrite};
use crate::Now;
use crate::name::RunId;

/// One run of one node's coordinator, with what it believes.
#[derive(Debug, Clone)]
pub(super) struct CoordinatorModel {
    pub(super) node: usize,
    pub(super) run: RunId,
    pub(super) max: u32,
    pub(super) wants: bool,
    pub(super) owned: bool,
    pub(super) leases: Vec<ObservedLease>,
    pub(super) seen: Option<ModelNode>,
    pub(super) count: Option<UnavailableCount>,
}

impl CoordinatorModel {
    fn holder_id(&self) -> HolderId {
        holder(&node_name(self.node))
    }

    /// The next write by what the process believes; `None`: no write. `Err`: the process stops.
    pub(super) fn next_write(
        &mut self,
        store: &ModelStore,
        now: Now,
    ) -> Result<Option<ModelWrite>, ()> {
        let Some(seen) = self.seen.clone() else {
            return Ok(None);
        };
        let Some((owner, phase, max)) = seen.record.clone() else {
            let record = Some((self.run.clone(), ModelPhase::Waiting, self.max));
            return Ok(self.wants.then(|| self.node_write(&seen, record)));
        };
        if owner != self.run {
            if self.owned {
                return Err(());
            }
            let record = Some((self.run.clone(), phase, max));
            return Ok(Some(self.node_write(&seen, record)));
        }
        self.owned = true;
        Ok(match phase {
            ModelPhase::Waiting if !self.wants => {
                Some(self.node_write(&seen, Some((owner, ModelPhase::Returning, max))))
            }
            ModelPhase::Waiting => self.decide_while_waiting(store, &seen, now),
            ModelPhase::Out if self.wants => None,
            ModelPhase::Out => {
                Some(self.node_write(&seen, Some((owner, ModelPhase::Returning, max))))
            }
            ModelPhase::Returning => Some(self.release_lock(&seen)),
        })
    }

    fn decide_while_waiting(
        &mut self,
        store: &ModelStore,
        seen: &ModelNode,
        now: Now,
    ) -> Option<ModelWrite> {
        let me = self.holder_id();
        if seen.api.is_some() {
            // The lock API holds the Node: the coordinator does not begin, and gives up what it
            // has.
            let held = find_held_lease(&self.leases, &me)?.record.as_ref()?.max;
            return Some(
                self.node_write(seen, Some((self.run.clone(), ModelPhase::Returning, held))),
            );
        }
        let Some(lease) = find_held_lease(&self.leases, &me).cloned() else {
            return self.bid_or_break(store, now);
        };
        if lock_ownership(&lease, &me, &self.run) != LockOwnership::Ours {
            return Some(self.take_lease(lease, now));
        }
        let Some(counted) = self.count.clone() else {
            self.count = Some(count_unavailable(&store.budget_reads(&lease), &me));
            return None;
        };
        // A verdict stays valid for its count: its write may be on its way.
        let since = lease.record.as_ref().map(|record| record.since);
        let held_for = since.map_or(Duration::MAX, |since| now.elapsed_since(since));
        match decide_budget(GroupBudget { max: self.max }, &counted, &lease, held_for) {
            BudgetVerdict::Go => {
                let max = lease.record.as_ref().map_or(1, |record| record.max);
                Some(self.node_write(seen, Some((self.run.clone(), ModelPhase::Out, max))))
            }
            BudgetVerdict::YieldOverBudget { .. } => Some(ModelWrite::Free {
                given_back: lease.yield_count + 1,
                lease,
            }),
            BudgetVerdict::WaitForHigherSlot { .. } | BudgetVerdict::StaleCount => {
                self.count = None;
                None
            }
        }
    }

    fn bid_or_break(&self, store: &ModelStore, now: Now) -> Option<ModelWrite> {
        match decide_bid(&self.leases, &self.holder_id(), self.max, 0.5, now) {
            BidDecision::Now { lease } => Some(self.take_lease(lease, now)),
            BidDecision::Later { .. } => None,
            BidDecision::AllHeld | BidDecision::MaxReached { .. } => {
                self.leases.iter().find_map(|lease| {
                    let name = holder_node_name(lease)?;
                    let number: usize = name.as_str()[1..].parse().unwrap();
                    let there = match &store.nodes[number] {
                        Some(node) => HolderNode::There {
                            uid: node.uid.clone(),
                        },
                        None => HolderNode::Gone,
                    };
                    let reads = HolderReads {
                        nodes: [there.clone(), there],
                        apart: MIN_HOLDER_READ_INTERVAL,
                    };
                    find_break_evidence(lease, &reads)?;
                    Some(ModelWrite::Free {
                        lease: lease.clone(),
                        given_back: 0,
                    })
                })
            }
        }
    }

    fn take_lease(&self, lease: ObservedLease, now: Now) -> ModelWrite {
        let uid = self.seen.as_ref().map(|node| node.uid.clone());
        let fresh = LockRecord {
            node_uid: uid,
            max: self.max,
            since: now.wall,
            ..record(&node_name(self.node), &[self.run.as_str()])
        };
        let record = adopt_record(&lease, &self.run, fresh);
        ModelWrite::Bid {
            holder: self.holder_id(),
            record,
            lease,
        }
    }

    /// Frees the lock before the record is removed.
    fn release_lock(&self, seen: &ModelNode) -> ModelWrite {
        let me = self.holder_id();
        let Some(lease) = find_held_lease(&self.leases, &me).cloned() else {
            return self.node_write(seen, None);
        };
        match plan_release(&lease, &me, &self.run) {
            LockReleasePlan::Free => ModelWrite::Free {
                lease,
                given_back: 0,
            },
            LockReleasePlan::Nothing => self.take_lease(
                lease,
                Now {
                    wall: jiff::Timestamp::UNIX_EPOCH,
                    mono: Duration::ZERO,
                },
            ),
            LockReleasePlan::RemoveRun { remaining } => {
                panic!("nobody else relies on it: {remaining:?}")
            }
        }
    }

    fn node_write(&self, seen: &ModelNode, record: Option<(RunId, ModelPhase, u32)>) -> ModelWrite {
        ModelWrite::Node {
            node: self.node,
            version: seen.version,
            record,
        }
    }
}
