//! What somebody who comes late can know: since when things are as they are, by the times that stand on
//! the objects.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::super::seen::{CONDITIONS, Seen};
use super::{LeaseMemory, Memory, NodeMemory, ProcessMemory, note_processes, posted};
use crate::Now;
use crate::lock::{LeaseSeen, holder_node_name};
use crate::reboot::{NodeSeen, Parsed};

impl Memory {
    /// As the healer's would be that began to watch at `began`, as far as what it watched says when it
    /// happened; what does not say it has happened now. `now.mono` counts from `began`.
    ///
    /// For people alone: the healer itself goes by no time that somebody else wrote.
    pub fn told(
        seen: &Seen,
        began: Timestamp,
        renewed: &BTreeMap<String, Timestamp>,
        now: Now,
    ) -> Self {
        let clock = Clock { began, now };
        let nodes = seen.nodes.values();
        let leases = seen.leases.values();
        Self {
            nodes: nodes
                .map(|node| (node.name.clone(), clock.node(node)))
                .collect(),
            leases: leases
                .map(|lease| (lease.name.clone(), clock.lease(lease, seen)))
                .collect(),
            processes: clock.processes(seen, renewed),
        }
    }
}

/// When this Node's coordinator last gave a sign, as far as the signs say when.
pub(crate) fn last_sign(node: &NodeSeen) -> Option<Timestamp> {
    let conditions = node.conditions.iter();
    let ours = conditions.filter(|c| CONDITIONS.contains(&c.kind.as_str()));
    let conditions = ours.flat_map(|c| [c.last_heartbeat, c.last_transition]);
    let record = node.record.get().map(|record| record.since);
    let last = node.last.get().map(|last| last.finished);
    conditions.chain([record, last]).flatten().max()
}

struct Clock {
    began: Timestamp,
    now: Now,
}

impl Clock {
    fn at(&self, time: Option<Timestamp>) -> Now {
        let since_began = |time: Timestamp| time.duration_since(self.began);
        let mono = time.map_or(self.now.mono, |time| {
            Duration::try_from(since_began(time)).unwrap_or_default()
        });
        Now {
            mono: mono.min(self.now.mono),
            wall: self.now.wall,
        }
    }

    fn node(&self, node: &NodeSeen) -> NodeMemory {
        let sign = last_sign(node);
        let record = node.record.get();
        // Its `since` is that of the phase; a later attempt began at some later sign.
        let stage = record.map(|record| match record.attempts {
            0 | 1 => record.since,
            _ => sign.unwrap_or(record.since),
        });
        let ready = node.conditions.iter().find(|c| c.kind == "Ready");
        let known_since = record.map(|record| record.since.max(self.began));
        let unknown = self.now.mono;
        let at_sign = NodeMemory::seen(None, node, self.at(sign));
        NodeMemory {
            stage_since: self.at(stage).mono,
            ready_since: self.at(ready.and_then(|ready| ready.last_transition)).mono,
            kubelet_posted: posted(node) > known_since,
            abort_since: at_sign.abort_since.map(|_| unknown),
            api_lock_since: at_sign.api_lock_since.map(|_| unknown),
            ..at_sign
        }
    }

    fn lease(&self, lease: &LeaseSeen, seen: &Seen) -> LeaseMemory {
        let taken = lease.record.as_ref().map(|record| record.since);
        let node = holder_node_name(lease).and_then(|name| seen.nodes.get(&name));
        let without = node.filter(|node| node.record == Parsed::Absent);
        let ended = without.and_then(|node| node.last.get().map(|last| last.finished));
        LeaseMemory {
            without_record: without.map(|_| self.at(taken.max(ended)).mono),
            ..LeaseMemory::seen(None, lease, self.at(taken))
        }
    }

    fn processes(
        &self,
        seen: &Seen,
        renewed: &BTreeMap<String, Timestamp>,
    ) -> BTreeMap<String, ProcessMemory> {
        let mut all = BTreeMap::new();
        for lease in seen.leases.values() {
            let mut heard = BTreeMap::new();
            note_processes(lease, &mut heard);
            let since = lease.record.as_ref().map(|record| record.since);
            let since = self.at(since).mono;
            for process in heard.into_keys() {
                let version = None;
                all.insert(process, ProcessMemory { version, since });
            }
        }
        for (process, presence) in &seen.presences {
            let version = Some((presence.uid.clone(), presence.resource_version.clone()));
            let since = self.at(renewed.get(process).copied()).mono;
            all.insert(process.clone(), ProcessMemory { version, since });
        }
        all
    }
}
