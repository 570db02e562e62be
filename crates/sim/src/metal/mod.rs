//! Bare-metal hosts with simulated BMCs, and the power controllers that keep them.
//!
//! **For:** scenarios, the demo and randomised runs: they drive the same hosts, and hold what is said
//! of them against what their machines did.
//! **May touch:** the embedded API server and the process' own memory.
//! **Promises:** the controllers are the real loop with the real election and the real Redfish driver;
//! only machines, BMCs and the API server are simulated. A controller that is dropped is killed. What
//! is judged comes from the machines' logs and from what went over the wire, not from what the
//! controllers say.

mod admin;
mod controller;
mod readings;
mod truth;
mod volume;
mod yard;

pub use admin::Refused;
pub use controller::{Controller, Replica, Way};
pub use readings::{Readings, Said};
pub use truth::{PowerOn, power_ons};
pub use volume::{Volume, Writes};
pub use yard::{NAMESPACE, Yard};
