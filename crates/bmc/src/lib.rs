//! The power of a host, through whatever cuts it: a BMC's Redfish or IPMI, or a fence agent.
//!
//! **For:** the power controller; `dogwatch check hosts`.
//! **May touch:** BMCs, and child processes that speak to them (`ipmitool`, `fence_…`).
//! **Promises:**
//! - Every call ends within the deadline it was given; a child process that outlives it is killed
//!   with its group.
//! - A driver reads, sends or looks, and decides nothing: it repeats no command by itself. A failed
//!   command says whether the BMC may still run it ([`Fault::may_have_run`]).
//! - No password or token is in an error, a log, a command line, or anything that `Debug` prints (S8).
//! - What is not surely "off" is not [`Reading::Off`].
//!
//! Source: specification §3.3.

mod child;
mod connect;
pub mod fence;
pub mod ipmi;
pub mod redfish;
mod secret;

use std::time::Duration;

pub use connect::{Options, connect};
pub use dogwatch_core::power::{About, Answer, Class, Command, Cost, Fault, Reading};
use futures::future::BoxFuture;
pub use secret::{Credentials, Password};

/// One BMC, PDU outlet or whatever else holds a host's power.
///
/// One driver speaks for one device with one set of credentials; when the Secret changes a new one
/// is made. Calls may come at the same time; a driver lets one command through at a time.
pub trait Bmc: Send + Sync + 'static {
    /// The power, asked now: never a remembered answer.
    fn read(&self, within: Duration) -> BoxFuture<'_, Result<Reading, Fault>>;

    /// Sends the command once. "Already so" is an answer, not an error.
    fn send(&self, command: Command, within: Duration) -> BoxFuture<'_, Result<Answer, Fault>>;

    /// What it is and can do: finds the system, logs in, changes nothing.
    fn about(&self, within: Duration) -> BoxFuture<'_, Result<About, Fault>>;

    /// How dear a call is.
    fn cost(&self) -> Cost;

    /// Says goodbye where that is polite (a Redfish session); what fails is ignored.
    fn close(&self, within: Duration) -> BoxFuture<'_, ()>;
}
