//! The coordinator on every node: its hands on the host, and its loop.
//!
//! **For:** rebooting one node when its host wants it, with the cluster's leave.
//! **May touch:** its host ([`host`]), and through `dogwatch-k8s` the API server.
//! **Promises:** it acts only on `dogwatch_core::reboot::decide` ([`agent`]); it is small enough to
//! run on every node.

pub mod agent;
pub mod args;
pub mod host;
pub mod http;
pub mod metrics;
pub mod node_hands;
mod show;

pub use dogwatch_process::{clock, health, log};
