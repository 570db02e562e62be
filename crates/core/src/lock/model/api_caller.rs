//! One lock or unlock call of the lock API for a node of the model. It follows `api_lock`'s own
//! rules, and its reads may be stale when it acts on them.

use std::time::Duration;

use super::super::api_lock::{
    self as rules, ApiNode, CordonInFlight, HoldSnapshot, HoldStep, LeaveSnapshot, LeaveStep,
    LeavingParty, NodeWrite,
};
use super::super::testkit::record;
use super::super::*;
use super::node_name;
use super::store::{ModelPhase, ModelStore, ModelWrite};
use crate::Now;
use crate::name::{NodeName, RunId};
use crate::reboot::ParsedAnnotation;

#[expect(
    clippy::struct_excessive_bools,
    reason = "what the shell knows, as it knows it"
)]
#[derive(Debug, Clone)]
pub(super) struct LockApiCaller {
    pub(super) node: usize,
    pub(super) run: RunId,
    pub(super) who: LeavingParty,
    pub(super) max: u32,
    pub(super) leaves: bool,
    /// The same host has unlocked since: what this call is told may be outdated.
    pub(super) overtaken: bool,
    /// The Node was read, whether or not it exists.
    has_read: bool,
    seen: Option<ApiNode>,
    leases: Option<Vec<ObservedLease>>,
    verdict: Option<BudgetVerdict>,
    may_go: bool,
    has_closed: bool,
    bid: Option<(ObservedLease, LockRecord)>,
    suspect: CordonInFlight,
}

#[derive(Debug)]
pub(super) enum CallerStep {
    Nothing,
    /// Sends a write; the caller learns by reading whether it arrived.
    Send(ModelWrite),
    /// Sends a write that is answered at once.
    Done(ModelWrite),
    Told,
    Gone,
}

impl LockApiCaller {
    pub(super) fn new(node: usize, run: RunId, who: LeavingParty, max: u32) -> Self {
        Self {
            node,
            run,
            who,
            max,
            leaves: who == LeavingParty::Host,
            overtaken: false,
            has_read: false,
            seen: None,
            leases: None,
            verdict: None,
            may_go: false,
            has_closed: false,
            bid: None,
            suspect: CordonInFlight::No,
        }
    }

    pub(super) fn holder_id(node: usize) -> HolderId {
        HolderId::for_api_host(&node_name(node))
    }

    /// One read, or one decision on what was read.
    pub(super) fn next_step(&mut self, store: &ModelStore, now: Now) -> CallerStep {
        if !self.has_read {
            (self.has_read, self.seen) = (true, store.api_node(self.node));
            self.note_own_writes();
            return CallerStep::Nothing;
        }
        let Some(leases) = self.leases.take() else {
            self.leases = Some(store.leases.values().cloned().collect());
            return CallerStep::Nothing;
        };
        self.has_read = false;
        let node = self.seen.take();
        if self.leaves {
            return self.leave_lock(node.as_ref(), &leases, now);
        }
        self.decide_request(store, node.as_ref(), &leases, now)
    }

    fn note_own_writes(&mut self) {
        let Some(node) = &self.seen else {
            return;
        };
        let written = node.lock.get().is_some_and(|lock| lock.run == self.run);
        self.has_closed |= written && node.seen.unschedulable;
        if matches!(&self.suspect, CordonInFlight::Version(version) if *version != node.seen.resource_version)
        {
            self.suspect = CordonInFlight::No;
        }
    }

    fn decide_request(
        &mut self,
        store: &ModelStore,
        node: Option<&ApiNode>,
        leases: &[ObservedLease],
        now: Now,
    ) -> CallerStep {
        let me = Self::holder_id(self.node);
        let told = rules::answered_run_id(&self.run);
        let mine = leases
            .iter()
            .find(|lease| lease.holder.as_ref() == Some(&me));
        let runs = || {
            mine.iter()
                .flat_map(|lease| &lease.record)
                .flat_map(|record| &record.runs)
        };
        if runs().any(|run| *run == told) {
            return CallerStep::Told;
        }
        if !runs().any(|run| *run == self.run) {
            return self.bid_for_lease(mine, leases, now);
        }
        let seen = HoldSnapshot {
            holder: &me,
            run: &self.run,
            leases,
            node,
            verdict: self.verdict.take(),
            may_go: self.may_go,
            has_closed: self.has_closed,
            drained: self.has_closed,
        };
        match rules::decide_hold(&seen, now.wall) {
            HoldStep::Count { lease, .. } => {
                let node = NodeName::new(node_name(self.node)).ok();
                let count =
                    count_unavailable_for_node(&store.budget_reads(&lease), &me, node.as_ref());
                let max = GroupBudget { max: self.max };
                let verdict = decide_budget(max, &count, &lease, Duration::MAX);
                self.may_go |= verdict == BudgetVerdict::Go;
                self.verdict = Some(verdict);
                CallerStep::Nothing
            }
            HoldStep::Cordon { write, .. } => {
                self.suspect = CordonInFlight::Version(write.resource_version.clone());
                CallerStep::Send(self.node_write(&write))
            }
            HoldStep::Answer { lease, record } => {
                CallerStep::Send(Self::lease_write(&me, &lease, &record))
            }
            HoldStep::Drain { .. } | HoldStep::Fenced { .. } => CallerStep::Nothing,
            HoldStep::Lost
            | HoldStep::Unlocked { .. }
            | HoldStep::Refuse { .. }
            | HoldStep::OverBudget { .. }
            | HoldStep::NodeGone { .. }
            | HoldStep::NodeAppeared { .. }
            | HoldStep::Vetoed { .. } => {
                self.leaves = true;
                CallerStep::Nothing
            }
        }
    }

