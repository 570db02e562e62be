//! A `RebootSchedule` as decisions see it.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::reason;
use super::target::Kind;
use super::when::When;
use crate::condition::Condition;
use crate::selector::LabelSelector;

/// How many past occurrences a schedule remembers.
pub const HISTORY: usize = 10;
/// How many targets of each are named; of the others there are numbers.
pub const TARGETS_LISTED: usize = 20;

/// Namespace and name of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleName {
    /// Its namespace; its hosts live there too.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ScheduleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// One schedule as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Where it is.
    pub name: ScheduleName,
    /// Its UID: marks are made with it.
    pub uid: String,
    /// What a write to it relies on.
    pub resource_version: String,
    /// Which version of its spec this is.
    pub generation: Option<i64>,
    /// When it was created, by the API server's clock. No occurrence of a recurrence is before that.
    pub created: Timestamp,
    /// When its spec was last changed, by the API server's clock, where that is known. The same.
    pub changed: Option<Timestamp>,
    /// It is being deleted.
    pub deleting: bool,
    /// What it says, or everything that is wrong with it.
    pub plan: Result<Plan, Vec<String>>,
    /// What is written down of it.
    pub status: Status,
}

/// `spec`, understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// When.
    pub when: When,
    /// On whose clock times are shown.
    pub zone: TimeZone,
    /// How late an occurrence may still be issued.
    pub starting_deadline: Duration,
    /// Nothing is issued.
    pub suspend: bool,
    /// Why the reboots are wanted; goes into the requests.
    pub reason: String,
    /// How hosts that carry no Node are switched off.
    pub mode: Mode,
    /// Nodes.
    pub nodes: Option<Chosen>,
    /// Hosts in the schedule's namespace.
    pub hosts: Option<Chosen>,
}

/// Which objects: those of these names, and those that the selector matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chosen {
    /// By name.
    pub names: Vec<String>,
    /// By labels.
    pub selector: Option<LabelSelector>,
}

/// How a host is switched off. Source: metal3's reboot-interface design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It is asked first.
    #[default]
    Soft,
    /// At once.
    Hard,
}

impl Mode {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Soft => "soft",
            Mode::Hard => "hard",
        }
    }
}

/// `status`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    /// The generation that it speaks of.
    pub observed_generation: Option<i64>,
    /// The next occurrence.
    pub next: Option<Timestamp>,
    /// The newest occurrence that was begun or missed.
    pub last: Option<Timestamp>,
    /// The occurrence that is being issued: written before its first request (S5).
    pub current: Option<Current>,
    /// Past occurrences, the newest record first, at most [`HISTORY`].
    pub history: Vec<Record>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

/// An occurrence that is being issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current {
    /// The appointed time.
    pub at: Timestamp,
    /// When that was written down.
    pub begun: Timestamp,
}

/// What is left of one occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The appointed time.
    pub at: Timestamp,
    /// When it was done with.
    pub ended: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// How many targets were asked.
    pub asked: u32,
    /// How many had a request already.
    pub noted: u32,
    /// How many could not be asked.
    pub failed: u32,
    /// At most [`TARGETS_LISTED`], those that failed first.
    pub targets: Vec<TargetEnd>,
    /// A sentence.
    pub message: String,
}

/// How an occurrence ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every target was asked, or had a request already.
    Requested,
    /// Some were.
    PartlyRequested,
    /// None was.
    Failed,
    /// Its time passed while nobody was there to issue it.
    Missed,
    /// The schedule was suspended or changed meanwhile.
    Cancelled,
    /// Nothing matched.
    NoTargets,
}

impl Outcome {
    const ALL: [Outcome; 6] = [
        Outcome::Requested,
        Outcome::PartlyRequested,
        Outcome::Failed,
        Outcome::Missed,
        Outcome::Cancelled,
        Outcome::NoTargets,
    ];

    /// As it is written; also a reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Requested => reason::REQUESTED,
            Outcome::PartlyRequested => reason::PARTLY,
            Outcome::Failed => reason::FAILED,
            Outcome::Missed => reason::MISSED,
            Outcome::Cancelled => reason::CANCELLED,
            Outcome::NoTargets => reason::NO_TARGETS,
        }
    }

    /// The reverse of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }
}

/// What came of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetEnd {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// What came of it.
    pub result: TargetResult,
    /// Why, where that is worth a word.
    pub message: String,
}

/// What came of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetResult {
    /// It could not be asked.
    Failed,
    /// It had a request already, which was left as it is.
    Noted,
    /// It was asked.
    Requested,
}

impl TargetResult {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            TargetResult::Failed => "Failed",
            TargetResult::Noted => "AlreadyRequested",
            TargetResult::Requested => "Requested",
        }
    }

    /// The reverse of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        use TargetResult::{Failed, Noted, Requested};
        [Failed, Noted, Requested]
            .into_iter()
            .find(|one| one.as_str() == text)
    }
}
