//! All decisions of Dogwatch.
//!
//! **For:** deciding, from an observation and the time, what to do, what to report, what else to
//! observe, when to decide again, and why. **May touch:** nothing. No async, no I/O, no clock, no
//! random source, no environment, no client. **Promises:** the same input gives the same
//! [`Decision`], whether the live loop, the simulator, a test or `explain` asks. Facts that must be
//! remembered are in the input: they were written on the cluster before the step that they belong
//! to.

pub mod admission;
pub mod answer_overlay;
pub mod backoff;
pub mod check;
pub mod condition;
pub mod decision;
pub mod drain;
pub mod duration;
pub mod explain;
pub mod fleetlock;
pub mod healer;
mod json_default;
pub mod kured;
pub mod leader;
pub mod limit;
pub mod lock;
pub mod markers;
#[cfg(test)]
mod model_depth;
pub mod name_suggestions;
pub mod node_reboot;
pub mod policy;
pub mod power;
pub mod printable;
pub mod reason;
pub mod reboot;
pub mod remediation;
pub mod report;
pub mod reported_events;
pub mod resource_version;
pub mod rollout;
pub mod schedule;
pub mod time;
pub mod verify;

/// Names and selectors are the same type on an object and in a decision.
pub use dogwatch_api::{name, selector};

pub use decision::{Decision, DecisionCause, WakeTime};
pub use time::Now;
