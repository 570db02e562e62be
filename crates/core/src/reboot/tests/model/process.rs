//! One run of a coordinator: what it has seen, and how it handles answers. It follows the rules of
//! the live loop, without sockets.

use std::time::Duration;

use super::super::kit;
use crate::Now;
use crate::lock::{self, BidPause, ObservedLease};
use crate::name::{BootId, GroupName, RunId};
use crate::reboot::*;

/// The versions that a count was made at.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    /// The server's version.
    pub(super) version: u64,
    /// The version of the policies.
    pub(super) policies: usize,
    pub(super) members: u32,
}

pub(super) struct Process {
    pub(super) seen: RebootSnapshot,
    pub(super) looks: Vec<RebootObserve>,
    /// A count whose reads were made but not delivered yet.
    pub(super) counted: Option<(ObservedBudgetCount, Ground)>,
    /// The versions of the count that the process knows.
    pub(super) ground: Option<Ground>,
    /// How many versions of the policies the process has seen.
    pub(super) policies: usize,
    /// The process stopped because of a newer run, and waits to be ended.
    pub(super) stopped: bool,
    give_backs: u32,
}

impl Process {
    pub(super) fn new(name: &str, run: RunId, boot: BootId) -> Self {
        let seen = kit::first_sight(name, run, boot);
        Self {
            seen,
            looks: Vec::new(),
            counted: None,
            ground: None,
            policies: 0,
            stopped: false,
            give_backs: 0,
        }
    }

    pub(super) fn decide(&mut self, config: &RebootConfig, now: Now) -> RebootDecision {
        let decision = decide(&self.seen, config, now);
        self.seen.run.record_decision(decision.cause.reason, now);
        let group = |looks: &[RebootObserve]| looks.iter().find_map(group_of_look);
        let (before, after) = (group(&self.looks), group(&decision.observe));
        self.looks.clone_from(&decision.observe);
        self.forget(before.is_some() && after.is_some() && before != after);
        decision
    }

    /// Drops facts that no decision asks for.
    fn forget(&mut self, moved: bool) {
        let seen = &mut self.seen;
        let has = |wanted: fn(&RebootObserve) -> bool| self.looks.iter().any(wanted);
        if moved || !has(|look| matches!(look, RebootObserve::Locks { .. })) {
            seen.lock.leases = None;
            seen.lock.count = None;
            seen.run.waiting_since = None;
        }
        if !has(|look| matches!(look, RebootObserve::Count { .. })) {
            self.counted = None;
        }
        if !has(|look| matches!(look, RebootObserve::Drain { .. })) {
            seen.drain = None;
        }
        if !has(|look| matches!(look, RebootObserve::StartGates { .. })) {
            seen.start_gates = None;
        }
        if moved || self.looks.is_empty() {
            seen.lock.group_size = None;
        }
        if !has(|look| matches!(look, RebootObserve::Gates { .. })) {
            seen.gates = None;
        }
    }

    pub(super) fn saw_node(&mut self, node: &ObservedNode, now: Now) {
        if let OwnNodeState::There(old) = &self.seen.node
            && older(&node.resource_version, &old.resource_version)
        {
            return;
        }
        self.seen.run.observe_record(node.record.get(), now);
        let this_boot = self.seen.host.boot_id.as_ref().ok() == node.boot_id.as_ref();
        let since = self.seen.run.ready_since.unwrap_or(now.mono);
        self.seen.run.ready_since = (node.ready && this_boot).then_some(since);
        self.seen.node = OwnNodeState::There(Box::new(node.clone()));
    }

    /// Takes the Leases of this group from a list or a watch; `None`: the group that concerns the
    /// node now.
    pub(super) fn saw_leases(&mut self, leases: &[ObservedLease], of: Option<GroupName>, now: Now) {
        let group = of.or_else(|| lock_group(&self.seen));
        for lease in leases {
            if group_of_lease(&lease.name) == group {
                self.saw_lease(lease, now);
            }
        }
    }

    pub(super) fn saw_lease(&mut self, lease: &ObservedLease, now: Now) {
        let leases = self.seen.lock.leases.get_or_insert_default();
        match leases.iter_mut().find(|known| known.name == lease.name) {
            Some(known) if older(&lease.resource_version, &known.resource_version) => {}
            Some(known) => *known = lease.clone(),
            None => leases.push(lease.clone()),
        }
        let mine = lock::find_held_lease(leases, &self.seen.run.holder).is_some();
        let held = leases.iter().any(|lease| lease.holder.is_some());
        let waiting = !mine && held;
        let since = self.seen.run.waiting_since.unwrap_or(now.mono);
        self.seen.run.waiting_since = waiting.then_some(since);
        let settled = |name: &String| leases.iter().any(|l| l.name == *name && l.holder.is_some());
        if self.seen.lock.unsettled_bid.as_ref().is_some_and(settled) {
            self.seen.lock.unsettled_bid = None;
        }
    }

    pub(super) fn saw_pods(&mut self, left: u32, refused: bool, now: Duration) {
        let drain = |look: &&RebootObserve| matches!(look, RebootObserve::Drain { .. });
        let Some(RebootObserve::Drain { delete, rules }) = self.looks.iter().find(drain) else {
            return;
        };
        let (deleting, rules) = (*delete, rules.clone());
        // A policy that excludes any pods excludes the model's one pod.
        let mut drain = if left == 0 || rules.exclude.is_some() {
            kit::drained()
        } else {
            kit::one_pod_left()
        };
        if refused && !deleting && rules.exclude.is_none() {
            let pod = kit::one_pod_left().progress.waiting.remove(0);
            drain.progress.waiting.clear();
            drain.progress.dropped = vec![crate::drain::DroppedPod {
                pod,
                answer: "403".into(),
            }];
        }
        drain.progress.deleting = deleting;
        drain.progress.rules = rules;
        drain.drained_since = drain.progress.is_drained().then_some(now);
        self.seen.drain = Some(drain);
    }

    pub(super) fn gave_back(&mut self, over_budget: bool, now: Now) {
        self.give_backs = if over_budget { self.give_backs + 1 } else { 0 };
        let pause = BidPause::after_yield(self.give_backs, 0.5, now.mono);
        self.seen.run.bid_pause = over_budget.then_some(pause);
    }
}

/// Compares observations as the live loop does.
fn group_of_look(look: &RebootObserve) -> Option<GroupName> {
    if let RebootObserve::Locks { group, .. } | RebootObserve::GroupSize { group } = look {
        return Some(group.clone());
    }
    None
}

fn older(new: &str, old: &str) -> bool {
    new.parse::<u64>().unwrap() < old.parse::<u64>().unwrap()
}
