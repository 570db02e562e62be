//! The simulated world around an API server: what a cluster does by itself.
//!
//! **For:** kubelets, the usual controllers and a scheduler, small but right, so that Dogwatch meets
//! in a test what it meets in a cluster. Everything speaks through `kube::Client`, so the same world
//! stands around the embedded API server and around a real one.
//! **May touch:** the API server through its clients; tokio's timer; no other clock, no random
//! source but [`Seed`](crate::seed::Seed).
//! **Promises:** on a current-thread runtime with paused time, the same seed and the same script
//! give the same calls in the same order. Dropping a handle stops its actor at once, wherever it was.

pub mod actor;
pub mod annotation;
pub mod cache;
pub mod cluster;
pub mod controllers;
pub mod faults;
pub mod invariants;
pub mod kubelet;
pub mod manager;
pub mod pod_hub;

pub use actor::Actor;
pub use cluster::{Cluster, ClusterSpec};
pub use kubelet::{Kubelet, KubeletConfig, KubeletHandle};
