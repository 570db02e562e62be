//! The world of "proof of off": one host, a BMC that lies once and runs commands late, leaders that
//! take over from each other, a key that is taken away and put back. Every decision is made by
//! `dogwatch_core::power::decide`, every proof by `dogwatch_core::power::find_off_proof`.

mod bmc;
mod guard;
mod leader;
mod model;
mod normal_form;
mod state;
mod world;

pub use guard::PowerGuard;
pub use model::PowerOffModel;
pub use state::{PowerOffAction, PowerOffConfig, PowerOffState};
pub use world::PowerOffPools;
