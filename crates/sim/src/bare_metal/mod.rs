//! Bare-metal hosts with simulated BMCs, and the controllers that control their power.
//!
//! **For:** scenarios, the demo and randomised runs: they drive the same hosts, and compare their
//! status with what the machines did.
//! **May touch:** the embedded API server and the process's own memory.
//! **Promises:** the controllers run the real loop, the real leader election and the real Redfish
//! driver; only machines, BMCs and the API server are simulated. A dropped controller is killed.
//! The checks use the machines' logs and the recorded BMC answers, not what the controllers say.

mod admin;
mod bmc_readings;
mod controller;
mod lab;
mod power_audit;
mod replica_trace;
mod volume;

pub use admin::AdminRequestError;
pub(crate) use admin::create_object;
pub use bmc_readings::{BmcReadings, ObservedReading};
pub use controller::{BmcAccess, ControllerReplica, SimController};
pub use lab::{BareMetalLab, LAB_NAMESPACE};
pub use power_audit::{ObservedPowerOn, device_power_ons};
pub use replica_trace::ReplicaTrace;
pub use volume::{SharedVolume, VolumeWrites};
