//! The writes and reads that a remediation decision may ask for, as data.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::key::KeyOwner;
use super::machine::ObservedMachine;
use super::record::{NodeBackup, RemediationRecord};
use super::release_permit::WorkloadRelease;
use super::request::{PowerRequest, RequestStatus};
use super::stored_backup::StoredBackup;
use super::types::RemediationSubject;
use crate::name::NodeName;
use crate::power::HostSnapshot;
use crate::reboot::ObservedNode;

/// One write. Each is conditional on the state that the decision saw; repeating it changes nothing.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there are one or two at a time")]
pub enum RemediationAction {
    /// Takes the Lease `dogwatch-remedy-NODE`, so that the budgets of planned reboots count this
    /// node. A held Lease is written again: a late call that frees the earlier version then does
    /// nothing. Refused for a control-plane node while another node holds that group's lock for a
    /// planned reboot.
    TakeLease {
        node: NodeName,
        control_plane: bool,
        subject: RemediationSubject,
        on_conflict: LeaseConflictRule,
    },
    FreeLease {
        node: NodeName,
        /// The resourceVersion of the Lease that is freed; another one stays held.
        version: String,
    },
    /// Sets `dogwatch.dev/fencing` on the Node: whoever drains it stops.
    MarkNode {
        /// The patch carries its UID.
        node: Arc<ObservedNode>,
        subject: RemediationSubject,
    },
    /// Removes `dogwatch.dev/fencing` from the Node.
    UnmarkNode { node: Arc<ObservedNode> },
    /// Adds our key and the remediation record to the host, in one patch.
    AddKey {
        /// The patch carries its UID and resourceVersion.
        host: Arc<HostSnapshot>,
        key: KeyOwner,
        record: RemediationRecord,
    },
    /// Removes our key and a person's confirmation, and writes the record, in one patch.
    RemoveKey {
        /// The patch carries its UID and resourceVersion.
        host: Arc<HostSnapshot>,
        /// Name of the key's annotation.
        key: String,
        /// The host's record, if it belongs to this remediation.
        record: Option<RemediationRecord>,
    },
    /// Writes only the record, after a step was observed.
    WriteRecord {
        host: Arc<HostSnapshot>,
        record: RemediationRecord,
    },
    /// Saves what the new Node must get back in Dogwatch's namespace, before the Node is deleted.
    KeepBackup {
        host: Arc<HostSnapshot>,
        backup: NodeBackup,
        /// The backup that the host already has and that this one replaces. The patch carries its
        /// UID and resourceVersion.
        over: Option<Arc<StoredBackup>>,
    },
    /// Deletes the Node or taints it, so that its workloads start elsewhere.
    Release(WorkloadRelease),
    /// Removes the mark from the Machine. Fails if somebody has set the mark again with another
    /// value.
    RemoveMachineNeed {
        /// The patch carries its UID and resourceVersion.
        machine: Arc<ObservedMachine>,
    },
    /// Removes the mark from a Node that stays: the mark was withdrawn, or the Node came back.
    RemoveNodeNeed { node: Arc<ObservedNode> },
    /// Restores labels, annotations, taints and cordon on the new Node. What the Node has already
    /// wins.
    Restore {
        node: Arc<ObservedNode>,
        backup: NodeBackup,
    },
    /// Deletes the backup: it is restored, or nobody needs it any more.
    DropBackup {
        /// The deletion carries its UID and resourceVersion.
        stored: Arc<StoredBackup>,
    },
    /// Removes the host annotation in which an older version kept a backup.
    RemoveOldBackup { host: Arc<HostSnapshot> },
    /// Removes our taint `node.kubernetes.io/out-of-service`, after the node posted a new boot id.
    /// A taint with another `timeAdded` is somebody else's: it stays, and the action succeeds.
    Untaint {
        /// The patch carries its UID and resourceVersion.
        node: Arc<ObservedNode>,
        /// The taint's `timeAdded`: [`RequestStatus::tainted_at`].
        tainted_at: Timestamp,
    },
    /// Writes the request's status without its conditions.
    WriteStatus {
        request: Arc<PowerRequest>,
        status: Box<RequestStatus>,
    },
    /// Adds our finalizer to the request, before anything else is done for it.
    AddFinalizer { request: Arc<PowerRequest> },
    /// Removes our finalizer, once nothing of ours is left.
    RemoveFinalizer { request: Arc<PowerRequest> },
    /// Hands the Machine back to its owner: condition `OwnerRemediated` False. Source: Cluster API.
    HandBack {
        machine: Arc<ObservedMachine>,
        message: String,
    },
}

