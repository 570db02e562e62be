//! What logs and metrics call an action.

use dogwatch_core::remedy::Action;

/// One word, as the code names it: the label of a metric.
pub(super) fn name(action: &Action) -> &'static str {
    match action {
        Action::TakeLease { .. } => "TakeLease",
        Action::FreeLease { .. } => "FreeLease",
        Action::MarkNode { .. } => "MarkNode",
        Action::UnmarkNode { .. } => "UnmarkNode",
        Action::AddKey { .. } => "AddKey",
        Action::RemoveKey { .. } => "RemoveKey",
        Action::WriteRecord { .. } => "WriteRecord",
        Action::KeepBackup { .. } => "KeepBackup",
        Action::Release(_) => "Release",
        Action::RemoveMachineNeed { .. } => "RemoveMachineNeed",
        Action::RemoveNodeNeed { .. } => "RemoveNodeNeed",
        Action::Restore { .. } => "Restore",
        Action::DropBackup { .. } => "DropBackup",
        Action::RemoveOldBackup { .. } => "RemoveOldBackup",
        Action::Untaint { .. } => "Untaint",
        Action::WriteStatus { .. } => "WriteStatus",
        Action::AddFinalizer { .. } => "AddFinalizer",
        Action::RemoveFinalizer { .. } => "RemoveFinalizer",
        Action::HandBack { .. } => "HandBack",
    }
}

/// What a log line says of it.
pub(super) fn verb(action: &Action) -> &'static str {
    match action {
        Action::TakeLease { .. } => "takes the Lease of a node that is to be remediated",
        Action::FreeLease { .. } => "frees the Lease of a node",
        Action::MarkNode { .. } => "marks a Node as being fenced",
        Action::UnmarkNode { .. } => "takes the mark of being fenced from a Node",
        Action::AddKey { .. } => "adds a reboot key: the host goes off",
        Action::RemoveKey { .. } => "removes a reboot key: the host comes back",
        Action::WriteRecord { .. } => "writes down a step of a remediation",
        Action::KeepBackup { .. } => "keeps what has to come back on a Node",
        Action::Release(_) => "releases the workloads of a node that is proved off",
        Action::RemoveMachineNeed { .. } => "removes the need of remediation from a Machine",
        Action::RemoveNodeNeed { .. } => "removes the need of remediation from a Node",
        Action::Restore { .. } => "brings back what was on a Node",
        Action::DropBackup { .. } => "drops what was kept of a Node",
        Action::RemoveOldBackup { .. } => "removes a backup that an older version kept on the host",
        Action::Untaint { .. } => "lifts the taint out-of-service",
        Action::WriteStatus { .. } => "writes a request's status",
        Action::AddFinalizer { .. } => "puts the finalizer on a request",
        Action::RemoveFinalizer { .. } => "takes the finalizer from a request",
        Action::HandBack { .. } => "hands a Machine back to its owner",
    }
}
