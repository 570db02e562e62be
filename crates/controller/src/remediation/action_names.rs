//! The names of actions in logs and metrics.

use dogwatch_core::remediation::RemediationAction;

/// The value of a metric's label.
pub(super) fn action_label(action: &RemediationAction) -> &'static str {
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
        RemediationAction::UnmarkNode { .. } => "takes the mark of being fenced from a Node",
        RemediationAction::AddKey { .. } => "adds a reboot key: the host goes off",
        RemediationAction::RemoveKey { .. } => "removes a reboot key: the host comes back",
        RemediationAction::WriteRecord { .. } => "writes down a step of a remediation",
        RemediationAction::KeepBackup { .. } => "keeps what has to come back on a Node",
        RemediationAction::Release(_) => "releases the workloads of a node that is proved off",
        RemediationAction::RemoveMachineNeed { .. } => {
            "removes the need of remediation from a Machine"
        }
        RemediationAction::RemoveNodeNeed { .. } => "removes the need of remediation from a Node",
        RemediationAction::Restore { .. } => "brings back what was on a Node",
        RemediationAction::DropBackup { .. } => "drops what was kept of a Node",
        RemediationAction::RemoveOldBackup { .. } => {
            "removes a backup that an older version kept on the host"
        }
        RemediationAction::Untaint { .. } => "lifts the taint out-of-service",
        RemediationAction::WriteStatus { .. } => "writes a request's status",
        RemediationAction::AddFinalizer { .. } => "puts the finalizer on a request",
        RemediationAction::RemoveFinalizer { .. } => "takes the finalizer from a request",
        RemediationAction::HandBack { .. } => "hands a Machine back to its owner",
    }
}
