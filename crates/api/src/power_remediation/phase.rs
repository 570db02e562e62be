//! Summarizes the state of a request in one word.

use serde::{Deserialize, Serialize};

use super::{PowerRemediationStatus, condition};

/// The phase of a request. For people: no decision depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PowerRemediationPhase {
    /// The host's power has not been changed yet.
    Waiting,
    /// The host goes off, and Dogwatch waits for the proof.
    PoweringOff,
    /// The host is proved off: its workloads are released.
    Releasing,
    /// The workloads are released: the host comes back.
    PoweringOn,
    /// The Node is Ready with a new boot.
    Succeeded,
    /// Dogwatch gave up.
    Failed,
    /// Withdrawn before anything was released.
    Withdrawn,
}

impl PowerRemediationPhase {
    /// Every phase, in their order.
    pub const ALL: [PowerRemediationPhase; 7] = [
        PowerRemediationPhase::Waiting,
        PowerRemediationPhase::PoweringOff,
        PowerRemediationPhase::Releasing,
        PowerRemediationPhase::PoweringOn,
        PowerRemediationPhase::Succeeded,
        PowerRemediationPhase::Failed,
        PowerRemediationPhase::Withdrawn,
    ];

    /// The phase as it is written in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            PowerRemediationPhase::Waiting => "Waiting",
            PowerRemediationPhase::PoweringOff => "PoweringOff",
            PowerRemediationPhase::Releasing => "Releasing",
            PowerRemediationPhase::PoweringOn => "PoweringOn",
            PowerRemediationPhase::Succeeded => "Succeeded",
            PowerRemediationPhase::Failed => "Failed",
            PowerRemediationPhase::Withdrawn => "Withdrawn",
        }
    }
}

impl PowerRemediationStatus {
    /// Computes [`phase`](Self::phase) from the other fields.
    pub fn current_phase(&self) -> PowerRemediationPhase {
        match (self.succeeded_condition(), self.ended_at) {
            (Some(true), _) => PowerRemediationPhase::Succeeded,
            (Some(false), _) => PowerRemediationPhase::Failed,
            (None, Some(_)) => PowerRemediationPhase::Withdrawn,
            (None, None) => self.phase_of_attempt(),
        }
    }

    /// The phase that follows from the last step of the present attempt.
    fn phase_of_attempt(&self) -> PowerRemediationPhase {
        let Some(attempt) = self.attempt else {
            return PowerRemediationPhase::Waiting;
        };
        if attempt.released_at.is_some() {
            PowerRemediationPhase::PoweringOn
        } else if attempt.off_confirmed_at.is_some() {
            PowerRemediationPhase::Releasing
        } else if attempt.key_at.is_some() {
            PowerRemediationPhase::PoweringOff
        } else {
            PowerRemediationPhase::Waiting
        }
    }

    fn succeeded_condition(&self) -> Option<bool> {
        let mut conditions = self.conditions.iter();
        let said = conditions.find(|condition| condition.type_ == condition::SUCCEEDED)?;
        match said.status.as_str() {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }
    }
}
