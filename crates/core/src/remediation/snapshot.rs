//! The inputs of remediation decisions.

use crate::remediation::RemediationReason;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::action::RemediationAction;
use super::guard;
use super::heartbeat::NodeHeartbeat;
use super::host_link::record_on_host;
use super::machine::{InfraMachine, MachineName, ObjectName, ObservedMachine};
use super::node_cluster::WorkloadClusters;
use super::request::PowerRequest;
use super::stored_backup::{BackupVersion, StoredBackup};
use crate::name::NodeName;
use crate::power::{CurrentPower, HostName, HostSnapshot, PowerOffProof};
use crate::reboot::ObservedNode;

/// All watched objects. Cheap to build and clone, because the objects are shared.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemediationSnapshot {
    pub machines: BTreeMap<MachineName, Arc<ObservedMachine>>,
    pub infra: BTreeMap<ObjectName, Arc<InfraMachine>>,
    pub hosts: BTreeMap<HostName, Arc<HostSnapshot>>,
    pub nodes: BTreeMap<NodeName, Arc<ObservedNode>>,
    pub requests: BTreeMap<ObjectName, Arc<PowerRequest>>,
    /// The Clusters of Cluster API with `spec.paused`.
    pub paused_clusters: BTreeSet<ObjectName>,
    /// The held `dogwatch-remedy-NODE` Leases, by Node.
    pub leases: BTreeMap<NodeName, HeldRemediationLease>,
    /// Backups of Nodes, by the UID of the host.
    pub backups: BTreeMap<String, Arc<StoredBackup>>,
    /// The workload clusters of Cluster API; `None`: Nodes are only looked for in the controller's
    /// own cluster.
    pub workload: Option<WorkloadClusters>,
    /// Whether all lists of the controller's own cluster have arrived. Until then a missing object proves nothing.
    pub synced: bool,
}

/// A held `dogwatch-remedy-NODE`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeldRemediationLease {
    /// The remediation that holds the Lease; `None` if its record cannot be parsed.
    pub subject: Option<String>,
    pub resource_version: String,
    /// For a control-plane node: no other one was out of service when the Lease was taken.
    pub alone: bool,
    /// This version may still be freed: by a call that got no answer, or by an earlier leader.
    pub may_be_freed: bool,
}

/// What this process has read and decided for one remediation, beside the watched objects.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemediationMemory {
    pub power: Option<ObservedPower>,
    pub heartbeats: Option<super::HeartbeatHistory>,
    pub fresh: Option<FreshReads>,
    /// Pods and attachments that are left on the tainted Node.
    pub leftovers: Option<WorkloadLeftovers>,
    pub first_decided_at: Option<Duration>,
    /// The newest decision's reason and when it first occurred without interruption, for the
    /// Warning about slow progress. Maintained by [`RemediationMemory::record_decision`].
    pub reason_since: Option<(RemediationReason, Duration)>,
    /// Since when the host has been without a key, without interruption, as far as this process
    /// has seen. Maintained by [`RemediationMemory::record_decision`].
    pub host_without_key_since: Option<Duration>,
    /// The time in the host's record from which the cooldown counts, and when this process first
    /// saw it. It outlasts the reason `CoolingDown`: otherwise a time in the future would begin the
    /// wait again after each wait. Maintained by [`RemediationMemory::record_decision`].
    pub cooldown_seen: Option<(Timestamp, Duration)>,
    /// The version of the stored backup that a deletion without an answer may still remove: the one
    /// that was there at this process's first decision, or for which it sent a deletion since.
    /// Maintained by [`RemediationMemory::record_decision`].
    pub doubtful_backup: Option<BackupVersion>,
    /// No decision is made until the watch shows our last write, or until this moment.
    pub own_write_awaited_until: Option<Duration>,
}

impl RemediationMemory {
    /// Records what later decisions need to know of this one. Call it after each decision.
    pub fn record_decision(
        &mut self,
        case: &super::Remediation,
        decision: &super::RemediationDecision,
        now: Duration,
    ) {
        let since = self.host_without_key_since.unwrap_or(now);
        self.host_without_key_since = case.is_host_without_key().then_some(since);
        self.record_cooldown(case, now);
        let mut actions = decision.actions.iter();
        if self.first_decided_at.is_none() || actions.any(RemediationAction::drops_backup) {
            let stored = case.stored_backup.as_ref();
            self.doubtful_backup = stored.map(|stored| stored.backup_version());
        }
        let reason = decision.cause.reason;
        self.first_decided_at.get_or_insert(now);
        if self.reason_since.is_none_or(|(same, _)| same != reason) {
            self.reason_since = Some((reason, now));
        }
    }

    fn record_cooldown(&mut self, case: &super::Remediation, now: Duration) {
        let host = case.host.as_ref().ok();
        let record = host.and_then(|host| record_on_host(host));
        let start = record.as_ref().and_then(guard::cooldown_start);
        if self.cooldown_seen.map(|(same, _)| same) != start {
            self.cooldown_seen = start.map(|at| (at, now));
        }
    }

    /// Drops the fresh reads after a failed write, so that they are repeated.
    pub fn forget_reads(&mut self) {
        self.fresh = None;
    }

    /// Records the answer to a [`super::RemediationObserve::Heartbeat`], or the heartbeat of
    /// [`FreshReads`].
    pub fn record_heartbeat(&mut self, asked: Duration, answered: Duration, beat: NodeHeartbeat) {
        self.heartbeats = Some(match self.heartbeats.take() {
            Some(beats) => beats.record_heartbeat(asked, answered, beat),
            None => super::HeartbeatHistory::new(asked, answered, beat),
        });
    }
}

/// The power controller's view of one host.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedPower {
    /// The power as the truth table uses it.
    pub now: CurrentPower,
    /// The proof that the host is off, if there is one now.
    pub proof: Option<PowerOffProof>,
    pub bmc_answers: bool,
    /// The system UUID that the BMC reports; `None` if it reports none or was not asked yet.
    pub system_uuid: Option<String>,
    /// When the first of the latest unbroken series of "off" readings was requested.
    pub off_since: Option<Duration>,
    /// The power controller's reason and message, as one sentence.
    pub because: Option<String>,
}

/// One set of GETs, all sent at `asked_at` or later.
#[derive(Debug, Clone, PartialEq)]
pub struct FreshReads {
    /// When the first request was sent.
    pub asked_at: Duration,
    /// `None` if the host is gone.
    pub host: Option<Arc<HostSnapshot>>,
    /// The Node of the remediation's name; `None` if there is none.
    pub node: Option<Arc<ObservedNode>>,
    /// Labels, annotations and taints of the whole Node, for the backup.
    pub backup: Option<super::record::NodeBackup>,
    /// The backup that is stored for the host.
    pub stored_backup: Option<Arc<StoredBackup>>,
    pub heartbeat: NodeHeartbeat,
    /// Whether the mark or the request still stands.
    pub needs_remediation: bool,
}

/// What is left on a Node whose workloads are being released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadLeftovers {
    pub asked_at: Duration,
    /// Pods that do not tolerate the taint, as `namespace/name`; only a few are named.
    pub pods: Vec<String>,
    /// `VolumeAttachment`s of this Node.
    pub attachments: Vec<String>,
}
