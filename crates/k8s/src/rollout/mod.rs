//! `dogwatch rollout-restart`: finds what is named, writes the restart, and follows it.
//!
//! **May touch:** discovery; one annotation of one object's pod template; reads of that object, of the
//! pods it selects, of its Warnings.
//! **Promises:** the write carries the UID and resourceVersion of what was checked just before, so that
//! an object that was paused or replaced meanwhile is not restarted; nothing is polled.

mod follow;
mod kind;
mod restart;
mod view;

pub use follow::Follow;
pub use kind::NoSuchKind;
pub use restart::{Failed, Found, RolloutClient};
