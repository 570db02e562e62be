//! The writes of a history, and what the cluster is like after each.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{BrokenRule, RecountResult};
use crate::lock::LockRecord;
use crate::markers::RemediationLeaseRecord;
use crate::reboot::{LastReboot, RebootPhase, RebootRecord, TriggerFingerprint};

/// Where a write was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteSource {
    /// The number of the file on the command line, from 0.
    pub file: usize,
    /// From 1.
    pub line: usize,
    /// Who wrote it: a user, or a run.
    pub who: String,
    /// When, as the log says.
    pub at: String,
}

impl fmt::Display for WriteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} ({}, by {})", self.line, self.at, self.who)
    }
}

/// A write that the API server has accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterWrite {
    /// The object's resourceVersion after it; 0 if the log does not say.
    pub version: u64,
    /// The resourceVersion that the write relied on; `None` if the log does not say. A known state
    /// of another version says nothing about this write.
    pub relies_on: Option<u64>,
    /// Read from a decision log, which has the writes of one process only.
    pub from_decision_log: bool,
    pub object: WrittenObject,
    pub source: WriteSource,
}

#[derive(Debug, Clone, PartialEq)]
pub enum WrittenObject {
    /// `after` is `None` if the Node was deleted.
    Node {
        name: String,
        after: Option<Box<NodeState>>,
    },
    /// A Node of which the answer had the metadata alone.
    NodeMetadata {
        name: String,
        /// Without the cordon and the boot id.
        after: Box<NodeState>,
        cordon: CordonChange,
    },
    Lease {
        name: String,
        after: Option<Box<LeaseState>>,
    },
    /// The write may be stored or not: its answer was an error of the server. Or it is stored, and
    /// the log does not show the object.
    Unknown { kind: WrittenKind, name: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WrittenKind {
    Node,
    Lease,
}

/// What a request says about `spec.unschedulable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CordonChange {
    Unchanged,
    Set(bool),
    /// The log does not show it.
    Unknown,
}

impl WrittenObject {
    pub(super) fn object_key(&self) -> (WrittenKind, &str) {
        match self {
            WrittenObject::Node { name, .. } | WrittenObject::NodeMetadata { name, .. } => {
                (WrittenKind::Node, name)
            }
            WrittenObject::Lease { name, .. } => (WrittenKind::Lease, name),
            WrittenObject::Unknown { kind, name } => (*kind, name),
        }
    }
}

/// What the rules need of a Node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeState {
    pub uid: String,
    pub unschedulable: bool,
    pub boot_id: Option<String>,
    /// `None`: absent, or unreadable.
    pub record: Option<RebootRecord>,
    pub last_reboot: Option<LastReboot>,
    /// The lock API holds the Node, and owns its cordon.
    pub api_lock: bool,
    /// The Lease for which the lock API has cordoned the Node, as its annotation says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_lease: Option<String>,
    /// Label `dogwatch.dev/ignore=true`: it counts for nobody.
    pub ignored: bool,
}

/// What the rules need of a Lease.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseState {
    pub holder: Option<String>,
    pub record: Option<LockRecord>,
    pub remediation: Option<RemediationLeaseRecord>,
}

/// The cluster after the writes so far.
#[derive(Debug, Default)]
pub(super) struct ClusterState {
    pub(super) nodes: BTreeMap<String, KnownNode>,
    pub(super) leases: BTreeMap<String, KnownLease>,
    /// Counts the writes.
    pub(super) step: usize,
    pub(super) recount: RecountResult,
}

/// How well the history shows what an object is like now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateKnowledge {
    Current,
    /// A write that the history lacks, or whose end it does not show, may have changed it.
    MayBeOutdated,
    /// The cordon is not known.
    Incomplete,
}

