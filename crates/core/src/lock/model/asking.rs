//! A request of the lock API, or an unlock, for a node of the model: `api_lock`'s own rules, with
//! reads that may be old when it acts on them.

use std::time::Duration;

use super::super::api_lock::{
    self as rules, ApiNode, HoldSeen, HoldStep, LeaveSeen, LeaveStep, NodeWrite, Suspect, Who,
};
use super::super::testkit::record;
use super::super::*;
use super::name;
use super::store::{Phase, Store, Write};
use crate::Now;
use crate::name::{NodeName, RunId};
use crate::reboot::Parsed;

/// One call of a client.
#[expect(
    clippy::struct_excessive_bools,
    reason = "what the shell knows, as it knows it"
)]
#[derive(Debug, Clone)]
pub(super) struct Asking {
    pub(super) node: usize,
    pub(super) run: RunId,
    pub(super) who: Who,
    pub(super) max: u32,
    pub(super) leaves: bool,
    /// The same host has unlocked since: what this call is told may be old news.
    pub(super) overtaken: bool,
    /// The Node was read, and found or not.
    has_read: bool,
    seen: Option<ApiNode>,
    leases: Option<Vec<LeaseSeen>>,
    verdict: Option<Verdict>,
    may_go: bool,
    has_closed: bool,
    bid: Option<(LeaseSeen, LockRecord)>,
    suspect: Suspect,
}

/// What it does.
#[derive(Debug)]
pub(super) enum Does {
    /// Nothing that is seen from outside.
    Nothing,
    /// A write goes out; whether it arrived it finds out by reading.
    Send(Write),
    /// The same, and the answer comes at once.
    Done(Write),
    /// The client is told that it holds.
    Told,
    /// It is over.
    Gone,
}

impl Asking {
    pub(super) fn new(node: usize, run: RunId, who: Who, max: u32) -> Self {
        Self {
            node,
            run,
            who,
            max,
            leaves: who == Who::Host,
            overtaken: false,
            has_read: false,
            seen: None,
            leases: None,
            verdict: None,
            may_go: false,
            has_closed: false,
            bid: None,
            suspect: Suspect::No,
        }
    }

    pub(super) fn holder(node: usize) -> HolderId {
        HolderId::api(&name(node))
    }

    /// One read, or one decision on what was read.
    pub(super) fn act(&mut self, store: &Store, now: Now) -> Does {
        if !self.has_read {
            (self.has_read, self.seen) = (true, store.api_node(self.node));
            self.note();
            return Does::Nothing;
        }
        let Some(leases) = self.leases.take() else {
            self.leases = Some(store.leases.values().cloned().collect());
            return Does::Nothing;
        };
        self.has_read = false;
        let node = self.seen.take();
        if self.leaves {
            return self.leave(node.as_ref(), &leases, now);
        }
        self.ask(store, node.as_ref(), &leases, now)
    }

    fn note(&mut self) {
        let Some(node) = &self.seen else {
            return;
        };
        let written = node.lock.get().is_some_and(|lock| lock.run == self.run);
        self.has_closed |= written && node.seen.unschedulable;
        if matches!(&self.suspect, Suspect::Version(version) if *version != node.seen.resource_version)
        {
            self.suspect = Suspect::No;
        }
    }

    fn ask(
        &mut self,
        store: &Store,
        node: Option<&ApiNode>,
        leases: &[LeaseSeen],
        now: Now,
    ) -> Does {
        let me = Self::holder(self.node);
        let told = rules::answered(&self.run);
        let mine = leases
            .iter()
            .find(|lease| lease.holder.as_ref() == Some(&me));
        let runs = || {
            mine.iter()
                .flat_map(|lease| &lease.record)
                .flat_map(|record| &record.runs)
        };
        if runs().any(|run| *run == told) {
            return Does::Told;
        }
        if !runs().any(|run| *run == self.run) {
            return self.bid(mine, leases, now);
        }
        let seen = HoldSeen {
            holder: &me,
            run: &self.run,
            leases,
            node,
            verdict: self.verdict.take(),
            may_go: self.may_go,
            has_closed: self.has_closed,
            drained: self.has_closed,
        };
        match rules::hold(&seen, now.wall) {
            HoldStep::Count { lease, .. } => {
                let node = NodeName::new(name(self.node)).ok();
                let count = count_for(&store.reads(&lease), &me, node.as_ref());
                let max = Budget { max: self.max };
                let verdict = verdict(max, &count, &lease, Duration::MAX);
                self.may_go |= verdict == Verdict::Go;
                self.verdict = Some(verdict);
                Does::Nothing
            }
            HoldStep::Cordon { write } => {
                self.suspect = Suspect::Version(write.resource_version.clone());
                Does::Send(self.node_write(&write))
            }
            HoldStep::Answer { lease, record } => {
                Does::Send(Self::lease_write(&me, &lease, &record))
            }
            HoldStep::Drain | HoldStep::Fenced { .. } => Does::Nothing,
            HoldStep::Lost
            | HoldStep::Refuse { .. }
            | HoldStep::OverBudget { .. }
            | HoldStep::NodeGone { .. }
            | HoldStep::Vetoed { .. } => {
                self.leaves = true;
                Does::Nothing
            }
        }
    }

