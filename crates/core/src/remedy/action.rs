//! What may be done about a case, and read for it, as data.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::case::Subject;
use super::clear::Release;
use super::kept::KeptBackup;
use super::key::KeyOwner;
use super::machine::Machine;
use super::record::{Backup, Record};
use super::request::{PowerRequest, RequestStatus};
use crate::name::NodeName;
use crate::power::Host;
use crate::reboot::NodeSeen;

/// One write. Each is conditional on what was seen; done once more it does nothing.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there are one or two at a time")]
pub enum Action {
    /// The Lease `dogwatch-remedy-NODE` is taken, so that the budgets of planned reboots count this node.
    /// Refused for a control-plane node while another one's planned reboot holds that group's lock.
    TakeLease {
        /// For which node.
        node: NodeName,
        /// Whether it is of the control plane.
        control_plane: bool,
        /// Whose remediation it is.
        subject: Subject,
    },
    /// It is made free.
    FreeLease {
        /// For which node.
        node: NodeName,
    },
    /// `dogwatch.dev/fencing` is put on the Node: whoever drains it stops.
    MarkNode {
        /// As it was seen: its UID goes with the patch.
        node: Arc<NodeSeen>,
        /// Whose remediation it is.
        subject: Subject,
    },
    /// It is taken away.
    UnmarkNode {
        /// As it was seen.
        node: Arc<NodeSeen>,
    },
    /// Our key is put on the host, and the record of the remediation with it, in one patch.
    AddKey {
        /// As it was read: UID and resourceVersion go with the patch.
        host: Arc<Host>,
        /// Name and value.
        key: KeyOwner,
        /// The record.
        record: Record,
    },
    /// Our key is removed, and with it a person's confirmation; the record says so in the same patch.
    RemoveKey {
        /// As it was seen: UID and resourceVersion go with the patch.
        host: Arc<Host>,
        /// The annotation's name.
        key: String,
        /// The record, if it is this remediation's.
        record: Option<Record>,
    },
    /// The record alone: a step was seen.
    WriteRecord {
        /// As it was seen.
        host: Arc<Host>,
        /// The record.
        record: Record,
    },
    /// What has to come back on the Node is kept in Dogwatch's namespace, before the Node is deleted.
    KeepBackup {
        /// Whose Node it is.
        host: Arc<Host>,
        /// What.
        backup: Backup,
        /// What is kept for the host already, and is written over: UID and resourceVersion go with the patch.
        over: Option<Arc<KeptBackup>>,
    },
    /// The workloads are released.
    Release(Release),
    /// The need is taken from the Machine. A fresh one, with another value, would make this fail.
    RemoveMachineNeed {
        /// As it was seen: UID and resourceVersion go with the patch.
        machine: Arc<Machine>,
    },
    /// The need is taken from the Node: one that is not deleted because it was withdrawn, or came back.
    RemoveNodeNeed {
        /// As it was seen.
        node: Arc<NodeSeen>,
    },
    /// Labels, annotations, taints and cordon come back on the new Node; what stands there wins.
    Restore {
        /// The new Node, as it was seen.
        node: Arc<NodeSeen>,
        /// What was kept.
        backup: Backup,
    },
    /// They are there, or nobody wants them any more.
    DropBackup {
        /// As it was seen: UID and resourceVersion go with the deletion.
        stored: Arc<KeptBackup>,
    },
    /// The annotation in which an older version kept a backup is removed.
    RemoveOldBackup {
        /// As it was seen.
        host: Arc<Host>,
    },
    /// The taint `node.kubernetes.io/out-of-service` of ours is lifted: a new boot id was posted. One with
    /// another `timeAdded` is somebody else's: it stays, and this is done.
    Untaint {
        /// As it was seen: UID and resourceVersion go with the patch.
        node: Arc<NodeSeen>,
        /// Its `timeAdded`: [`RequestStatus::tainted_at`].
        tainted_at: Timestamp,
    },
    /// The request's status, conditions apart.
    WriteStatus {
        /// As it was seen.
        request: Arc<PowerRequest>,
        /// How it should stand.
        status: Box<RequestStatus>,
    },
    /// Our finalizer is put on the request, before anything else is done for it.
    AddFinalizer {
        /// As it was seen.
        request: Arc<PowerRequest>,
    },
    /// It is taken away: nothing of ours is left.
    RemoveFinalizer {
        /// As it was seen.
        request: Arc<PowerRequest>,
    },
    /// The Machine is handed back to its owner: condition `OwnerRemediated` False. Source: Cluster API.
    HandBack {
        /// As it was seen.
        machine: Arc<Machine>,
        /// Why.
        message: String,
    },
}

/// What an action writes on the host.
enum OnHost<'a> {
    Nothing,
    /// A key or a record, or both; the record, if there is one.
    Record(Option<&'a Record>),
    OldBackup,
}

impl Action {
    /// The release, if this is one.
    pub fn release(&self) -> Option<&Release> {
        if let Action::Release(release) = self {
            Some(release)
        } else {
            None
        }
    }

    /// Whether it writes down what is on a Node.
    pub(super) fn keeps_backup(&self) -> bool {
        matches!(self, Action::KeepBackup { .. })
    }

    /// The record that it puts on the host.
    pub fn record(&self) -> Option<&Record> {
        match self.on_host() {
            OnHost::Record(record) => record,
            OnHost::Nothing | OnHost::OldBackup => None,
        }
    }

    /// Whether it writes the host, on the version that was seen.
    pub fn writes_host(&self) -> bool {
        !matches!(self.on_host(), OnHost::Nothing)
    }

    fn on_host(&self) -> OnHost<'_> {
        match self {
            Action::AddKey { record, .. } | Action::WriteRecord { record, .. } => {
                OnHost::Record(Some(record))
            }
            Action::RemoveKey { record, .. } => OnHost::Record(record.as_ref()),
            Action::RemoveOldBackup { .. } => OnHost::OldBackup,
            Action::TakeLease { .. }
            | Action::FreeLease { .. }
            | Action::MarkNode { .. }
            | Action::UnmarkNode { .. }
            | Action::KeepBackup { .. }
            | Action::DropBackup { .. }
            | Action::Release(_)
            | Action::RemoveMachineNeed { .. }
            | Action::RemoveNodeNeed { .. }
            | Action::Restore { .. }
            | Action::Untaint { .. }
            | Action::WriteStatus { .. }
            | Action::AddFinalizer { .. }
            | Action::RemoveFinalizer { .. }
            | Action::HandBack { .. } => OnHost::Nothing,
        }
    }
}

/// Facts that a case wants read. Each is asked for until an answer newer than `newer_than` is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// The Node's sign of life: its Lease, and its Ready condition.
    Beat {
        /// Whose.
        node: NodeName,
        /// An older answer will not do.
        newer_than: Duration,
    },
    /// [`super::Fresh`]: the host, the Node, its sign of life and the need, each by a GET.
    Fresh {
        /// An older answer will not do.
        newer_than: Duration,
    },
    /// [`super::Leftovers`].
    Leftovers {
        /// Whose.
        node: NodeName,
        /// An older answer will not do.
        newer_than: Duration,
    },
}
