//! The worlds of planned reboots: nodes with coordinators, slots of one lock, an API server, a
//! network that loses, delays and repeats, crashes, people who cordon; in one of them a remediator
//! that deletes a Node. Every decision is made by `dogwatch_core::reboot::decide`, counted by
//! `dogwatch_core::lock`.

mod choices;
mod coordinator;
mod guard;
mod lock_counts;
mod model;
mod node_ops;
mod promises;
mod server;
mod state;
mod time;
mod turns;
mod versions;
mod world;

pub use guard::PlannedGuard;
pub use model::PlannedModel;
pub use state::{PlannedAction, PlannedConfig, PlannedState};
pub use world::PlannedPools;
