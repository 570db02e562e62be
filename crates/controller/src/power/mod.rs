//! Host power: keeps every BareMetalHost as its specification and its reboot annotations demand.
//!
//! **For:** `dogwatch controller --components power`; [`HostRegistry`] for parts that need a host's
//! state or the proof that it is off.
//! **May touch:** BareMetalHosts and their Secrets through `dogwatch-k8s`, BMCs through
//! `dogwatch-bmc`.
//! **Promises:**
//! - One reconciler for each host: a BMC that hangs, or a host that cannot be written, delays only
//!   itself (L1).
//! - Only the leader sends commands, right after the answer to the write of the command's
//!   intention, and only if its lead outlasts the command's deadline. A process that lost the lead
//!   sends nothing more, and remembers nothing.
//! - A power-off waits for no poll (`bmc_concurrency`) and for no reporting write
//!   (`write_limiter`).
//!
//! Decided in `dogwatch_core::power`. Source: specification §3.

mod bmc_calls;
mod bmc_concurrency;
mod bmc_connections;
mod host_changes;
mod host_reconciler;
mod host_reconcilers;
mod host_registry;
mod host_store;
mod host_summary;
mod observed_power;
mod power_controller;
mod power_metrics;
mod services;
#[cfg(test)]
mod tests;
mod write_limiter;

pub use bmc_connections::{ConnectDriver, driver_connector};
pub use host_registry::{HostRegistry, RegisteredHost};
pub(crate) use observed_power::{does_bmc_answer, observe_power, summarize_power};
pub use power_controller::{PowerSettings, run_power_controller};
