//! Simulated BMCs, and the machines behind them.
//!
//! **For:** the real Redfish driver and the real power controller in front of hardware that hangs,
//! lies and forgets, under virtual time or on a port.
//! **May touch:** its own memory, tokio's timer, and a listener that it is given.
//! **Promises:**
//! - One code answers in process ([`Wire`]) and on a port ([`port`]), with the faults of [`Fault`],
//!   which come and go while it runs.
//! - What a machine did is in its [`Log`] with the true time, whatever its BMC said of it.
//! - A command that was taken is carried out by the BMC's own clock, whether or not somebody still
//!   waits for the answer.
//! - The same seed and the same requests give the same answers.
//!
//! What a BMC says can be wrong. What nobody has met and what is not here: a BMC that powers a host
//! on because of a reading, and one that takes another host's command.

mod answer;
mod command;
mod documents;
mod effect;
mod fault;
mod held;
mod machine;
mod park;
mod pick;
pub mod port;
mod reading;
mod request;
mod reset;
mod route;
mod session;
mod shape;
mod simulated;
mod task;
mod wire;
mod words;

pub use command::Received;
pub use fault::{Fault, Scope, What};
pub use machine::{AfterFeed, Cause, Life, Log, Machine, MachineSpec, State, Transition};
pub use park::Park;
pub use request::{Counters, Reply};
pub use reset::ResetType;
pub use shape::{Answers, Names, Sessions, Shape};
pub use simulated::{BmcSpec, Controls, SimBmc};
pub use wire::Wire;
pub use words::BadFault;
