//! One run of a coordinator: what it has seen and remembers. It applies facts and answers as the
//! live loop does (`crates/coordinator/src/agent/facts.rs`).

use std::collections::BTreeMap;

use dogwatch_core::drain::{DrainProgress, PodIdentity};
use dogwatch_core::lock::{self, HeldLockLease, HolderId, ObservedLease};
use dogwatch_core::name::{BootId, NodeName, RunId};
use dogwatch_core::policy::ClusterPolicies;
use dogwatch_core::reboot::{
    HeldBackTime, ObservedDrain, ObservedLock, ObservedOwnHost, ObservedTrigger, OwnNodeState,
    RebootCommandState, RebootObserve, RebootSnapshot, RunMemory, TriggerFingerprint, TriggerState,
};
use dogwatch_core::resource_version::is_older_version;

use super::time::state_time;

#[derive(Debug, Clone, PartialEq)]
pub struct CoordinatorView {
    pub seen: RebootSnapshot,
    /// The first half of a count: the Leases are listed before the nodes.
    pub listed: Option<ListedLeases>,
    /// The budget was counted for the Lease that is held.
    pub counted: bool,
    /// The first of two reads of a holder's Node.
    pub first_look: Option<FirstLook>,
    /// A newer run has taken over.
    pub stopped: bool,
}

/// When the Leases may be listed for a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountList {
    AfterWin,
    /// Also before the win: only a mutation does that.
    AnyTime,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ListedLeases {
    pub held: Vec<HeldLockLease>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FirstLook {
    pub slot: usize,
    pub resource_version: String,
    pub node: lock::HolderNode,
}

/// What the coordinator knows of its own host at once, without the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LocalFacts {
    /// The sentinel file, if it is there.
    pub sentinel: bool,
    pub pods_left: bool,
}

pub const SENTINEL_SOURCE: &str = "sentinel:/run/reboot-needed";

impl CoordinatorView {
    pub fn new(name: &NodeName, run: RunId, boot: BootId) -> Self {
        Self {
            seen: RebootSnapshot {
                node: OwnNodeState::NotYet,
                host: ObservedOwnHost {
                    boot_id: Ok(boot),
                    soft_reboots: None,
                    triggers: Vec::new(),
                },
                policies: ClusterPolicies::Known(Vec::new()),
                lock: ObservedLock::default(),
                start_gates: None,
                drain: None,
                attachments: None,
                gates: None,
                observation_errors: BTreeMap::new(),
                run: new_run_memory(name, run),
            },
            listed: None,
            counted: false,
            first_look: None,
            stopped: false,
        }
    }

    pub fn observe_node(&mut self, node: OwnNodeState) {
        let seen = &mut self.seen;
        if let (OwnNodeState::There(new), OwnNodeState::There(old)) = (&node, &seen.node)
            && new.uid == old.uid
            && is_older_version(&new.resource_version, &old.resource_version)
        {
            return;
        }
        seen.node = node;
        if let OwnNodeState::There(node) = &seen.node {
            seen.run.observe_record(node.record.get(), state_time());
            let this_boot = seen.host.boot_id.as_ref().ok() == node.boot_id.as_ref();
            seen.run.ready_since = (node.ready && this_boot).then_some(state_time().mono);
        }
    }

