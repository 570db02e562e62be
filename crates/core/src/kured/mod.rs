//! From kured's settings to ours. Source: kured 1.23.0, `cmd/kured/main.go`, `pkg/timewindow`,
//! `pkg/blockers`.
//!
//! **For:** [`translate`]: what of a kured DaemonSet becomes a policy, what a flag of the coordinator,
//! and what has no equal and why.
//! **Promises:** no setting is dropped: each has a [`Row`]. What would hold a reboot back in kured and
//! cannot be said in a policy makes the policy begin paused, with that as the reason. No secret (a
//! webhook's address, a password in a URL) is in the result.

mod flags;
mod line;
mod selector;
#[cfg(test)]
mod tests;
mod translate;
mod window;

pub use flags::{FLAGS, Fate, Flag};
pub use line::Kured;
pub use translate::{Plan, Row, translate};
