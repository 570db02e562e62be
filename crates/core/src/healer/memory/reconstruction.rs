//! Builds a [`HealerMemory`] for a process that starts late, from the timestamps on the objects.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::super::snapshot::{HealerSnapshot, list_coordinator_conditions};
use super::{
    HealerMemory, LeaseMemory, NodeMemory, ProcessMemory, collect_request_processes,
    kubelet_posted_at,
};
use crate::Now;
use crate::lock::{ObservedLease, holder_node_name};
use crate::reboot::{ObservedNode, ParsedAnnotation};

impl HealerMemory {
    /// The memory of a healer that began to watch at `began`, as far as the objects carry
    /// timestamps; an event without a timestamp counts as having happened now. `now.mono` counts
    /// from `began`.
    ///
    /// For people only: the healer itself relies on no time that another process wrote.
    pub fn reconstruct_from_timestamps(
        seen: &HealerSnapshot,
        began: Timestamp,
        renewed: &BTreeMap<String, Timestamp>,
        now: Now,
    ) -> Self {
        let clock = TimestampClock { began, now };
        let nodes = seen.nodes.values();
        let leases = seen.leases.values();
        Self {
            nodes: nodes
                .map(|node| (node.name.clone(), clock.node_memory(node)))
                .collect(),
            leases: leases
                .map(|lease| (lease.name.clone(), clock.lease_memory(lease, seen)))
                .collect(),
            processes: clock.process_memories(seen, renewed),
        }
    }
}

/// When this Node's coordinator last gave a sign, as far as the signs carry timestamps.
pub(crate) fn last_coordinator_sign(node: &ObservedNode) -> Option<Timestamp> {
    let ours = list_coordinator_conditions(node);
    let conditions = ours.flat_map(|c| [c.last_heartbeat, c.last_transition]);
    let record = node.record.get().map(|record| record.since);
    let last = node.last_reboot.get().map(|last| last.finished);
    conditions.chain([record, last]).flatten().max()
}

struct TimestampClock {
    began: Timestamp,
    now: Now,
}

impl TimestampClock {
    fn now_at(&self, time: Option<Timestamp>) -> Now {
        let since_began = |time: Timestamp| time.duration_since(self.began);
        let mono = time.map_or(self.now.mono, |time| {
            Duration::try_from(since_began(time)).unwrap_or_default()
        });
        Now {
            mono: mono.min(self.now.mono),
            wall: self.now.wall,
        }
    }

    fn node_memory(&self, node: &ObservedNode) -> NodeMemory {
        let sign = last_coordinator_sign(node);
        let record = node.record.get();
        // The record's `since` belongs to the phase; a later attempt began with a later sign.
        let stage = record.map(|record| match record.attempts {
            0 | 1 => record.since,
            _ => sign.unwrap_or(record.since),
        });
        let ready = node.ready_condition();
        let known_since = record.map(|record| record.since.max(self.began));
        let unknown = self.now.mono;
        let at_sign = NodeMemory::from_observed_node(None, node, self.now_at(sign));
        NodeMemory {
            stage_since: self.now_at(stage).mono,
            usable: at_sign
                .usable
                .map(|(since, _)| (since, self.now_at(Some(since)).mono)),
            ready_since: self
                .now_at(ready.and_then(|ready| ready.last_transition))
                .mono,
            kubelet_posted: kubelet_posted_at(node) > known_since,
            abort_since: at_sign.abort_since.map(|_| unknown),
            api_lock_since: at_sign.api_lock_since.map(|_| unknown),
            ..at_sign
        }
    }

    fn lease_memory(&self, lease: &ObservedLease, seen: &HealerSnapshot) -> LeaseMemory {
        let taken = lease.record.as_ref().map(|record| record.since);
        let node = holder_node_name(lease).and_then(|name| seen.nodes.get(&name));
        let without = node.filter(|node| node.record == ParsedAnnotation::Absent);
        let ended = without.and_then(|node| node.last_reboot.get().map(|last| last.finished));
        LeaseMemory {
            without_record: without.map(|_| self.now_at(taken.max(ended)).mono),
            ..LeaseMemory::from_observed_lease(None, lease, self.now_at(taken))
        }
    }

    fn process_memories(
        &self,
        seen: &HealerSnapshot,
        renewed: &BTreeMap<String, Timestamp>,
    ) -> BTreeMap<String, ProcessMemory> {
        let mut all = BTreeMap::new();
        for lease in seen.leases.values() {
            let mut heard = BTreeMap::new();
            collect_request_processes(lease, &mut heard);
            let since = lease.record.as_ref().map(|record| record.since);
            let since = self.now_at(since).mono;
            for process in heard.into_keys() {
                let version = None;
                all.insert(process, ProcessMemory { version, since });
            }
        }
        for (process, presence) in &seen.presences {
            let version = Some((presence.uid.clone(), presence.resource_version.clone()));
            let since = self.now_at(renewed.get(process).copied()).mono;
            all.insert(process.clone(), ProcessMemory { version, since });
        }
        all
    }
}
