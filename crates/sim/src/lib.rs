//! The simulator: Dogwatch in the cluster of [`dogwatch_kubesim`], with hosts, BMCs and faults.
//!
//! **May touch:** nothing outside of the process but a listener that it is given.
//! **Promises:** time comes from a [`ClusterClock`](dogwatch_kubesim::clock::ClusterClock) and tokio's timer only, everything
//! random from one seed, and nothing depends on the order of a hash map. So the same seed and the
//! same requests give the same bytes.

pub mod bare_metal;
pub mod bmc;
pub mod demo;
pub mod host;
mod names;
pub mod observer;
pub mod plan;
pub mod prove;
pub mod scenario;
