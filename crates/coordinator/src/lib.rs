//! The coordinator that runs on every node: its loop, and its access to the host.
//!
//! **For:** rebooting one node when its host needs it and the cluster allows it.
//! **May touch:** its host ([`host`]), and through `dogwatch-k8s` the API server.
//! **Promises:** it acts only on `dogwatch_core::reboot::decide` ([`agent`]); it is small enough to
//! run on every node.

pub mod agent;
pub mod args;
pub mod decision_log;
pub mod host;
pub mod http;
pub mod linux_host_ops;
pub mod metrics;
mod metrics_update;

pub use dogwatch_runtime::{clock, health, log};
