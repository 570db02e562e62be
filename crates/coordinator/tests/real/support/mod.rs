//! A real control plane, machines with simulated kubelets, and the coordinator as a process on each.
//!
//! Objects are JSON here: a test then shows what a person with kubectl would see.

pub mod api;
pub mod cluster;
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

pub use cluster::Cluster;
pub use host::{OnCommand, Setting};
pub use machine::Machine;
pub use world::World;

/// How long anything awaited may take. Generous: it is only ever spent by a test that fails.
pub const PATIENCE: Duration = Duration::from_mins(3);
