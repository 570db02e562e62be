//! A rollout restart: may it begin, and is it complete? Source: specification §2.8.
//!
//! **For:** before anything is written, [`find_refusal`] says why an object cannot be restarted and
//! what to do instead; after each change, [`decide`] says whether the new pods are ready.
//! **Promises:** a restart is complete only when the kind's own controller says so for the current
//! generation, never by a count of an earlier generation; and a restart that does not complete has
//! a reason that names what is wrong.

mod decide;
mod refusal;
#[cfg(test)]
mod tests;
mod types;

pub use decide::decide;
pub use refusal::{RolloutRefusal, find_refusal};
pub use types::{
    ObservedRolloutPod, ObservedWorkload, RestartTargetKind, RolloutClock, RolloutCounts,
    RolloutProgress, RolloutSnapshot, RolloutState, RolloutVerdict, WorkloadCondition,
    WorkloadOwner, reason,
};

/// The annotation on the pod template with which `kubectl rollout restart` works: a new value is a
/// new template, which the controller rolls out by its own rules.
pub const RESTARTED_AT_ANNOTATION: &str = "kubectl.kubernetes.io/restartedAt";
