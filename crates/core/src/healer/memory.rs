//! Since when each observed object has been unchanged, on the healer's own monotonic clock.
//!
//! The memory takes all observations in the order in which they arrive, and also the healer's own
//! writes, which must not count as a sign of a coordinator.

mod reconstruction;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::snapshot::{ObservedPresence, list_coordinator_conditions};
use crate::Now;
use crate::condition::CurrentCondition;
use crate::lock::{HolderId, ObservedLease};
use crate::name::{BootId, NodeName, RunId};
use crate::reboot::{LastReboot, ObservedNode, ParsedAnnotation, RebootPhase, RebootRecord};

pub(crate) use reconstruction::last_coordinator_sign;

/// What one leader has observed. The next leader begins with an empty memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HealerMemory {
    pub(super) nodes: BTreeMap<NodeName, NodeMemory>,
    pub(super) leases: BTreeMap<String, LeaseMemory>,
    /// Processes of the lock API that have a presence Lease or a request on a lock.
    pub(super) processes: BTreeMap<String, ProcessMemory>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodeMemory {
    version: String,
    sign: CoordinatorSign,
    /// Since when its coordinator gave no sign.
    pub(super) silent_since: Duration,
    stage: Option<RebootStage>,
    /// Since when the record has had this phase and attempt.
    pub(super) stage_since: Duration,
    /// The record's `usable`, and since when the record has had it.
    pub(super) usable: Option<(Timestamp, Duration)>,
    ready: Option<BootId>,
    ready_since: Duration,
    posted: Option<Timestamp>,
    /// Whether its kubelet has posted its status since the record was first seen: the boot id in
    /// the status is then no older than the record.
    pub(super) kubelet_posted: bool,
    /// Since when the Node has had an abort request.
    pub(super) abort_since: Option<Duration>,
    /// Since when the lock API has had the node out of service.
    pub(super) api_lock_since: Option<Duration>,
    /// The record that our own last write left on the Node, and when it was written.
    pub(super) last_own_write: Option<(ParsedAnnotation<RebootRecord>, Duration)>,
}

/// What a coordinator writes; any difference is a sign of life. The cordon is not part of it,
/// because others cordon too.
#[derive(Debug, Clone, PartialEq)]
struct CoordinatorSign {
    uid: String,
    record: ParsedAnnotation<RebootRecord>,
    last: ParsedAnnotation<LastReboot>,
    waiting_label: bool,
    conditions: Vec<CurrentCondition>,
}

