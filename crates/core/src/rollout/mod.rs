//! A rollout restart: may it begin, and has it got there? Source: specification §2.8.
//!
//! **For:** [`refuse`] says before anything is written why an object cannot be restarted and what to
//! do instead; [`decide`] says, each time something changed, whether the new pods are there.
//! **Promises:** done is what the kind's own controller says of the present generation, never a count
//! of the generation before; and whatever does not get there has a reason that names what is wrong.

mod decide;
mod refuse;
#[cfg(test)]
mod tests;
mod types;

pub use decide::decide;
pub use refuse::{Refusal, refuse};
pub use types::{
    Clock, ConditionSeen, Counts, Kind, ObjectSeen, Owner, PodSeen, Progress, Seen, State, Verdict,
    reason,
};

/// The annotation of the pod template by which kubectl, and so everybody, restarts: a new value is a
/// new template, which the controller rolls out by its own rules.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
