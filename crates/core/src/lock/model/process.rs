//! One run of a node's coordinator, as far as the lock goes.

use std::time::Duration;

use super::super::testkit::{node as holder, record};
use super::super::*;
use super::name;
use super::store::{Node, Phase, Store, Write};
use crate::Now;
use crate::name::RunId;

/// One run of one node's coordinator, with what it believes.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) node: usize,
    pub(super) run: RunId,
    pub(super) max: u32,
    pub(super) wants: bool,
    pub(super) owned: bool,
    pub(super) leases: Vec<LeaseSeen>,
    pub(super) seen: Option<Node>,
    pub(super) count: Option<Count>,
}

impl Process {
    fn me(&self) -> HolderId {
        holder(&name(self.node))
    }

    /// What it sends next, by what it believes; `None` for nothing. `Err`: it stops.
    pub(super) fn act(&mut self, store: &Store, now: Now) -> Result<Option<Write>, ()> {
        let Some(seen) = self.seen.clone() else {
            return Ok(None);
        };
        let Some((owner, phase, max)) = seen.record.clone() else {
            let record = Some((self.run.clone(), Phase::Waiting, self.max));
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
            Phase::Waiting if !self.wants => {
                Some(self.node_write(&seen, Some((owner, Phase::Returning, max))))
            }
            Phase::Waiting => self.wait(store, &seen, now),
            Phase::Out if self.wants => None,
            Phase::Out => Some(self.node_write(&seen, Some((owner, Phase::Returning, max)))),
            Phase::Returning => Some(self.leave(&seen)),
        })
    }

    fn wait(&mut self, store: &Store, seen: &Node, now: Now) -> Option<Write> {
        let me = self.me();
        if seen.api.is_some() {
            // The lock API has it: it does not begin, and gives up what it has.
            let held = held_by(&self.leases, &me)?.record.as_ref()?.max;
            return Some(self.node_write(seen, Some((self.run.clone(), Phase::Returning, held))));
        }
        let Some(lease) = held_by(&self.leases, &me).cloned() else {
            return self.bid(store, now);
        };
        if standing(&lease, &me, &self.run) != Standing::Ours {
            return Some(self.take(lease, now));
        }
        let Some(counted) = self.count.clone() else {
            self.count = Some(count(&store.reads(&lease), &me));
            return None;
        };
        // What was decided on a count stays decided, for its write may be on its way.
        let since = lease.record.as_ref().map(|record| record.since);
        let held_for = since.map_or(Duration::MAX, |since| now.since(since));
        match verdict(Budget { max: self.max }, &counted, &lease, held_for) {
            Verdict::Go => {
                let max = lease.record.as_ref().map_or(1, |record| record.max);
                Some(self.node_write(seen, Some((self.run.clone(), Phase::Out, max))))
            }
            Verdict::GiveBack { .. } => Some(Write::Free {
                given_back: lease.given_back + 1,
                lease,
            }),
            Verdict::WaitForHigherSlot { .. } | Verdict::StaleCount => {
                self.count = None;
                None
            }
        }
    }

    fn bid(&self, store: &Store, now: Now) -> Option<Write> {
        match when_to_bid(&self.leases, &self.me(), self.max, 0.5, now) {
            Bid::Now { lease } => Some(self.take(lease, now)),
            Bid::Later { .. } => None,
            Bid::AllHeld => self.leases.iter().find_map(|lease| {
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
                    apart: BETWEEN_HOLDER_READS,
                };
                broken_by(lease, &reads)?;
                Some(Write::Free {
                    lease: lease.clone(),
                    given_back: 0,
                })
            }),
        }
    }

    fn take(&self, lease: LeaseSeen, now: Now) -> Write {
        let uid = self.seen.as_ref().map(|node| node.uid.clone());
        let fresh = LockRecord {
            node_uid: uid,
            max: self.max,
            since: now.wall,
            ..record(&name(self.node), &[self.run.as_str()])
        };
        let record = adopted(&lease, &self.run, fresh);
        Write::Bid {
            holder: self.me(),
            record,
            lease,
        }
    }

    /// Frees the lock, and only then forgets the record.
    fn leave(&self, seen: &Node) -> Write {
        let me = self.me();
        let Some(lease) = held_by(&self.leases, &me).cloned() else {
            return self.node_write(seen, None);
        };
        match release_plan(&lease, &me, &self.run) {
            Release::Free => Write::Free {
                lease,
                given_back: 0,
            },
            Release::Nothing => self.take(
                lease,
                Now {
                    wall: jiff::Timestamp::UNIX_EPOCH,
                    mono: Duration::ZERO,
                },
            ),
            Release::RemoveRun { remaining } => panic!("nobody else relies on it: {remaining:?}"),
        }
    }

    fn node_write(&self, seen: &Node, record: Option<(RunId, Phase, u32)>) -> Write {
        Write::Node {
            node: self.node,
            version: seen.version,
            record,
        }
    }
}