    fn bid(&mut self, mine: Option<&LeaseSeen>, leases: &[LeaseSeen], now: Now) -> Does {
        let free = || {
            leases
                .iter()
                .find(|lease| lease.holder.is_none() && lease.slot < self.max)
        };
        let Some(lease) = mine.or_else(free) else {
            return Does::Nothing;
        };
        let fresh = LockRecord {
            max: self.max,
            since: now.wall,
            ..record(&name(self.node), &[self.run.as_str()])
        };
        let record = rules::adopt(lease, &self.run, fresh, |_| false);
        self.bid = Some((lease.clone(), record.clone()));
        (self.may_go, self.has_closed) = (false, false);
        Does::Send(Self::lease_write(&Self::holder(self.node), lease, &record))
    }

    fn leave(&mut self, node: Option<&ApiNode>, leases: &[LeaseSeen], now: Now) -> Does {
        let me = Self::holder(self.node);
        let seen = LeaveSeen {
            holder: &me,
            run: &self.run,
            who: self.who,
            node,
            leases,
            bid: self.bid.as_ref().map(|bid| &bid.0),
            suspect: &self.suspect,
        };
        match rules::leave(&seen, now.wall) {
            LeaveStep::Done | LeaveStep::Unreadable { .. } => Does::Gone,
            LeaveStep::Settle { lease } => {
                let (_, record) = self.bid.take().unwrap();
                Does::Done(Self::lease_write(&me, &lease, &record))
            }
            LeaveStep::Claim { lease, record } => {
                // Suspicion of nothing does no harm.
                self.suspect = Suspect::Any;
                Does::Done(Self::lease_write(&me, &lease, &record))
            }
            LeaveStep::Remove { lease, record } => {
                Does::Done(Self::lease_write(&me, &lease, &record))
            }
            LeaveStep::Node { write } => Does::Done(self.node_write(&write)),
            LeaveStep::Free { lease } => Does::Done(Write::Free {
                given_back: 0,
                lease: *lease,
            }),
        }
    }

    /// The Node's write of a leaver has arrived: nothing that was sent for an older version can.
    pub(super) fn arrived(&mut self) {
        self.suspect = Suspect::No;
    }

    fn node_write(&self, write: &NodeWrite) -> Write {
        Write::Api {
            node: self.node,
            version: write.resource_version.parse().unwrap(),
            closes: write.unschedulable,
            lock: write.lock.clone(),
            max: self.max,
        }
    }

    fn lease_write(me: &HolderId, lease: &LeaseSeen, record: &LockRecord) -> Write {
        Write::Bid {
            lease: lease.clone(),
            holder: me.clone(),
            record: record.clone(),
        }
    }
}

impl Store {
    /// What the lock API reads of a node.
    fn api_node(&self, number: usize) -> Option<ApiNode> {
        let node = self.nodes[number].as_ref()?;
        let lock = node.api.clone().map_or(Parsed::Absent, Parsed::Is);
        let mut read = rules::node_kit::node(node.closed.is_some(), lock);
        read.seen.name = NodeName::new(name(number)).unwrap();
        read.seen.resource_version = node.version.to_string();
        let phase = node.record.as_ref().map(|(_, phase, _)| match phase {
            Phase::Waiting => "waiting",
            Phase::Out => "draining",
            Phase::Returning => "returning",
        });
        read.seen.record = phase.map_or(Parsed::Absent, |phase| {
            let text = format!(
                r#"{{"phase":"{phase}","run":"coordinator/x","since":"1970-01-01T00:00:00Z","bootId":"b",
                "planned":"1970-01-01T00:00:00Z","trigger":{{"source":"command"}},"cordonedByUs":true}}"#
            );
            Parsed::read(Some(&text))
        });
        Some(read)
    }
}
