//! `RebootSchedule`s as decisions see them, and the hand that asks their targets.
//!
//! **For:** [`ScheduleWatch`] keeps them in sight, [`convert`] makes of one what `core` decides with,
//! [`ScheduleClient`] reads targets, asks them, and writes down what came of it.
//! **May touch:** `rebootschedules.dogwatch.dev` (list, watch, and their status), the metadata of Nodes
//! and BareMetalHosts (list, and one patch), Events.
//! **Promises:** every write carries UID and resourceVersion of what it was decided on; a request and
//! the mark that it was made are one patch. A schedule that cannot be understood is one with problems,
//! and hides no other.
//!
//! Source: specification §5.

mod client;
mod convert;
mod object;
mod pages;
mod status;
mod target;
#[cfg(test)]
mod tests;
mod watch;

pub use client::ScheduleClient;
pub use convert::convert;
pub use object::ScheduleObject;
pub use watch::{ScheduleWatch, SchedulesSeen};
