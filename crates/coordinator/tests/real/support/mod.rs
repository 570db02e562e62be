//! A real control plane, machines with simulated kubelets, and the coordinator as a process on
//! each.
//!
//! Objects are JSON here, so that a test shows what a person with kubectl would see.

pub mod api;
pub mod bus;
pub mod cluster;
pub mod controller;
pub mod coordinator;
pub mod host;
pub mod machine;
pub mod objects;
pub mod plane;
pub mod policies;
pub mod read;
pub mod token;
pub mod world;

use std::time::Duration;

pub use bus::SystemBus;
pub use cluster::Cluster;
pub use controller::Controller;
pub use host::{OnCommand, Setting};
pub use machine::Machine;
pub use world::World;

/// Limit for each wait. Generous: only a failing test uses it up.
pub const PATIENCE: Duration = Duration::from_mins(3);
