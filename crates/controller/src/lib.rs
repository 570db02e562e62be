//! The controller: what watches over all nodes, and what serves hosts that run no coordinator.
//!
//! **For:** `dogwatch controller`. One loop finishes what a coordinator that never came back cannot
//! finish, one tells what each policy governs, one serves the reboot lock over HTTP.
//! **May touch:** the API server through `dogwatch-k8s`, and the listeners it is told to open.
//! **Promises:** whoever acts on the cluster leads by Lease while it does; the lock API runs on every
//! replica, for the lock itself keeps its rules; each loop decides in `dogwatch-core`.

pub mod board;
pub mod cluster;
mod context;
pub mod handshake;
pub mod healer;
pub mod leader;
pub mod lock;
pub mod metrics;
pub mod policy_status;
pub mod power;
pub mod remedy;
pub mod run;
pub mod schedule;

pub use context::{Context, Stop, Stopper};
