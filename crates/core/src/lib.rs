//! Every decision of Dogwatch.
//!
//! **For:** given what was seen and the time, say what to do, what to report, what else to look at,
//! when to look again, and why.
//! **May touch:** nothing. No async, no I/O, no clock, no random source, no environment, no client.
//! **Promises:** the same input gives the same [`Decision`], whether the live loop, the simulator,
//! a test or `explain` asks. What must be remembered is in the input, because it was written on the
//! cluster before the step it belongs to.

pub mod admission;
pub mod check;
pub mod condition;
pub mod decision;
pub mod drain;
pub mod duration;
pub mod explain;
pub mod fleetlock;
pub mod handshake;
pub mod heal;
pub mod kured;
pub mod leader;
pub mod limit;
pub mod lock;
pub mod name;
pub mod near;
pub mod policy;
pub mod power;
pub mod reboot;
pub mod remedy;
pub mod rollout;
pub mod schedule;
pub mod selector;
pub mod time;

pub use decision::{Because, Decision, Wake};
pub use time::Now;
