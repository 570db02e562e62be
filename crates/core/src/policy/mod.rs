//! What a `RebootPolicy` says, which one rules a node, and whether a reboot may start now.
//!
//! **For:** [`rule`] makes of the flags and the policies what holds for one node (its group, its
//! numbers), [`allowed`] answers whether a reboot of it may begin, and [`still_allowed`] whether one
//! that has begun may go on. `window` is the calendar behind both.
//! **May touch:** nothing; the time zone database is the one that was compiled in.
//! **Promises:** what cannot be understood or read never allows anything; each refusal has a reason
//! of one word, a sentence, and where it can be known the moment at which it ends.
//!
//! Source: specification §2.2 (groups) and §2.6.

mod allow;
mod rule;
mod status;
mod types;
pub mod window;

pub use allow::{Allowance, MinInterval, allowed, still_allowed};
pub use rule::{Rule, conflicts, group, has_group, is_control_plane, rule, ruling, zone};
pub use status::{Lost, Out, PolicyStatus, Waiting, status};
pub use types::{
    Alerts, DrainRules, Gate, Paused, Policies, Policy, PrometheusGate, PrometheusQuery,
    RebootRules, ReturnGate, ReturnRules,
};
