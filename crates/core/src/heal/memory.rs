//! Since when what is seen is as it is, on the healer's own monotonic clock.
//!
//! It is told of everything in the order in which it is learnt, its own writes included: those are
//! no sign of anybody else.

mod told;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::seen::{CONDITIONS, PresenceSeen};
use crate::Now;
use crate::condition::Condition;
use crate::lock::{HolderId, LeaseSeen};
use crate::name::{BootId, NodeName, RunId};
use crate::reboot::{LastReboot, NodeSeen, Parsed, Phase, Record};

pub(crate) use told::last_sign;

/// What one leader has watched. The next one begins with an empty one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Memory {
    pub(super) nodes: BTreeMap<NodeName, NodeMemory>,
    pub(super) leases: BTreeMap<String, LeaseMemory>,
    /// Processes of the lock API that were heard of, by a presence or by a run of theirs.
    pub(super) processes: BTreeMap<String, ProcessMemory>,
}

/// One Node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodeMemory {
    version: String,
    sign: Sign,
    /// Since when its coordinator gave no sign.
    pub(super) quiet_since: Duration,
    stage: Option<Stage>,
    /// Since when the record's phase and attempt are what they are.
    pub(super) stage_since: Duration,
    ready: Option<BootId>,
    ready_since: Duration,
    posted: Option<Timestamp>,
    /// Whether its kubelet has posted its status since the record was first seen: the boot id that
    /// stands there is then no older than the record.
    pub(super) kubelet_posted: bool,
    /// Since when an abort stands there.
    pub(super) abort_since: Option<Duration>,
    /// Since when the lock API has it out of service.
    pub(super) api_lock_since: Option<Duration>,
    /// What our own last write left there, and when.
    pub(super) ours: Option<(Parsed<Record>, Duration)>,
}

/// What its coordinator writes; any difference is a sign of life. Whether the node is cordoned is
/// not among it: others do that too.
#[derive(Debug, Clone, PartialEq)]
struct Sign {
    uid: String,
    record: Parsed<Record>,
    last: Parsed<LastReboot>,
    waiting_label: bool,
    conditions: Vec<Condition>,
}

type Stage = (Phase, Timestamp, u32);

/// One Lease.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LeaseMemory {
    uid: String,
    resource_version: String,
    /// Since when it is as it is.
    pub(super) since: Duration,
    holder: Option<HolderId>,
    /// Since when this holder has it, whatever it writes there.
    pub(super) held_since: Duration,
    /// When a fresh read first showed that its holder's Node has no record, and every later look
    /// the same.
    pub(super) without_record: Option<Duration>,
    /// Whether we have written the holder's Node since the Lease is as it is: no older write of
    /// that Node can land any more.
    pub(super) fenced: bool,
}

/// One process of the lock API.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProcessMemory {
    /// UID and version of its presence; `None` while there is none.
    version: Option<(String, String)>,
    /// Since when that is so.
    pub(super) since: Duration,
}