    pub fn observe_leases<'a>(&mut self, leases: impl Iterator<Item = &'a ObservedLease>) {
        let known = self.seen.lock.leases.take().unwrap_or_default();
        let merged = leases.map(|lease| {
            let known = known.iter().find(|known| known.uid == lease.uid);
            lock::merge_observed_lease(known, lease.clone(), state_time())
        });
        self.seen.lock.leases = Some(merged.collect());
        self.update_lock_state();
    }

    pub fn observe_lease(&mut self, lease: &ObservedLease) {
        let leases = self.seen.lock.leases.get_or_insert_default();
        match leases.iter_mut().find(|known| known.name == lease.name) {
            Some(known) => {
                *known = lock::merge_observed_lease(Some(known), lease.clone(), state_time());
            }
            None => leases.push(lease.clone()),
        }
        self.update_lock_state();
    }

    fn update_lock_state(&mut self) {
        let seen = &mut self.seen;
        let leases = seen.lock.leases.as_deref().unwrap_or_default();
        let mine = lock::find_held_lease(leases, &seen.run.holder).is_some();
        let held = leases.iter().any(|lease| lease.holder.is_some());
        let settled = |name: &String| {
            let mut leases = leases.iter();
            leases.any(|lease| lease.name == *name && lease.holder.is_some())
        };
        let settled = seen.lock.unsettled_bid.as_ref().is_some_and(settled);
        let mono = state_time().mono;
        seen.run.leftover_lock_released |= !mine;
        seen.lock.won_at = mine.then_some(mono);
        seen.run.waiting_since = (!mine && held).then_some(mono);
        if settled {
            seen.lock.unsettled_bid = None;
        }
    }

    /// Facts of the host that the decisions ask for, and no others: a stale fact is worse than none.
    pub fn settle_local_facts(
        &mut self,
        local: LocalFacts,
        looks: &[RebootObserve],
        list_of: CountList,
    ) {
        let state = if local.sentinel {
            TriggerState::Present {
                fingerprint: TriggerFingerprint("1".into()),
                reason: "kernel".into(),
            }
        } else {
            TriggerState::Absent
        };
        let source = SENTINEL_SOURCE.into();
        self.seen.host.triggers = vec![ObservedTrigger { source, state }];
        let has = |wanted: fn(&RebootObserve) -> bool| looks.iter().any(wanted);
        let seen = &mut self.seen;
        if !has(|look| matches!(look, RebootObserve::Locks { .. })) {
            seen.lock.leases = None;
            seen.lock.count = None;
            seen.lock.holder = None;
            seen.lock.won_at = None;
            seen.run.waiting_since = None;
        }
        let keeps_list = match list_of {
            CountList::AfterWin => has(|look| matches!(look, RebootObserve::Count { .. })),
            CountList::AnyTime => has(|look| matches!(look, RebootObserve::Locks { .. })),
        };
        if !keeps_list {
            self.listed = None;
        }
        self.forget_stale_count();
        let seen = &mut self.seen;
        let drain = looks.iter().find_map(drain_look);
        seen.drain = drain.map(|delete| observed_drain(local.pods_left, delete));
        let attachments = has(|look| matches!(look, RebootObserve::Attachments { .. }));
        seen.attachments = attachments.then(Vec::new);
        let gates = has(|look| matches!(look, RebootObserve::Gates { .. }));
        seen.gates = gates.then(Vec::new);
    }

    /// A count for another version of our Lease is as good as none, to the decisions as well.
    fn forget_stale_count(&mut self) {
        let lock = &mut self.seen.lock;
        let leases = lock.leases.as_deref().unwrap_or_default();
        let own = lock::find_held_lease(leases, &self.seen.run.holder);
        let own = own.map(|lease| lease.resource_version.as_str());
        lock.count
            .take_if(|count| own != Some(count.count.for_resource_version.as_str()));
        if lock.count.is_none() {
            self.counted = false;
        }
    }
}

fn drain_look(look: &RebootObserve) -> Option<bool> {
    if let RebootObserve::Drain { delete, .. } = look {
        return Some(*delete);
    }
    None
}

fn observed_drain(pods_left: bool, deleting: bool) -> ObservedDrain {
    let pod = || PodIdentity {
        namespace: "a".into(),
        name: "p".into(),
        uid: "u".into(),
    };
    let progress = DrainProgress {
        listed: true,
        deleting,
        waiting: pods_left.then(pod).into_iter().collect(),
        ..DrainProgress::default()
    };
    ObservedDrain {
        drained_since: (!pods_left).then_some(state_time().mono),
        progress,
    }
}

fn new_run_memory(name: &NodeName, run: RunId) -> RunMemory {
    RunMemory {
        id: run,
        holder: HolderId::for_node(name),
        jitter: 0.5,
        owned_since: None,
        phase: None,
        usable: None,
        permit: None,
        adopted_attempt: None,
        command: RebootCommandState::None,
        ready_since: None,
        bid_pause: None,
        leftover_lock_released: false,
        refused: false,
        permission_since: None,
        held_back: HeldBackTime::default(),
        waiting_since: None,
        break_forbidden: false,
        unanswered_patch_version: None,
    }
}
