//! The calls of remediation, as a trait and its results.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::condition::ConditionWrite;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::name::NodeName;
use dogwatch_core::power::HostSnapshot;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{
    FreshReads, HeldRemediationLease, NodeHeartbeat, ObjectName, ObservedMachine, PowerRequest,
    Remediation, RemediationAction, RemediationObserve, StoredBackup, WorkloadLeftovers,
};
use futures::future::BoxFuture;

/// What a write returned.
#[derive(Debug)]
pub(super) enum RemediationAnswer {
    Host(Box<HostSnapshot>),
    Node(Box<ObservedNode>),
    /// The Node of this UID was deleted.
    NodeGone {
        name: NodeName,
        uid: String,
    },
    Machine(Box<ObservedMachine>),
    Request(Box<PowerRequest>),
    /// The request of this UID is gone: only our finalizer had kept it.
    RequestGone {
        name: ObjectName,
        uid: String,
    },
    /// The node's Lease is held now, or free.
    Lease {
        node: NodeName,
        lease: Option<HeldRemediationLease>,
    },
    Backup(Box<StoredBackup>),
    /// The backup (`uid`) of the host of UID `host` is gone.
    BackupGone {
        host: String,
        uid: String,
    },
    /// No watched object has changed.
    Nothing,
}

/// What an observation returned.
#[derive(Debug)]
pub(super) enum RemediationFinding {
    /// The Node's heartbeat, and when the read began (monotonic).
    Beat(Duration, NodeHeartbeat),
    /// Everything, read afresh.
    Fresh(Box<FreshReads>),
    /// The workloads that are left on the node.
    Leftovers(WorkloadLeftovers),
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RemediationCallError {
    /// An object that the call relied on had changed, so nothing was written.
    Changed(String),
    /// The API server refuses the call, and will again: rights, admission rules, a field that it
    /// does not know.
    Refused(String),
    /// The call did nothing, or it is not known whether it did. A retry may help.
    Failed(String),
}

impl RemediationCallError {
    pub(super) fn message(&self) -> &str {
        match self {
            RemediationCallError::Changed(why)
            | RemediationCallError::Refused(why)
            | RemediationCallError::Failed(why) => why,
        }
    }

    /// The value of a metric's label.
    pub(super) fn result_label(&self) -> &'static str {
        match self {
            RemediationCallError::Changed(_) => "changed",
            RemediationCallError::Refused(_) => "refused",
            RemediationCallError::Failed(_) => "failed",
        }
    }
}

pub(super) trait RemediationOps: Send + Sync {
    /// Performs one write. A write of a request's status includes these conditions.
    fn perform_action<'a>(
        &'a self,
        case: &'a Remediation,
        action: &'a RemediationAction,
        conditions: &'a [ConditionWrite],
        now: Now,
    ) -> BoxFuture<'a, Result<RemediationAnswer, RemediationCallError>>;

    fn perform_observation<'a>(
        &'a self,
        case: &'a Remediation,
        look: &'a RemediationObserve,
    ) -> BoxFuture<'a, Result<RemediationFinding, RemediationCallError>>;

    /// Writes conditions of the remediation's object.
    fn write_conditions<'a>(
        &'a self,
        case: &'a Remediation,
        conditions: &'a [ConditionWrite],
        now: Now,
    ) -> BoxFuture<'a, Result<RemediationAnswer, RemediationCallError>>;

    /// Reports an Event about the remediation's object, and about its Node if that is another
    /// object.
    fn report_event<'a>(
        &'a self,
        case: &'a Remediation,
        event: &'a DecisionEvent,
        now: Now,
    ) -> BoxFuture<'a, Result<(), RemediationCallError>>;
}
