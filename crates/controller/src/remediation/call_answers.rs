//! What a call of a remediation answered, and how its failure counts.

use dogwatch_core::power::HostSnapshot;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{ObservedMachine, PowerRequest, StoredBackup};
use dogwatch_k8s::remediation::RemediationWriteError;
use dogwatch_k8s::{ApiErrorKind, Error};

use super::remediation_ops::{RemediationAnswer, RemediationCallError};

pub(super) fn node_answer(node: ObservedNode) -> RemediationAnswer {
    RemediationAnswer::Node(node.into())
}

pub(super) fn host_answer(host: HostSnapshot) -> RemediationAnswer {
    RemediationAnswer::Host(host.into())
}

pub(super) fn request_answer(request: PowerRequest) -> RemediationAnswer {
    RemediationAnswer::Request(request.into())
}

/// `left`: the request without our finalizer, unless it is gone.
pub(super) fn finalizer_answer(
    request: &PowerRequest,
    left: Option<PowerRequest>,
) -> RemediationAnswer {
    let gone = || RemediationAnswer::RequestGone {
        name: request.name.clone(),
        uid: request.uid.clone(),
    };
    left.map_or_else(gone, request_answer)
}

pub(super) fn backup_answer(kept: StoredBackup) -> RemediationAnswer {
    RemediationAnswer::Backup(kept.into())
}

pub(super) fn backup_gone_answer(stored: &StoredBackup) -> RemediationAnswer {
    RemediationAnswer::BackupGone {
        host: stored.host_uid.clone(),
        uid: stored.uid.clone(),
    }
}

pub(super) fn machine_answer(machine: ObservedMachine) -> RemediationAnswer {
    RemediationAnswer::Machine(machine.into())
}

impl From<Error> for RemediationCallError {
    fn from(error: Error) -> Self {
        let words = error.error_chain();
        match error.kind() {
            ApiErrorKind::Conflict | ApiErrorKind::NotFound | ApiErrorKind::AlreadyExists => {
                RemediationCallError::Changed(words)
            }
            ApiErrorKind::Forbidden | ApiErrorKind::Refused => RemediationCallError::Refused(words),
            ApiErrorKind::Gone | ApiErrorKind::Throttled { .. } | ApiErrorKind::Transient => {
                RemediationCallError::Failed(words)
            }
        }
    }
}

impl From<RemediationWriteError> for RemediationCallError {
    fn from(error: RemediationWriteError) -> Self {
        let words = error.error_chain();
        match error {
            RemediationWriteError::Changed(_) | RemediationWriteError::Expired(_) => {
                RemediationCallError::Changed(words)
            }
            RemediationWriteError::Foreign(_)
            | RemediationWriteError::Kept { .. }
            | RemediationWriteError::Dropped(_)
            | RemediationWriteError::Forbidden { .. } => RemediationCallError::Refused(words),
            RemediationWriteError::Api(error) => error.into(),
        }
    }
}
