//! `dogwatch rollout-restart`: finds an object, writes the restart, and follows it.
//!
//! **May touch:** discovery; one annotation of one object's pod template; reads of that object, of
//! the pods it selects, of its Warnings.
//! **Promises:** the write carries the UID and resourceVersion that were checked just before, so
//! that an object that was paused or replaced meanwhile is not restarted; nothing is polled.

mod follow;
mod kind;
mod restart;
mod view;

pub use follow::RolloutWatch;
pub use kind::NoSuchKind;
pub use restart::{RestartError, RolloutClient, RolloutTarget};