/// What happens to the Lease of a control-plane node that is taken while another control-plane node
/// is out of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseConflictRule {
    /// It is freed, and the remediation waits.
    FreeLease,
    /// It stays held, and the remediation waits: the node may be out of service already, or another
    /// remediation of it holds the Lease.
    KeepLease,
    /// It stays held, and the remediation continues: its host is held off, and waiting would keep no
    /// node in service.
    Continue,
}

enum HostWriteKind<'a> {
    Nothing,
    /// A key, the record, or both. Contains the record if one is written.
    Record(Option<&'a RemediationRecord>),
    OldBackup,
}

impl RemediationAction {
    pub fn as_release(&self) -> Option<&WorkloadRelease> {
        if let RemediationAction::Release(release) = self {
            Some(release)
        } else {
            None
        }
    }

    pub(super) fn keeps_backup(&self) -> bool {
        matches!(self, RemediationAction::KeepBackup { .. })
    }

    pub(super) fn drops_backup(&self) -> bool {
        matches!(self, RemediationAction::DropBackup { .. })
    }

    pub fn host_record(&self) -> Option<&RemediationRecord> {
        match self.host_write_kind() {
            HostWriteKind::Record(record) => record,
            HostWriteKind::Nothing | HostWriteKind::OldBackup => None,
        }
    }

    /// Whether the action writes the host with the resourceVersion that the decision saw.
    pub fn writes_host(&self) -> bool {
        !matches!(self.host_write_kind(), HostWriteKind::Nothing)
    }

    fn host_write_kind(&self) -> HostWriteKind<'_> {
        match self {
            RemediationAction::AddKey { record, .. }
            | RemediationAction::WriteRecord { record, .. } => HostWriteKind::Record(Some(record)),
            RemediationAction::RemoveKey { record, .. } => HostWriteKind::Record(record.as_ref()),
            RemediationAction::RemoveOldBackup { .. } => HostWriteKind::OldBackup,
            RemediationAction::TakeLease { .. }
            | RemediationAction::FreeLease { .. }
            | RemediationAction::MarkNode { .. }
            | RemediationAction::UnmarkNode { .. }
            | RemediationAction::KeepBackup { .. }
            | RemediationAction::DropBackup { .. }
            | RemediationAction::Release(_)
            | RemediationAction::RemoveMachineNeed { .. }
            | RemediationAction::RemoveNodeNeed { .. }
            | RemediationAction::Restore { .. }
            | RemediationAction::Untaint { .. }
            | RemediationAction::WriteStatus { .. }
            | RemediationAction::AddFinalizer { .. }
            | RemediationAction::RemoveFinalizer { .. }
            | RemediationAction::HandBack { .. } => HostWriteKind::Nothing,
        }
    }
}

/// Facts that a remediation needs. Each is requested until an answer newer than `newer_than`
/// arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemediationObserve {
    /// The Node's heartbeat: its Lease and its Ready condition.
    Heartbeat {
        node: NodeName,
        newer_than: Duration,
    },
    /// [`super::FreshReads`]: host, Node, heartbeat and mark, each read by a GET.
    Fresh { newer_than: Duration },
    /// [`super::WorkloadLeftovers`].
    Leftovers {
        node: NodeName,
        newer_than: Duration,
    },
}
