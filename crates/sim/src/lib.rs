//! The make-believe world: a Kubernetes API server, and around it what makes a cluster of it.
//!
//! May touch nothing outside of the process but a listener that it is given. Promises: time comes
//! from a [`clock::Clock`] and tokio's timer only, everything random from one seed, and nothing
//! depends on the order of a hash map, so that the same seed and the same requests give the same
//! bytes.

pub mod api;
pub mod bmc;
pub mod chronicle;
pub mod clock;
pub mod demo;
pub mod host;
pub mod metal;
pub mod plan;
pub mod scenario;
pub mod seed;
pub mod world;
