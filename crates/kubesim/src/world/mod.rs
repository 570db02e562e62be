//! The simulated world around an API server: what a cluster does by itself.
//!
//! **For:** small but correct kubelets, the usual controllers and a scheduler, so that a program
//! meets in a test what it meets in a cluster. All of them use `kube::Client`, so the same world
//! works around the embedded API server and around a real one.
//! **May touch:** the API server through its clients; tokio's timer; no other clock, no random
//! source but [`SimulationSeed`](crate::seed::SimulationSeed).
//! **Promises:** on a current-thread runtime with paused time, the same seed and the same script
//! give the same calls in the same order. Dropping a handle stops its actor at once, at any point.

pub mod actor;
pub mod annotation;
pub mod cache;
pub mod cluster;
pub mod controllers;
pub mod faults;
pub mod kubelet;
pub mod manager;
mod object_watch;
pub mod pod_hub;

pub use actor::ActorTask;
pub use cluster::{ClusterSpec, SimulatedCluster};
pub use kubelet::{KubeletConfig, KubeletHandle, SimulatedKubelet};
