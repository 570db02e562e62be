//! Kubernetes in one process: an API server, kubelets, workload controllers and a scheduler.
//!
//! It knows nothing of Dogwatch.
//!
//! **May touch:** nothing outside of the process but a listener that it is given.
//! **Promises:** time comes from a [`clock::ClusterClock`] and tokio's timer only, everything
//! random from one seed, and nothing depends on the order of a hash map. So the same seed and the
//! same requests give the same bytes.

pub mod api;
pub mod clock;
pub mod machine;
pub mod seed;
pub mod world;
