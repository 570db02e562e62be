//! Where a request stands, in one word.

use serde::{Deserialize, Serialize};

use super::{PowerRemediationStatus, condition};

/// Where a request stands. For people: nothing is decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Nothing is asked of the host yet.
    Waiting,
    /// The host is to go off, and that is to be proved.
    PoweringOff,
    /// It is proved off: workloads are released.
    Releasing,
    /// They are released: the host comes back.
    PoweringOn,
    /// A new boot is Ready.
    Succeeded,
    /// Given up.
    Failed,
    /// Called off before anything was released.
    Withdrawn,
}

impl Phase {
    /// All of them, in their order.
    pub const ALL: [Phase; 7] = [
        Phase::Waiting,
        Phase::PoweringOff,
        Phase::Releasing,
        Phase::PoweringOn,
        Phase::Succeeded,
        Phase::Failed,
        Phase::Withdrawn,
    ];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Waiting => "Waiting",
            Phase::PoweringOff => "PoweringOff",
            Phase::Releasing => "Releasing",
            Phase::PoweringOn => "PoweringOn",
            Phase::Succeeded => "Succeeded",
            Phase::Failed => "Failed",
            Phase::Withdrawn => "Withdrawn",
        }
    }
}

impl PowerRemediationStatus {
    /// What [`phase`](Self::phase) has to be, by everything else here.
    pub fn phase_now(&self) -> Phase {
        match (self.succeeded(), self.ended_at) {
            (Some(true), _) => Phase::Succeeded,
            (Some(false), _) => Phase::Failed,
            (None, Some(_)) => Phase::Withdrawn,
            (None, None) => self.phase_of_attempt(),
        }
    }

    /// Of the attempt under way, the last step that was seen.
    fn phase_of_attempt(&self) -> Phase {
        let Some(attempt) = self.attempt else {
            return Phase::Waiting;
        };
        if attempt.released_at.is_some() {
            Phase::PoweringOn
        } else if attempt.off_confirmed_at.is_some() {
            Phase::Releasing
        } else if attempt.key_at.is_some() {
            Phase::PoweringOff
        } else {
            Phase::Waiting
        }
    }

    fn succeeded(&self) -> Option<bool> {
        let mut conditions = self.conditions.iter();
        let said = conditions.find(|condition| condition.type_ == condition::SUCCEEDED)?;
        match said.status.as_str() {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }
    }
}
