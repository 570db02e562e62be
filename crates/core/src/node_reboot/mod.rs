//! `NodeReboot`s: carries each one to its Node as the annotation `dogwatch.dev/reboot-requested`,
//! and mirrors what the node's coordinator records.
//!
//! **For:** the controller. Nothing here drains anything or runs a command: that is the
//! coordinator's. With method `PowerCycle`, a key on the node's host has it switched off and on.
//! **May touch:** nothing.
//! **Promises:**
//! - An attempt is in the status before the Node is asked, so a crash loses no request and repeats
//!   no reboot (S5).
//! - `Succeeded` becomes True or False once, and only when the Node carries nothing of the request
//!   any more: others take False for final and ask again at once.
//! - What is absent in a watch proves nothing: an end that follows from absence needs a fresh read.
//! - A request that somebody else wrote is joined, never replaced (S3).
//! - A host is switched off only for a record that says that the node is drained, and the intention
//!   is in the status before (S5). Whatever ends, the key comes off the host first (S6).
//! - The finalizer stays until the Node carries nothing of the request, so nobody is left held (S6).
//!
//! Source: specification §10.1.

mod asking;
mod attempt;
mod decide;
mod ending;
mod estimate;
mod following;
mod host_check;
mod host_key;
mod host_release;
mod power_cycle;
mod reason;
mod report;
mod request;
mod snapshot;
#[cfg(test)]
mod tests;
mod types;

pub use attempt::{begun_record, is_past_joining};
pub use decide::{NodeRebootAction, NodeRebootDecision, NodeRebootObserve, decide};
pub use estimate::NodeRebootEstimate;
pub use host_key::{
    HostKeyName, HostKeyPatch, HostKeySnapshot, KeyOwnerRead, decide_host_key, host_keys,
    is_power_cycle_open,
};
pub use reason::NodeRebootReason;
pub use request::{LateAskBlock, NodeRequestPatch, is_written_by_person};
pub use snapshot::{
    HostLookup, LateAsk, NodeHostPower, NodeHostRead, NodeHostView, NodeRebootSnapshot,
    RebootNodeRead,
};
pub use types::{NodeRebootPlan, NodeRebootState, ObservedNodeReboot, SuccessPlan};
