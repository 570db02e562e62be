//! The world of "remediation's table": one Machine on one host, its Node, the key, the power, and
//! a remediator that crashes. Every decision is made by `dogwatch_core::remediation::decide`, found
//! by `discover_remediations`, and every proof of off comes from `dogwatch_core::power`.

mod events;
mod guard;
mod model;
mod normal_form;
mod objects;
mod power;
mod process;
mod state;
mod world;
mod writes;

pub use guard::RemediationGuard;
pub use model::RemediationModel;
pub use state::{RemediationWorldAction, RemediationWorldConfig, RemediationWorldState};
pub use world::RemediationPools;
