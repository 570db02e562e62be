//! Host power: keeps every BareMetalHost where its specification and its reboot annotations want it.
//!
//! **For:** `dogwatch controller --components power`; [`PowerBoard`] for whoever wants to know, or needs
//! the proof that a host is off.
//! **May touch:** BareMetalHosts and their Secrets through `dogwatch-k8s`, BMCs through `dogwatch-bmc`.
//! **Promises:**
//! - One keeper for each host: a BMC that hangs, or a host that cannot be written, delays only itself (L1).
//! - A command is sent only by the one that leads, while its lead outlasts the command's deadline, at once
//!   on the answer to the write of its intention. Who lost the lead sends nothing more, and remembers
//!   nothing.
//! - A power-off waits for no poll: `lanes`; and for no write that only tells: `turns`.
//!
//! Decided in `dogwatch_core::power`. Source: specification §3.

mod board;
mod call;
mod feed;
mod fleet;
mod gist;
mod keeper;
mod lanes;
mod links;
mod run;
mod services;
mod store;
mod tally;
#[cfg(test)]
mod tests;
mod turns;

pub use board::{PowerBoard, Shown};
pub use links::{Connect, drivers};
pub use run::{Settings, run};
