//! The shape of a rollout: canaries, a soak, a ramp, a halt after failures.
//!
//! **For:** [`check_rollout`] answers whether a node may begin, [`PolicyRollout::limit_now`] is a
//! smaller `maxUnavailable`, and [`advance_rollout`] makes the next state, which the controller
//! writes into the policy's status.
//! **Promises:** nothing begins beyond the state that was written last; a state of another shape
//! lets nothing begin; a halt stands until a person ends it; each failure and each success counts
//! once.
//!
//! Source: specification §10.4; `docs/design/0028-rollout-shape.md`.

mod advance;
mod canaries;
mod candidate;
mod check;
mod failures;
mod node_facts;
mod ramp;
mod shape;
#[cfg(test)]
mod tests;

pub use advance::{RolloutAdvance, advance_rollout, advance_rollouts, is_urgent_change};
pub use check::{
    BeginRefusal, RolloutCandidate, check_rollout, describe_halt, find_halt, halt_event,
};
pub use shape::{PolicyRollout, RolloutCanary, RolloutShape, describe_rollout};

pub use dogwatch_api::reboot_policy::{
    CanaryNode, FailedRolloutNode, PolicyRolloutState, RolloutHalt, RolloutNode, RolloutPhase,
};