type RebootStage = (RebootPhase, Timestamp, u32);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct LeaseMemory {
    uid: String,
    resource_version: String,
    /// Since when the Lease has been unchanged.
    pub(super) since: Duration,
    holder: Option<HolderId>,
    /// Since when this holder has held it, whatever it writes on it.
    pub(super) held_since: Duration,
    /// When a fresh read first showed that the holder's Node has no record; cleared when a record
    /// is seen.
    pub(super) without_record: Option<Duration>,
    /// Whether we have written the holder's Node since the Lease last changed: after that no older
    /// write of that Node can land.
    pub(super) holder_node_written: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProcessMemory {
    /// UID and version of its presence Lease; `None` while there is none.
    version: Option<(String, String)>,
    /// Since when `version` has been unchanged.
    pub(super) since: Duration,
}

impl HealerMemory {
    /// Takes all Nodes, Leases and presences that exist now, and forgets all others.
    pub fn observe_objects<'a>(
        &mut self,
        nodes: impl IntoIterator<Item = &'a ObservedNode>,
        leases: impl IntoIterator<Item = &'a ObservedLease>,
        presences: impl IntoIterator<Item = &'a ObservedPresence>,
        now: Now,
    ) {
        let mut known = std::mem::take(&mut self.nodes);
        for node in nodes {
            let before = known.remove(&node.name);
            let after = match before {
                Some(same) if same.matches_node(node) => same,
                before => NodeMemory::from_observed_node(before, node, now),
            };
            self.nodes.insert(node.name.clone(), after);
        }
        let mut known = std::mem::take(&mut self.leases);
        let mut processes = BTreeMap::new();
        for lease in leases {
            collect_request_processes(lease, &mut processes);
            self.restart_api_lock_wait(lease, now.mono);
            let before = known.remove(&lease.name);
            let after = LeaseMemory::from_observed_lease(before, lease, now);
            self.leases.insert(lease.name.clone(), after);
        }
        for presence in presences {
            let version = (presence.uid.clone(), presence.resource_version.clone());
            processes.insert(presence.process.clone(), Some(version));
        }
        self.observe_processes(processes, now);
        self.observe_records();
    }

    /// Takes the answer to our own write of this Node, which is no sign of its coordinator.
    pub fn record_node_write(&mut self, answer: &ObservedNode, now: Now) {
        let known = self.nodes.remove(&answer.name);
        let quiet_since = known.as_ref().map(|known| known.silent_since);
        let mut after = NodeMemory::from_observed_node(known, answer, now);
        after.silent_since = quiet_since.unwrap_or(now.mono);
        after.last_own_write = Some((answer.record.clone(), now.mono));
        self.nodes.insert(answer.name.clone(), after);
    }

    /// Takes the answer to our own write of conditions, which is no sign of the coordinator either.
    pub fn record_condition_write(&mut self, answer: &ObservedNode, now: Now) {
        let Some(known) = self.nodes.get(&answer.name).cloned() else {
            return;
        };
        let mut after = NodeMemory::from_observed_node(Some(known.clone()), answer, now);
        let others = CoordinatorSign {
            conditions: after.sign.conditions.clone(),
            ..known.sign
        };
        if others == after.sign {
            after.silent_since = known.silent_since;
        }
        self.nodes.insert(answer.name.clone(), after);
    }

    /// Takes a fresh read of a Node that holds a Lease; `empty`: it has no record.
    pub fn record_node_read(&mut self, holder: &HolderId, empty: bool, taken: Duration) {
        for lease in self.leases.values_mut() {
            if lease.holder.as_ref() == Some(holder) {
                let first = lease.without_record.unwrap_or(taken);
                lease.without_record = empty.then_some(first);
            }
        }
    }

    /// Takes the answer to our own write of the Node of this holder of the lock API.
    pub fn record_api_node_write(&mut self, holder: &HolderId) {
        for lease in self.leases.values_mut() {
            lease.holder_node_written |= lease.holder.as_ref() == Some(holder);
        }
    }

    /// Whether we made the last write on this Node.
    pub fn is_last_write_ours(&self, name: &NodeName) -> bool {
        self.node_memory(name)
            .is_some_and(|node| node.last_own_write.is_some())
    }

    pub(super) fn node_memory(&self, name: &NodeName) -> Option<&NodeMemory> {
        self.nodes.get(name)
    }

    /// Since when this process gave no sign; `None` if it is unknown.
    pub(super) fn process_silent_since(&self, process: &str) -> Option<Duration> {
        self.processes.get(process).map(|process| process.since)
    }

    fn observe_processes(
        &mut self,
        processes: BTreeMap<String, Option<(String, String)>>,
        now: Now,
    ) {
        let mut known = std::mem::take(&mut self.processes);
        for (process, version) in processes {
            let before = known.remove(&process);
            let same = before.filter(|before| before.version == version);
            let since = same.map_or(now.mono, |same| same.since);
            let memory = ProcessMemory { version, since };
            self.processes.insert(process, memory);
        }
    }

    /// A Node that is locked by the API waits for its process only from when no Lease is held for it.
    fn restart_api_lock_wait(&mut self, lease: &ObservedLease, now: Duration) {
        let locked = self.nodes.iter_mut();
        let locked = locked.filter(|(name, _)| lease.is_held_for_api_node(name));
        for (_, memory) in locked {
            memory.api_lock_since = memory.api_lock_since.map(|_| now);
        }
    }

    /// A holder whose Node has a record now was not without one all the time.
    fn observe_records(&mut self) {
        let with_record: Vec<HolderId> = self
            .nodes
            .iter()
            .filter(|(_, memory)| memory.sign.record != ParsedAnnotation::Absent)
            .map(|(name, _)| HolderId::for_node(name))
            .collect();
        for lease in self.leases.values_mut() {
            if lease
                .holder
                .as_ref()
                .is_some_and(|holder| with_record.contains(holder))
            {
                lease.without_record = None;
            }
        }
    }
}

/// Adds the processes whose requests rely on the lock, whether or not they have a presence Lease.
fn collect_request_processes(
    lease: &ObservedLease,
    processes: &mut BTreeMap<String, Option<(String, String)>>,
) {
    let runs = lease.record.iter().flat_map(|record| &record.runs);
    for process in runs.filter_map(unanswered_process) {
        processes.entry(process.to_owned()).or_insert(None);
    }
}

