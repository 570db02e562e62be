//! One run of a coordinator: what it has seen, and what it does with answers. The same rules as
//! the live loop's, without its sockets.

use std::time::Duration;

use super::super::kit;
use crate::Now;
use crate::lock::{self, LeaseSeen};
use crate::name::{BootId, GroupName, RunId};
use crate::reboot::*;

/// The moment of a count.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    /// The server's version.
    pub(super) version: u64,
    /// The version of the policies.
    pub(super) policies: usize,
    pub(super) members: u32,
}

pub(super) struct Process {
    pub(super) seen: Seen,
    pub(super) looks: Vec<Look>,
    /// A count whose reads were made and not yet told.
    pub(super) counted: Option<(CountSeen, Ground)>,
    /// What the count that it knows goes by.
    pub(super) ground: Option<Ground>,
    /// How many versions of the policies it has seen.
    pub(super) policies: usize,
    /// It stopped for a newer run, and only waits to be ended.
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

    pub(super) fn decide(&mut self, config: &Config, now: Now) -> Decision {
        let decision = decide(&self.seen, config, now);
        self.seen.run.decided(decision.because.reason, now);
        let group = |looks: &[Look]| looks.iter().find_map(group_of_look);
        let (before, after) = (group(&self.looks), group(&decision.looks));
        self.looks.clone_from(&decision.looks);
        self.forget(before.is_some() && after.is_some() && before != after);
        decision
    }

    /// What nobody looks at is forgotten.
    fn forget(&mut self, moved: bool) {
        let seen = &mut self.seen;
        let has = |wanted: fn(&Look) -> bool| self.looks.iter().any(wanted);
        if moved || !has(|look| matches!(look, Look::Locks { .. })) {
            seen.lock.leases = None;
            seen.lock.count = None;
            seen.run.waiting_since = None;
        }
        if !has(|look| matches!(look, Look::Count { .. })) {
            self.counted = None;
        }
        if !has(|look| matches!(look, Look::Drain { .. })) {
            seen.drain = None;
        }
        if !has(|look| matches!(look, Look::StartGates { .. })) {
            seen.start_gates = None;
        }
        if moved || self.looks.is_empty() {
            seen.lock.group_size = None;
        }
        if !has(|look| matches!(look, Look::Gates { .. })) {
            seen.gates = None;
        }
    }

    pub(super) fn saw_node(&mut self, node: &NodeSeen, now: Now) {
        if let NodeFact::There(old) = &self.seen.node
            && older(&node.resource_version, &old.resource_version)
        {
            return;
        }
        self.seen.run.saw(node.record.get(), now);
        let this_boot = self.seen.host.boot_id.as_ref().ok() == node.boot_id.as_ref();
        let since = self.seen.run.ready_since.unwrap_or(now.mono);
        self.seen.run.ready_since = (node.ready && this_boot).then_some(since);
        self.seen.node = NodeFact::There(Box::new(node.clone()));
    }

    /// A list or a watch of this group's; `None`: the one that concerns it now.
    pub(super) fn saw_leases(&mut self, leases: &[LeaseSeen], of: Option<GroupName>, now: Now) {
        let group = of.or_else(|| lock_group(&self.seen));
        for lease in leases {
            if group_of_lease(&lease.name) == group {
                self.saw_lease(lease, now);
            }
        }
    }

    pub(super) fn saw_lease(&mut self, lease: &LeaseSeen, now: Now) {
        let leases = self.seen.lock.leases.get_or_insert_default();
        match leases.iter_mut().find(|known| known.name == lease.name) {
            Some(known) if older(&lease.resource_version, &known.resource_version) => {}
            Some(known) => *known = lease.clone(),
            None => leases.push(lease.clone()),
        }
        let mine = lock::held_by(leases, &self.seen.run.holder).is_some();
        let held = leases.iter().any(|lease| lease.holder.is_some());
        let waiting = !mine && held;
        let since = self.seen.run.waiting_since.unwrap_or(now.mono);
        self.seen.run.waiting_since = waiting.then_some(since);
        let settled = |name: &String| leases.iter().any(|l| l.name == *name && l.holder.is_some());
        if self.seen.lock.unsettled.as_ref().is_some_and(settled) {
            self.seen.lock.unsettled = None;
        }
    }

    pub(super) fn saw_pods(&mut self, left: u32, refused: bool, now: Duration) {
        let drain = |look: &&Look| matches!(look, Look::Drain { .. });
        let Some(Look::Drain { delete, exclude }) = self.looks.iter().find(drain) else {
            return;
        };
        let (deleting, exclude) = (*delete, exclude.clone());
        // A policy that excludes anything excludes the model's one pod.
        let mut drain = if left == 0 || exclude.is_some() {
            kit::drained()
        } else {
            kit::one_pod_left()
        };
        if refused && !deleting && exclude.is_none() {
            let pod = kit::one_pod_left().progress.waiting.remove(0);
            drain.progress.waiting.clear();
            drain.progress.dropped = vec![crate::drain::Dropped {
                pod,
                answer: "403".into(),
            }];
        }
        drain.progress.deleting = deleting;
        drain.progress.exclude = exclude;
        drain.drained_since = drain.progress.drained().then_some(now);
        self.seen.drain = Some(drain);
    }

    pub(super) fn gave_back(&mut self, over_budget: bool, now: Now) {
        self.give_backs = if over_budget { self.give_backs + 1 } else { 0 };
        let pause = lock::give_back_pause(self.give_backs, 0.5);
        self.seen.run.bid_after = over_budget.then(|| now.mono + pause);
    }
}

/// As the live loop compares them.
fn group_of_look(look: &Look) -> Option<GroupName> {
    if let Look::Locks { group, .. } | Look::GroupSize { group } = look {
        return Some(group.clone());
    }
    None
}

fn older(new: &str, old: &str) -> bool {
    new.parse::<u64>().unwrap() < old.parse::<u64>().unwrap()
}
