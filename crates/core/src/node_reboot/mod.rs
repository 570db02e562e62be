//! `NodeReboot`s: carries each one to its Node as the annotation `dogwatch.dev/reboot-requested`,
//! and mirrors what the node's coordinator records.
//!
//! **For:** the controller. Nothing here reboots or drains anything: that is the coordinator's.
//! **May touch:** nothing.
//! **Promises:**
//! - An attempt is in the status before the Node is asked, so a crash loses no request and repeats
//!   no reboot (S5).
//! - `Succeeded` becomes True or False once, and only when the Node carries nothing of the request
//!   any more: others take False for final and ask again at once.
//! - What is absent in a watch proves nothing: an end that follows from absence needs a fresh read.
//! - A request that somebody else wrote is joined, never replaced (S3).
//! - The finalizer stays until the Node carries nothing of the request, so nobody is left held (S6).
//!
//! Source: specification §10.1.

mod asking;
mod attempt;
mod decide;
mod ending;
mod following;
mod reason;
mod report;
mod request;
mod snapshot;
#[cfg(test)]
mod tests;
mod types;

pub use decide::{NodeRebootAction, NodeRebootDecision, NodeRebootObserve, decide};
pub use reason::NodeRebootReason;
pub use request::NodeRequestPatch;
pub use snapshot::{NodeRebootSnapshot, RebootNodeRead};
pub use types::{NodeRebootPlan, NodeRebootState, ObservedNodeReboot, SuccessPlan};
