//! The guards of remediation that can be taken out, each to see the named promise fail.

use super::RemediationWorldConfig;
use crate::promise::Promise;

/// One thing that keeps a promise. Without it the search has to find a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemediationGuard {
    /// A write of the host carries its resourceVersion.
    HostVersion,
    /// The removal of the mark carries the Machine's resourceVersion.
    MachineVersion,
    /// A release lands within its time limit, or not at all.
    ReleaseTimeLimit,
    /// The Node's backup is stored before the Node is deleted.
    BackupBeforeRelease,
    /// A backup that is not needed stays while a deletion of the Node may be late.
    KeepUnneededBackup,
    /// A backup that a deletion may still remove is written again before it is relied on.
    RewriteDoubtfulBackup,
    /// A Node that sends heartbeats is not released, whatever the BMC says.
    NodeSilence,
}

impl RemediationGuard {
    pub const ALL: [RemediationGuard; 7] = [
        RemediationGuard::HostVersion,
        RemediationGuard::MachineVersion,
        RemediationGuard::ReleaseTimeLimit,
        RemediationGuard::BackupBeforeRelease,
        RemediationGuard::KeepUnneededBackup,
        RemediationGuard::RewriteDoubtfulBackup,
        RemediationGuard::NodeSilence,
    ];

    /// What the guard does, in words.
    pub fn describe_guard(self) -> &'static str {
        match self {
            RemediationGuard::HostVersion => "a write of the host carries its resourceVersion",
            RemediationGuard::MachineVersion => {
                "the removal of the mark carries the Machine's resourceVersion"
            }
            RemediationGuard::ReleaseTimeLimit => {
                "a release lands within its time limit, or not at all"
            }
            RemediationGuard::BackupBeforeRelease => {
                "the Node's backup is stored before the Node is deleted"
            }
            RemediationGuard::KeepUnneededBackup => {
                "a backup that is not needed stays while a deletion of the Node may be late"
            }
            RemediationGuard::RewriteDoubtfulBackup => {
                "a backup that a deletion may still remove is written again"
            }
            RemediationGuard::NodeSilence => "a Node that sends heartbeats is not released",
        }
    }

    /// The promise that fails without it.
    pub fn expected_failure(self) -> Promise {
        match self {
            RemediationGuard::HostVersion => Promise::OneReboot,
            RemediationGuard::MachineVersion
            | RemediationGuard::BackupBeforeRelease
            | RemediationGuard::KeepUnneededBackup
            | RemediationGuard::RewriteDoubtfulBackup => Promise::NothingForeignUndone,
            RemediationGuard::ReleaseTimeLimit | RemediationGuard::NodeSilence => {
                Promise::ProofBeforeRelease
            }
        }
    }

    /// The smallest world in which its absence shows.
    pub fn smallest_world(self) -> RemediationWorldConfig {
        let none = RemediationWorldConfig::default();
        match self {
            RemediationGuard::HostVersion => RemediationWorldConfig { faults: 1, ..none },
            RemediationGuard::MachineVersion => RemediationWorldConfig {
                marks: 1,
                withdrawals: 1,
                ..none
            },
            RemediationGuard::ReleaseTimeLimit | RemediationGuard::KeepUnneededBackup => {
                RemediationWorldConfig {
                    faults: 1,
                    withdrawals: 1,
                    ..none
                }
            }
            RemediationGuard::RewriteDoubtfulBackup => RemediationWorldConfig {
                faults: 1,
                marks: 1,
                withdrawals: 1,
                ..none
            },
            RemediationGuard::BackupBeforeRelease => none,
            RemediationGuard::NodeSilence => RemediationWorldConfig {
                wrong_bmc: true,
                ..none
            },
        }
    }
}