    fn bid_for_lease(
        &mut self,
        mine: Option<&ObservedLease>,
        leases: &[ObservedLease],
        now: Now,
    ) -> CallerStep {
        let free = || {
            leases
                .iter()
                .find(|lease| lease.holder.is_none() && lease.slot < self.max)
        };
        let Some(lease) = mine.or_else(free) else {
            return CallerStep::Nothing;
        };
        let fresh = LockRecord {
            max: self.max,
            since: now.wall,
            ..record(&node_name(self.node), &[self.run.as_str()])
        };
        let record = rules::adopt_request_record(lease, &self.run, fresh, |_| false);
        self.bid = Some((lease.clone(), record.clone()));
        (self.may_go, self.has_closed) = (false, false);
        CallerStep::Send(Self::lease_write(
            &Self::holder_id(self.node),
            lease,
            &record,
        ))
    }

    fn leave_lock(
        &mut self,
        node: Option<&ApiNode>,
        leases: &[ObservedLease],
        now: Now,
    ) -> CallerStep {
        let me = Self::holder_id(self.node);
        let seen = LeaveSnapshot {
            holder: &me,
            run: &self.run,
            who: self.who,
            node,
            leases,
            bid: self.bid.as_ref().map(|bid| &bid.0),
            suspect: &self.suspect,
        };
        match rules::decide_leave(&seen, now.wall) {
            LeaveStep::Done | LeaveStep::Unreadable { .. } => CallerStep::Gone,
            LeaveStep::Settle { lease } => {
                let (_, record) = self.bid.take().unwrap();
                CallerStep::Done(Self::lease_write(&me, &lease, &record))
            }
            LeaveStep::Claim { lease, record } => {
                // Suspecting a cordon that was never sent does no harm.
                self.suspect = CordonInFlight::Any;
                CallerStep::Done(Self::lease_write(&me, &lease, &record))
            }
            LeaveStep::Remove { lease, record } => {
                CallerStep::Done(Self::lease_write(&me, &lease, &record))
            }
            LeaveStep::Node { write } => CallerStep::Done(self.node_write(&write)),
            LeaveStep::Free { lease } => CallerStep::Done(ModelWrite::Free {
                given_back: 0,
                lease: *lease,
            }),
        }
    }

    /// The leaving call's Node write has arrived: no write for an older version can succeed any
    /// more.
    pub(super) fn node_write_arrived(&mut self) {
        self.suspect = CordonInFlight::No;
    }

    fn node_write(&self, write: &NodeWrite) -> ModelWrite {
        ModelWrite::Api {
            node: self.node,
            version: write.resource_version.parse().unwrap(),
            closes: write.unschedulable,
            lock: write.lock.clone(),
            max: self.max,
        }
    }

    fn lease_write(me: &HolderId, lease: &ObservedLease, record: &LockRecord) -> ModelWrite {
        ModelWrite::Bid {
            lease: lease.clone(),
            holder: me.clone(),
            record: record.clone(),
        }
    }
}

impl ModelStore {
    fn api_node(&self, number: usize) -> Option<ApiNode> {
        let node = self.nodes[number].as_ref()?;
        let lock = node
            .api
            .clone()
            .map_or(ParsedAnnotation::Absent, ParsedAnnotation::Is);
        let mut read = rules::node_kit::node(node.closed.is_some(), lock);
        read.seen.name = NodeName::new(node_name(number)).unwrap();
        read.seen.resource_version = node.version.to_string();
        let phase = node.record.as_ref().map(|(_, phase, _)| match phase {
            ModelPhase::Waiting => "waiting",
            ModelPhase::Out => "draining",
            ModelPhase::Returning => "returning",
        });
        read.seen.record = phase.map_or(ParsedAnnotation::Absent, |phase| {
            let text = format!(
                r#"{{"phase":"{phase}","run":"coordinator/x","since":"1970-01-01T00:00:00Z","bootId":"b",
                "planned":"1970-01-01T00:00:00Z","trigger":{{"source":"command"}},"cordonedByUs":true}}"#
            );
            ParsedAnnotation::from_text(Some(&text))
        });
        Some(read)
    }
}
