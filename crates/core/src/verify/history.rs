//! The writes of a history, and what the cluster is like after each.

use std::collections::BTreeMap;
use std::fmt;

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
    /// The resourceVersion that the write relied on, if the history may have gaps: then a known
    /// state of another version says nothing about this write.
    pub relies_on: Option<u64>,
    pub object: WrittenObject,
    pub source: WriteSource,
}

impl ClusterWrite {
    /// Whether nothing was written between the known version and this write.
    pub(super) fn follows_version(&self, known: u64) -> bool {
        self.relies_on.is_none_or(|relies_on| relies_on == known)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum WrittenObject {
    /// `after` is `None` if the Node was deleted.
    Node {
        name: String,
        after: Option<Box<NodeState>>,
    },
    Lease {
        name: String,
        after: Option<Box<LeaseState>>,
    },
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

#[derive(Debug, Clone)]
pub(super) struct KnownNode {
    pub(super) version: u64,
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
        under_way || ours && self.unschedulable
    }
}
