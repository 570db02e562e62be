//! Simulated BMCs: the real Redfish driver with each of their faults, and the machines behind them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod bench;
mod driver;
mod lies;
mod machines;
mod ports;
mod shapes;
mod world;
