//! The names of actions in logs and metrics.

use dogwatch_core::remediation::RemediationAction;

/// The value of a metric's label.
pub(crate) fn action_label(action: &RemediationAction) -> &'static str {
    match action {
        RemediationAction::TakeLease { .. } => "TakeLease",
        RemediationAction::FreeLease { .. } => "FreeLease",
        RemediationAction::MarkNode { .. } => "MarkNode",
        RemediationAction::UnmarkNode { .. } => "UnmarkNode",
        RemediationAction::AddKey { .. } => "AddKey",
        RemediationAction::RemoveKey { .. } => "RemoveKey",
        RemediationAction::WriteRecord { .. } => "WriteRecord",
        RemediationAction::KeepBackup { .. } => "KeepBackup",
        RemediationAction::Release(_) => "Release",
        RemediationAction::RemoveMachineNeed { .. } => "RemoveMachineNeed",
        RemediationAction::RemoveNodeNeed { .. } => "RemoveNodeNeed",
        RemediationAction::Restore { .. } => "Restore",
        RemediationAction::DropBackup { .. } => "DropBackup",
        RemediationAction::RemoveOldBackup { .. } => "RemoveOldBackup",
        RemediationAction::Untaint { .. } => "Untaint",
        RemediationAction::WriteStatus { .. } => "WriteStatus",
        RemediationAction::AddFinalizer { .. } => "AddFinalizer",
        RemediationAction::RemoveFinalizer { .. } => "RemoveFinalizer",
        RemediationAction::HandBack { .. } => "HandBack",
    }
}

/// The action in words, for the log.
pub(super) fn describe_action(action: &RemediationAction) -> &'static str {
    match action {
        RemediationAction::TakeLease { .. } => "takes the Lease of a node that is to be remediated",
        RemediationAction::FreeLease { .. } => "frees the Lease of a node",
        RemediationAction::MarkNode { .. } => "marks a Node as being fenced",
        RemediationAction::UnmarkNode { .. } => "removes the mark of being fenced from a Node",
        RemediationAction::AddKey { .. } => "adds a key: the host is powered off",
        RemediationAction::RemoveKey { .. } => "removes a key: the host is powered on",
        RemediationAction::WriteRecord { .. } => "records a step of a remediation",
        RemediationAction::KeepBackup { .. } => {
            "saves the labels and annotations to restore on a Node"
        }
        RemediationAction::Release(_) => {
            "releases the workloads of a node whose host is proved off"
        }
        RemediationAction::RemoveMachineNeed { .. } => {
            "removes the request for remediation from a Machine"
        }
        RemediationAction::RemoveNodeNeed { .. } => {
            "removes the request for remediation from a Node"
        }
        RemediationAction::Restore { .. } => "restores labels and annotations of a Node",
        RemediationAction::DropBackup { .. } => {
            "deletes the saved labels and annotations of a Node"
        }
        RemediationAction::RemoveOldBackup { .. } => {
            "removes a backup that an older version kept on the host"
        }
        RemediationAction::Untaint { .. } => "removes the taint out-of-service",
        RemediationAction::WriteStatus { .. } => "writes a request's status",
        RemediationAction::AddFinalizer { .. } => "adds the finalizer to a request",
        RemediationAction::RemoveFinalizer { .. } => "removes the finalizer from a request",
        RemediationAction::HandBack { .. } => "hands a Machine back to its owner",
    }
}
