//! What every long-running program of Dogwatch is made of.
//!
//! **For:** the coordinator and the controller: one clock, one log, one way to notice that a loop is
//! stuck, one small server for `/metrics` and the probes, one rule for who
//! may stay connected.
//! **May touch:** the process' clocks, stderr, the variable `DOGWATCH_LOG`, listening sockets.
//! **Promises:** nothing here knows Kubernetes or decides anything.

pub mod clock;
pub mod connections;
pub mod health;
pub mod http;
pub mod jitter;
pub mod listen;
pub mod log;
pub mod text;