impl Memory {
    /// What is seen now: Nodes, Leases, presences. What is in none of them is forgotten.
    pub fn saw<'a>(
        &mut self,
        nodes: impl IntoIterator<Item = &'a NodeSeen>,
        leases: impl IntoIterator<Item = &'a LeaseSeen>,
        presences: impl IntoIterator<Item = &'a PresenceSeen>,
        now: Now,
    ) {
        let mut known = std::mem::take(&mut self.nodes);
        for node in nodes {
            let before = known.remove(&node.name);
            let after = match before {
                Some(same) if same.is_of(node) => same,
                before => NodeMemory::seen(before, node, now),
            };
            self.nodes.insert(node.name.clone(), after);
        }
        let mut known = std::mem::take(&mut self.leases);
        let mut processes = BTreeMap::new();
        for lease in leases {
            note_processes(lease, &mut processes);
            let before = known.remove(&lease.name);
            let after = LeaseMemory::seen(before, lease, now);
            self.leases.insert(lease.name.clone(), after);
        }
        for presence in presences {
            let version = (presence.uid.clone(), presence.resource_version.clone());
            processes.insert(presence.process.clone(), Some(version));
        }
        self.saw_processes(processes, now);
        self.saw_records();
    }

    /// Our own write of this Node was answered: what it left there is no sign of its coordinator.
    pub fn wrote_node(&mut self, answer: &NodeSeen, now: Now) {
        let known = self.nodes.remove(&answer.name);
        let quiet_since = known.as_ref().map(|known| known.quiet_since);
        let mut after = NodeMemory::seen(known, answer, now);
        after.quiet_since = quiet_since.unwrap_or(now.mono);
        after.ours = Some((answer.record.clone(), now.mono));
        self.nodes.insert(answer.name.clone(), after);
    }

    /// Our own write of conditions was answered: no sign either.
    pub fn wrote_conditions(&mut self, answer: &NodeSeen, now: Now) {
        let Some(known) = self.nodes.get(&answer.name).cloned() else {
            return;
        };
        let mut after = NodeMemory::seen(Some(known.clone()), answer, now);
        let others = Sign {
            conditions: after.sign.conditions.clone(),
            ..known.sign
        };
        if others == after.sign {
            after.quiet_since = known.quiet_since;
        }
        self.nodes.insert(answer.name.clone(), after);
    }

    /// A fresh read of a Node that holds a Lease said whether there is a record.
    pub fn read_node(&mut self, holder: &HolderId, empty: bool, taken: Duration) {
        for lease in self.leases.values_mut() {
            if lease.holder.as_ref() == Some(holder) {
                let first = lease.without_record.unwrap_or(taken);
                lease.without_record = empty.then_some(first);
            }
        }
    }

    /// Our own write of the Node of this holder of the lock API was answered.
    pub fn wrote_api_node(&mut self, holder: &HolderId) {
        for lease in self.leases.values_mut() {
            lease.fenced |= lease.holder.as_ref() == Some(holder);
        }
    }

    /// Whether what stands on this Node was written by us.
    pub fn is_ours(&self, name: &NodeName) -> bool {
        self.node(name).is_some_and(|node| node.ours.is_some())
    }

    pub(super) fn node(&self, name: &NodeName) -> Option<&NodeMemory> {
        self.nodes.get(name)
    }

    /// Since when this process gave no sign; `None` if nothing was heard of it yet.
    pub(super) fn process_silent_since(&self, process: &str) -> Option<Duration> {
        self.processes.get(process).map(|process| process.since)
    }

    fn saw_processes(&mut self, processes: BTreeMap<String, Option<(String, String)>>, now: Now) {
        let mut known = std::mem::take(&mut self.processes);
        for (process, version) in processes {
            let before = known.remove(&process);
            let same = before.filter(|before| before.version == version);
            let since = same.map_or(now.mono, |same| same.since);
            let memory = ProcessMemory { version, since };
            self.processes.insert(process, memory);
        }
    }

    /// A record that is there now was not missing all the time.
    fn saw_records(&mut self) {
        let with_record: Vec<HolderId> = self
            .nodes
            .iter()
            .filter(|(_, memory)| memory.sign.record != Parsed::Absent)
            .map(|(name, _)| HolderId::node(name))
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

/// The processes whose requests rely on a lock, present or not.
fn note_processes(lease: &LeaseSeen, processes: &mut BTreeMap<String, Option<(String, String)>>) {
    let runs = lease.record.iter().flat_map(|record| &record.runs);
    for process in runs.filter_map(unanswered_process) {
        processes.entry(process.to_owned()).or_insert(None);
    }
}

/// The process of a request that nobody was answered: `api/PROCESS/N`.
pub(super) fn unanswered_process(run: &RunId) -> Option<&str> {
    run.as_str()
        .strip_prefix("api/")?
        .rsplit_once('/')
        .map(|(process, _)| process)
}

impl NodeMemory {
    fn seen(before: Option<Self>, node: &NodeSeen, now: Now) -> Self {
        let sign = Sign::of(node);
        let before = before.filter(|before| before.sign.uid == sign.uid);
        let stage = node.record.get().map(stage);
        let posted = posted(node);
        let ready = ready(node);
        let Some(before) = before else {
            return Self {
                version: node.resource_version.clone(),
                quiet_since: now.mono,
                stage,
                stage_since: now.mono,
                ready,
                ready_since: now.mono,
                posted,
                kubelet_posted: false,
                abort_since: (node.abort != Parsed::Absent).then_some(now.mono),
                api_lock_since: node.api_lock.then_some(now.mono),
                ours: None,
                sign,
            };
        };
        let same_stage = before.stage == stage;
        let quiet = before.sign == sign;
        let same_boot = ended(&before.sign.record) == ended(&node.record);
        Self {
            version: node.resource_version.clone(),
            quiet_since: if quiet { before.quiet_since } else { now.mono },
            stage_since: if same_stage {
                before.stage_since
            } else {
                now.mono
            },
            kubelet_posted: same_boot && (before.kubelet_posted || before.posted != posted),
            ready_since: if before.ready == ready {
                before.ready_since
            } else {
                now.mono
            },
            abort_since: (node.abort != Parsed::Absent)
                .then(|| before.abort_since.unwrap_or(now.mono)),
            api_lock_since: node
                .api_lock
                .then(|| before.api_lock_since.unwrap_or(now.mono)),
            ours: before.ours.filter(|(record, _)| *record == node.record),
            stage,
            ready,
            posted,
            sign,
        }
    }

    /// Nothing of it has changed.
    fn is_of(&self, node: &NodeSeen) -> bool {
        self.version == node.resource_version && self.sign.uid == node.uid
    }

    /// Since when the Node is Ready in this boot, without a break.
    pub(super) fn ready_since(&self) -> Option<Duration> {
        self.ready.is_some().then_some(self.ready_since)
    }
}

impl Sign {
    fn of(node: &NodeSeen) -> Self {
        let conditions = node.conditions.iter();
        let ours = conditions.filter(|c| CONDITIONS.contains(&c.kind.as_str()));
        Self {
            uid: node.uid.clone(),
            record: node.record.clone(),
            last: node.last.clone(),
            waiting_label: node.waiting_label,
            conditions: ours.cloned().collect(),
        }
    }
}

/// The boot that is to be ended.
fn ended(record: &Parsed<Record>) -> Option<&BootId> {
    record.get().map(|record| &record.boot_id)
}

fn stage(record: &Record) -> Stage {
    (record.phase, record.since, record.attempts)
}

/// When the kubelet last posted, as it says: only whether it differs means anything.
fn posted(node: &NodeSeen) -> Option<Timestamp> {
    let mut conditions = node.conditions.iter();
    let ready = conditions.find(|c| c.kind == "Ready" && c.status == "True");
    ready.and_then(|ready| ready.last_heartbeat)
}

fn ready(node: &NodeSeen) -> Option<BootId> {
    node.boot_id.clone().filter(|_| node.ready)
}

impl LeaseMemory {
    fn seen(before: Option<Self>, lease: &LeaseSeen, now: Now) -> Self {
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
            fenced: same.is_some_and(|same| same.fenced),
        }
    }
}
