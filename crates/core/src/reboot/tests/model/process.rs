//! One run of a coordinator: what it has seen, and what it does with answers. The same rules as
//! the live loop's, without its sockets.

use std::time::Duration;

use super::super::kit;
use crate::Now;
use crate::lock::{self, LeaseSeen};
use crate::name::{BootId, RunId};
use crate::reboot::*;

pub(super) struct Process {
    pub(super) seen: Seen,
    pub(super) looks: Vec<Look>,
    /// A count whose reads were made and not yet told.
    pub(super) counted: Option<CountSeen>,
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
            stopped: false,
            give_backs: 0,
        }
    }

    pub(super) fn decide(&mut self, config: &Config, now: Now) -> Decision {
        let decision = decide(&self.seen, config, now);
        self.looks.clone_from(&decision.looks);
        self.forget();
        decision
    }

    /// What nobody looks at is forgotten.
    fn forget(&mut self) {
        let seen = &mut self.seen;
        let has = |wanted: fn(&Look) -> bool| self.looks.iter().any(wanted);
        if !has(|look| matches!(look, Look::Locks { .. })) {
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

    pub(super) fn saw_leases(&mut self, leases: &[LeaseSeen], now: Now) {
        for lease in leases {
            self.saw_lease(lease, now);
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
        let looked = |delete| {
            self.looks.contains(&Look::Drain {
                delete,
                exclude: None,
            })
        };
        let deleting = looked(true);
        if !deleting && !looked(false) {
            return;
        }
        let mut drain = if left == 0 {
            kit::drained()
        } else {
            kit::one_pod_left()
        };
        if refused && !deleting {
            let pod = kit::one_pod_left().progress.waiting.remove(0);
            drain.progress.waiting.clear();
            drain.progress.dropped = vec![crate::drain::Dropped {
                pod,
                answer: "403".into(),
            }];
        }
        drain.progress.deleting = deleting;
        drain.drained_since = drain.progress.drained().then_some(now);
        self.seen.drain = Some(drain);
    }

    pub(super) fn gave_back(&mut self, over_budget: bool, now: Now) {
        self.give_backs = if over_budget { self.give_backs + 1 } else { 0 };
        let pause = lock::give_back_pause(self.give_backs, 0.5);
        self.seen.run.bid_after = over_budget.then(|| now.mono + pause);
    }
}

fn older(new: &str, old: &str) -> bool {
    new.parse::<u64>().unwrap() < old.parse::<u64>().unwrap()
}