#[derive(Debug, Clone)]
pub(super) struct KnownNode {
    pub(super) version: u64,
    pub(super) knowledge: StateKnowledge,
    pub(super) state: NodeState,
    pub(super) source: WriteSource,
    /// The sentinels that a reboot has served, by source, and the write that says so.
    pub(super) served: BTreeMap<(String, TriggerFingerprint), WriteSource>,
    /// When it went out of service, and for which group.
    pub(super) out: Option<(String, WriteSource)>,
}

#[derive(Debug, Clone)]
pub(super) struct KnownLease {
    pub(super) version: u64,
    pub(super) knowledge: StateKnowledge,
    pub(super) state: LeaseState,
    pub(super) source: WriteSource,
    /// The write by which the present holder took it.
    pub(super) taken: usize,
}

impl ClusterState {
    pub(super) fn accuse(
        &mut self,
        promise: &'static str,
        what: String,
        lines: impl IntoIterator<Item = WriteSource>,
    ) {
        let lines = lines.into_iter().collect();
        self.recount.broken.push(BrokenRule {
            promise,
            what,
            lines,
        });
    }

    /// The Lease that a holder holds, with its name.
    pub(super) fn find_lease_of(&self, holder: &str) -> Option<(&String, &KnownLease)> {
        let mut leases = self.leases.iter();
        leases.find(|(_, lease)| lease.state.holder.as_deref() == Some(holder))
    }

    /// What is known of the object may be outdated from now on.
    pub(super) fn doubt_object(&mut self, (kind, name): (WrittenKind, &str)) {
        let knowledge = match kind {
            WrittenKind::Node => self.nodes.get_mut(name).map(|node| &mut node.knowledge),
            WrittenKind::Lease => self.leases.get_mut(name).map(|lease| &mut lease.knowledge),
        };
        if let Some(knowledge) = knowledge.filter(|it| **it == StateKnowledge::Current) {
            *knowledge = StateKnowledge::MayBeOutdated;
        }
    }
}

impl StateKnowledge {
    /// Whether a write changed the object as it was known by this version, and nothing was written
    /// between.
    fn is_followed_by(self, version: u64, write: &ClusterWrite) -> bool {
        match (self, write.relies_on) {
            (StateKnowledge::Incomplete, _) | (StateKnowledge::MayBeOutdated, None) => false,
            (StateKnowledge::Current | StateKnowledge::MayBeOutdated, Some(on)) => on == version,
            (StateKnowledge::Current, None) => true,
        }
    }
}

impl KnownNode {
    pub(super) fn is_current(&self) -> bool {
        self.knowledge == StateKnowledge::Current
    }

    pub(super) fn is_followed_by(&self, write: &ClusterWrite) -> bool {
        self.knowledge.is_followed_by(self.version, write)
    }
}

impl KnownLease {
    pub(super) fn is_current(&self) -> bool {
        self.knowledge == StateKnowledge::Current
    }

    pub(super) fn is_followed_by(&self, write: &ClusterWrite) -> bool {
        self.knowledge.is_followed_by(self.version, write)
    }
}

impl LeaseState {
    /// When the present holder took it, by the holder's clock.
    pub(super) fn taken_at(&self) -> Option<Timestamp> {
        let slot = self.record.as_ref().map(|record| record.since);
        slot.or_else(|| Some(self.remediation.as_ref()?.since))
    }
}

impl NodeState {
    pub(super) fn phase(&self) -> Option<RebootPhase> {
        self.record.as_ref().map(|record| record.phase)
    }

    /// Whether Dogwatch keeps the node out of service.
    pub(super) fn is_out(&self) -> bool {
        let under_way = match self.phase() {
            None | Some(RebootPhase::Waiting) => false,
            Some(RebootPhase::Draining | RebootPhase::Holding | RebootPhase::Rebooting) => true,
            Some(RebootPhase::Returning) => self.unschedulable,
        };
        let ours = self
            .record
            .as_ref()
            .is_some_and(|record| record.cordoned_by_us);
        under_way || self.unschedulable && (ours || self.api_lock)
    }
}
