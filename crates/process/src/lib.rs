//! The parts that every long-running program of Dogwatch shares.
//!
//! **For:** the coordinator and the controller: clock, log, jitter, heartbeats of loops, metrics
//! text, a small server for `/metrics` and the probes, and limits for connections.
//! **May touch:** the process' clocks, stderr, the variable `DOGWATCH_LOG`, listening sockets.
//! **Promises:** nothing here knows Kubernetes or decides anything.

pub mod clock;
pub mod connections;
pub mod health;
pub mod http;
pub mod jitter;
pub mod leadership;
pub mod listen;
pub mod log;
pub mod metrics_text;
pub mod mutex;
pub mod reconcile;
pub mod stop;
