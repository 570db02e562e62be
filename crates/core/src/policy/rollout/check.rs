//! Whether a node may begin.

use super::{PolicyRolloutState, RolloutHalt, RolloutPhase};
use crate::decision::{DecisionEvent, EventSeverity};
use crate::name::BootId;
use crate::policy::{Policy, PolicyReason};
use crate::reboot::RebootReason;

/// Who is to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutCandidate<'a> {
    /// A reboot of this Node that is to end this boot.
    Reboot {
        node: &'a str,
        uid: &'a str,
        boot_id: Option<&'a BootId>,
    },
    /// A hold: nothing is booted anew, so it waits for no canary.
    Hold,
    /// A host that asks through the lock API: never a canary.
    LockHost,
}

impl RolloutCandidate<'_> {
    fn is_canary(self, state: &PolicyRolloutState) -> bool {
        match self {
            RolloutCandidate::Reboot { node, uid, boot_id } => {
                let boot_id = boot_id.map(BootId::as_str);
                let mut canaries = state.canaries.iter().filter(|canary| !canary.done);
                canaries.any(|canary| {
                    canary.node == node
                        && canary.uid == uid
                        && Some(canary.boot_id.as_str()) == boot_id
                })
            }
            RolloutCandidate::Hold | RolloutCandidate::LockHost => false,
        }
    }
}

/// Why the rollout does not let a node begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeginRefusal {
    pub reason: RebootReason,
    /// The same for all nodes of the policy and for the whole phase: thousands write it on their
    /// Nodes.
    pub message: String,
}

/// Whether the rollout of `policy` lets this candidate begin now; `None`: it does. No clock is
/// asked: the controller ends a soak.
pub fn check_rollout(policy: &Policy, candidate: RolloutCandidate<'_>) -> Option<BeginRefusal> {
    if let Some(halt) = find_halt(policy) {
        return Some(halt);
    }
    policy.rollout.shape.as_ref()?;
    if candidate == RolloutCandidate::Hold {
        return None;
    }
    let Some(state) = policy.rollout.current_state() else {
        return Some(refuse_unstarted(policy));
    };
    match state.phase {
        RolloutPhase::Ramping => None,
        RolloutPhase::Canary if candidate.is_canary(state) => None,
        RolloutPhase::Canary => Some(refuse_before_canaries(policy)),
        RolloutPhase::Soaking => Some(refuse_while_soaking(policy, state)),
    }
}

/// The halt of the policy's rollout, if it is halted. It also undoes drains under way. It stands
/// whatever `rollout` says by now.
pub fn find_halt(policy: &Policy) -> Option<BeginRefusal> {
    let halt = policy.rollout.state.as_ref()?.halted.as_ref()?;
    let message = format!(
        "the rollout of RebootPolicy {} is halted since {} ({}); when that is repaired, run `dogwatch resume {}`",
        policy.name, halt.since, halt.reason, policy.name
    );
    Some(BeginRefusal {
        reason: RebootReason::RolloutHalted,
        message,
    })
}

fn refuse_unstarted(policy: &Policy) -> BeginRefusal {
    let message = format!(
        "the controller has not begun the rollout of RebootPolicy {} as it is written now",
        policy.name
    );
    BeginRefusal {
        reason: RebootReason::RolloutNotStarted,
        message,
    }
}

fn refuse_before_canaries(policy: &Policy) -> BeginRefusal {
    let message = format!(
        "the canaries of RebootPolicy {} go first; `dogwatch status policies -o wide` names them",
        policy.name
    );
    BeginRefusal {
        reason: RebootReason::AwaitingCanary,
        message,
    }
}

fn refuse_while_soaking(policy: &Policy, state: &PolicyRolloutState) -> BeginRefusal {
    let until = state
        .soak_ends
        .map_or_else(String::new, |at| format!(" until {at}"));
    let message = format!(
        "the canaries of RebootPolicy {} are back; nothing begins{until}",
        policy.name
    );
    BeginRefusal {
        reason: RebootReason::RolloutSoaking,
        message,
    }
}

/// The Event about a halt.
pub fn halt_event(policy: &Policy, halt: &RolloutHalt) -> DecisionEvent {
    DecisionEvent {
        severity: EventSeverity::Warning,
        reason: PolicyReason::TooManyFailures.as_str(),
        message: describe_halt(policy, halt),
    }
}

/// The halt in a sentence, with the way out.
pub fn describe_halt(policy: &Policy, halt: &RolloutHalt) -> String {
    format!(
        "{}; nothing begins until somebody runs `dogwatch resume {}`",
        halt.reason, policy.name
    )
}
