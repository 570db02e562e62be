//! The decision, one host at a time.

use std::time::Duration;

use super::config::Config;
use super::host::{HostStatus, Intention};
use super::reason;
use super::seen::Seen;
use crate::decision::{Because, Report};
use crate::{Now, Wake};

/// What to do about one host's power.
pub type Decision = crate::Decision<Action, Look>;

/// What to write or send.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Writes the status, on the version that was seen. A command in it may be sent once the answer
    /// is there ([`super::Memory::written`]).
    WriteStatus(Box<StatusWrite>),
    /// Removes annotations, on the version that was seen.
    RemoveAnnotations(Vec<String>),
    /// Sends the command whose intention stands on the host. Only while the lead outlasts the call.
    Send(Intention),
}

/// The status as it should stand. Conditions come from the decision's report.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusWrite {
    /// All of our fields.
    pub status: HostStatus,
    /// Why it is worth a write, for the log.
    pub why: &'static str,
}

/// What has to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// Reads the power of a level, at once.
    Read {
        /// Which level.
        level: usize,
        /// Whether a power-off waits for it: it goes before polls.
        is_urgent: bool,
    },
    /// Checks whether power control of a level would work, at once.
    Check {
        /// Which level.
        level: usize,
    },
}

/// What to do about this host now. Pure: the same input, the same answer.
///
/// `id` is the id that a command would have if one is decided: `PROCESS/N`, never used before.
/// `jitter` in 0..1 spreads polls and retries.
pub fn decide(seen: &Seen, config: &Config, id: &str, jitter: f64, now: Now) -> Decision {
    let _ = (seen, id, jitter);
    Decision {
        actions: Vec::new(),
        looks: Vec::new(),
        report: Report::default(),
        wake: Some(Wake {
            at: now
                .mono
                .saturating_add(config.poll.max(Duration::from_secs(1))),
            why: "the next poll",
        }),
        because: Because::new(reason::POWER_UNKNOWN, "not read yet"),
    }
}
