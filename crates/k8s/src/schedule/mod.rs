//! Watches `RebootSchedule`s, and requests the reboots of their targets.
//!
//! **For:** [`ScheduleWatch`] watches them, [`convert`] turns one into what `core` decides with,
//! [`ScheduleClient`] reads targets, requests their reboots, and writes the status.
//! **May touch:** `rebootschedules.dogwatch.dev` (list, watch, and their status), the metadata of
//! Nodes and BareMetalHosts (list, and one patch), `nodereboots.dogwatch.dev` (list, create), Events.
//! **Promises:** every write carries UID and resourceVersion of what it was decided on; a request
//! and its mark are one patch. A schedule that cannot be understood has problems, and hides no
//! other.
//!
//! Source: specification §5.

mod client;
mod convert;
mod made_reboot;
mod object;
mod pages;
mod status;
mod target;
#[cfg(test)]
mod tests;
mod watch;

pub use client::ScheduleClient;
pub use convert::convert_schedule;
pub use made_reboot::NodeRebootCreation;
pub use object::ScheduleObject;
pub(crate) use watch::schedule_entry;
pub use watch::{ScheduleWatch, ScheduleWatchView};
