//! The guards of "proof of off" that can be taken out, each to see the named promise fail.

use super::PowerOffConfig;
use crate::promise::Promise;

/// One thing that keeps a promise. Without it the search has to find a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerGuard {
    /// Off takes two readings.
    TwoReadings,
    /// The two readings are a confirm interval apart.
    ConfirmInterval,
    /// No reading counts before every command of unknown end has settled.
    Settle,
    /// A command is written to the host before it is sent.
    RecordBeforeSend,
    /// A write of the status carries the host's resourceVersion.
    StatusVersion,
    /// A process that lost the lead sends nothing more.
    LeaderSends,
    /// A process that lost the lead releases nothing more.
    LeaderReleases,
    /// A command that was sent is remembered as sent.
    SentOnce,
}

impl PowerGuard {
    pub const ALL: [PowerGuard; 8] = [
        PowerGuard::TwoReadings,
        PowerGuard::ConfirmInterval,
        PowerGuard::Settle,
        PowerGuard::RecordBeforeSend,
        PowerGuard::StatusVersion,
        PowerGuard::LeaderSends,
        PowerGuard::LeaderReleases,
        PowerGuard::SentOnce,
    ];

    /// What the guard does, in words.
    pub fn describe_guard(self) -> &'static str {
        match self {
            PowerGuard::TwoReadings => "off takes two readings",
            PowerGuard::ConfirmInterval => "the two readings are a confirm interval apart",
            PowerGuard::Settle => {
                "readings count only after every command of unknown end has settled"
            }
            PowerGuard::RecordBeforeSend => "a command is on the host before it is sent",
            PowerGuard::StatusVersion => "a write of the host's status carries the resourceVersion",
            PowerGuard::LeaderSends => "who lost the lead sends no command",
            PowerGuard::LeaderReleases => "who lost the lead releases nothing",
            PowerGuard::SentOnce => "a command that was sent is remembered",
        }
    }

    /// The promise that fails without it.
    pub fn expected_failure(self) -> Promise {
        match self {
            PowerGuard::TwoReadings
            | PowerGuard::ConfirmInterval
            | PowerGuard::Settle
            | PowerGuard::LeaderReleases => Promise::ProofBeforeRelease,
            PowerGuard::RecordBeforeSend
            | PowerGuard::StatusVersion
            | PowerGuard::LeaderSends
            | PowerGuard::SentOnce => Promise::OneReboot,
        }
    }

    /// The smallest world in which its absence shows.
    pub fn smallest_world(self) -> PowerOffConfig {
        let none = PowerOffConfig::default();
        match self {
            PowerGuard::TwoReadings | PowerGuard::ConfirmInterval => PowerOffConfig {
                lies: 1,
                faults: 1,
                ..none
            },
            PowerGuard::Settle => PowerOffConfig {
                faults: 1,
                key_changes: 2,
                ..none
            },
            PowerGuard::RecordBeforeSend => PowerOffConfig {
                takeovers: 1,
                ..none
            },
            PowerGuard::StatusVersion => PowerOffConfig {
                faults: 2,
                takeovers: 1,
                ..none
            },
            PowerGuard::LeaderSends | PowerGuard::LeaderReleases => PowerOffConfig {
                takeovers: 1,
                key_changes: 2,
                ..none
            },
            PowerGuard::SentOnce => PowerOffConfig { faults: 1, ..none },
        }
    }
}
