//! Exhaustive searches over Dogwatch's production decisions.
//!
//! **For:** worlds that are small enough to be searched whole: every order of steps, crashes, lost,
//! late and doubled messages, with `dogwatch_core`'s own functions making every decision.
//! **May touch:** nothing.
//! **Promises:** a state that breaks a promise is reported with the steps that lead there; a guard
//! that is taken out of the world is noticed.
//!
//! Source: specification §13.

pub mod planned;
pub mod power_off;
pub mod promise;
pub mod reachability;
pub mod remediation;
pub mod search;
mod value_pool;
pub mod worlds;
