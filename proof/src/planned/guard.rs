//! The guards that can be taken out of the world, each to see the named promise fail.

use super::PlannedConfig;
use crate::promise::Promise;

/// One thing that keeps a promise. Without it the search has to find a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedGuard {
    /// A bid carries the Lease's resourceVersion.
    BidVersion,
    /// A release carries the Lease's resourceVersion.
    ReleaseVersion,
    /// A release that was not answered is sent again before the lock is used.
    RepeatedRelease,
    /// A patch of the Node carries its resourceVersion.
    NodeVersion,
    /// Unavailable nodes are counted by reads that were sent after the win.
    CountAfterWin,
    /// The smallest maximum among bidder and holders applies.
    SmallestMaximum,
    /// A remediated node counts from the taking of its Lease to its freeing.
    RemediationCounts,
    /// Only a new boot id proves a reboot, never a new process.
    BootId,
    /// An attempt that was taken over from an older run gives no permit.
    AdoptedAttempt,
    /// A cordon of somebody else is not recorded as ours.
    CordonOwner,
}

impl PlannedGuard {
    pub const ALL: [PlannedGuard; 10] = [
        PlannedGuard::BidVersion,
        PlannedGuard::ReleaseVersion,
        PlannedGuard::RepeatedRelease,
        PlannedGuard::NodeVersion,
        PlannedGuard::CountAfterWin,
        PlannedGuard::SmallestMaximum,
        PlannedGuard::RemediationCounts,
        PlannedGuard::BootId,
        PlannedGuard::AdoptedAttempt,
        PlannedGuard::CordonOwner,
    ];

    /// What the guard does, in words.
    pub fn describe_guard(self) -> &'static str {
        match self {
            PlannedGuard::BidVersion => "a bid carries the Lease's resourceVersion",
            PlannedGuard::ReleaseVersion => "a release carries the Lease's resourceVersion",
            PlannedGuard::RepeatedRelease => {
                "a release that was not answered is sent again before the lock is used"
            }
            PlannedGuard::NodeVersion => "a patch of the Node carries its resourceVersion",
            PlannedGuard::CountAfterWin => "the count is read after the win",
            PlannedGuard::SmallestMaximum => {
                "the smallest maximum among bidder and holders applies"
            }
            PlannedGuard::RemediationCounts => {
                "a remediated node counts while its Lease is held, also without a Node"
            }
            PlannedGuard::BootId => "only a new boot id proves a reboot",
            PlannedGuard::AdoptedAttempt => "an attempt of an older run gives no permit",
            PlannedGuard::CordonOwner => "a foreign cordon is not recorded as ours",
        }
    }

    /// The promise that fails without it.
    pub fn expected_failure(self) -> Promise {
        match self {
            PlannedGuard::BidVersion => Promise::NobodyLeftBehind,
            PlannedGuard::ReleaseVersion
            | PlannedGuard::RepeatedRelease
            | PlannedGuard::CountAfterWin
            | PlannedGuard::SmallestMaximum
            | PlannedGuard::RemediationCounts => Promise::MutualExclusion,
            PlannedGuard::NodeVersion | PlannedGuard::CordonOwner => Promise::NothingForeignUndone,
            PlannedGuard::BootId => Promise::NewBootId,
            PlannedGuard::AdoptedAttempt => Promise::OneReboot,
        }
    }

    /// The smallest world in which its absence shows.
    pub fn smallest_world(self) -> PlannedConfig {
        let one = PlannedConfig::new(&[1]);
        let two = PlannedConfig::new(&[1, 1]);
        match self {
            PlannedGuard::BidVersion => PlannedConfig { faults: 1, ..one },
            // A node gives the lock back because the other one is cordoned, a copy of that write is
            // late, and meanwhile the other one is uncordoned and wins.
            PlannedGuard::ReleaseVersion | PlannedGuard::RepeatedRelease => PlannedConfig {
                faults: 1,
                foreign: 1,
                last_is_cordoned: true,
                ..two
            },
            PlannedGuard::NodeVersion => PlannedConfig {
                faults: 1,
                foreign: 1,
                ..one
            },
            PlannedGuard::SmallestMaximum => PlannedConfig::new(&[2, 1]),
            // The remediation takes its Lease between a count that is read too early and the win.
            PlannedGuard::CountAfterWin | PlannedGuard::RemediationCounts => PlannedConfig {
                remediation: true,
                wanting: vec![false, true],
                ..two
            },
            PlannedGuard::BootId | PlannedGuard::AdoptedAttempt => {
                PlannedConfig { crashes: 1, ..one }
            }
            PlannedGuard::CordonOwner => PlannedConfig { foreign: 1, ..one },
        }
    }
}