/// The process of a request that was not answered yet: `api/PROCESS/N`.
pub(super) fn unanswered_process(run: &RunId) -> Option<&str> {
    run.as_str()
        .strip_prefix("api/")?
        .rsplit_once('/')
        .map(|(process, _)| process)
}

impl NodeMemory {
    fn from_observed_node(before: Option<Self>, node: &ObservedNode, now: Now) -> Self {
        let sign = CoordinatorSign::from_node(node);
        let before = before.filter(|before| before.sign.uid == sign.uid);
        let stage = node.record.get().map(reboot_stage);
        let posted = kubelet_posted_at(node);
        let ready = ready_boot_id(node);
        let usable = node.record.get().and_then(|record| record.usable);
        let usable = usable.map(|since| (since, now.mono));
        let Some(before) = before else {
            return Self {
                version: node.resource_version.clone(),
                silent_since: now.mono,
                stage,
                stage_since: now.mono,
                usable,
                ready,
                ready_since: now.mono,
                posted,
                kubelet_posted: false,
                abort_since: (node.abort != ParsedAnnotation::Absent).then_some(now.mono),
                api_lock_since: node.api_lock.then_some(now.mono),
                last_own_write: None,
                sign,
            };
        };
        let same_stage = before.stage == stage;
        let quiet = before.sign == sign;
        let same_boot = boot_to_end(&before.sign.record) == boot_to_end(&node.record);
        Self {
            version: node.resource_version.clone(),
            silent_since: if quiet { before.silent_since } else { now.mono },
            stage_since: if same_stage {
                before.stage_since
            } else {
                now.mono
            },
            usable: usable.map(|new| before.usable.filter(|old| old.0 == new.0).unwrap_or(new)),
            kubelet_posted: same_boot && (before.kubelet_posted || before.posted != posted),
            ready_since: if before.ready == ready {
                before.ready_since
            } else {
                now.mono
            },
            abort_since: (node.abort != ParsedAnnotation::Absent)
                .then(|| before.abort_since.unwrap_or(now.mono)),
            api_lock_since: node
                .api_lock
                .then(|| before.api_lock_since.unwrap_or(now.mono)),
            last_own_write: before
                .last_own_write
                .filter(|(record, _)| *record == node.record),
            stage,
            ready,
            posted,
            sign,
        }
    }

    fn matches_node(&self, node: &ObservedNode) -> bool {
        self.version == node.resource_version && self.sign.uid == node.uid
    }

    /// Since when the Node has been Ready in this boot, without a break.
    pub(super) fn ready_since(&self) -> Option<Duration> {
        self.ready.is_some().then_some(self.ready_since)
    }
}

impl CoordinatorSign {
    fn from_node(node: &ObservedNode) -> Self {
        Self {
            uid: node.uid.clone(),
            record: node.record.clone(),
            last: node.last_reboot.clone(),
            waiting_label: node.waiting_label,
            conditions: list_coordinator_conditions(node).cloned().collect(),
        }
    }
}

fn boot_to_end(record: &ParsedAnnotation<RebootRecord>) -> Option<&BootId> {
    record.get().map(|record| &record.boot_id)
}

fn reboot_stage(record: &RebootRecord) -> RebootStage {
    (record.phase, record.since, record.attempts)
}

/// When the kubelet last posted, by its own clock. It is only compared for equality.
fn kubelet_posted_at(node: &ObservedNode) -> Option<Timestamp> {
    let ready = node.ready_condition();
    let ready = ready.filter(|ready| ready.status == "True");
    ready.and_then(|ready| ready.last_heartbeat)
}

fn ready_boot_id(node: &ObservedNode) -> Option<BootId> {
    node.boot_id.clone().filter(|_| node.ready)
}

impl LeaseMemory {
    fn from_observed_lease(before: Option<Self>, lease: &ObservedLease, now: Now) -> Self {
        let before = before.filter(|before| before.uid == lease.uid);
        let same_holder = before
            .as_ref()
            .filter(|before| before.holder == lease.holder);
        let held_since = same_holder.map_or(now.mono, |before| before.held_since);
        let same = same_holder.filter(|before| before.resource_version == lease.resource_version);
        Self {
            uid: lease.uid.clone(),
            resource_version: lease.resource_version.clone(),
            since: same.map_or(now.mono, |same| same.since),
            holder: lease.holder.clone(),
            held_since,
            without_record: same.and_then(|same| same.without_record),
            holder_node_written: same.is_some_and(|same| same.holder_node_written),
        }
    }
}
