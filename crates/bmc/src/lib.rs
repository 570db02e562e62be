//! Drivers for a host's power: Redfish and IPMI of BMCs, and fence agents.
//!
//! **For:** the power controller; `dogwatch check hosts`.
//! **May touch:** BMCs, and child processes that speak to them (`ipmitool`, `fence_…`).
//! **Promises:**
//! - Every call ends within the deadline it was given; a child process that outlives it is killed
//!   with its group.
//! - A driver reads and sends, and decides nothing: it does not repeat a command by itself. A
//!   failed command states whether the BMC may still run it ([`BmcFault::may_have_run`]).
//! - No password or token is in an error, a log, a command line, or anything that `Debug` prints
//!   (S8).
//! - A driver returns [`PowerReading::Off`] only if the device clearly says so.
//!
//! Source: specification §3.3.

mod child;
mod connect;
pub mod fence;
pub mod ipmi;
pub mod redfish;
mod secret;

use std::time::Duration;

pub use connect::{DriverOptions, connect_driver};
pub use dogwatch_core::power::{
    BmcFault, BmcInfo, CallCost, CommandAnswer, FaultClass, IdentifiedReading, PowerCommand,
    PowerReading,
};
use futures::future::BoxFuture;
pub use secret::{Credentials, Password};

/// A device that controls a host's power: a BMC, a PDU outlet or a hypervisor.
///
/// A driver speaks to one device with one set of credentials; when the Secret changes, make a new
/// driver. Calls may run at the same time; a driver sends one command at a time.
#[warn(missing_docs)]
pub trait Bmc: Send + Sync + 'static {
    /// Reads the power from the device; never returns a remembered answer.
    fn read_power(&self, within: Duration) -> BoxFuture<'_, Result<PowerReading, BmcFault>>;

    /// Reads the power, and the machine's system UUID where the same answer contains it. It costs no
    /// more than [`Bmc::read_power`].
    fn read_identified_power(
        &self,
        within: Duration,
    ) -> BoxFuture<'_, Result<IdentifiedReading, BmcFault>> {
        let read = self.read_power(within);
        Box::pin(async move { read.await.map(IdentifiedReading::without_uuid) })
    }

    /// Sends the command once. "Already in that state" is an answer, not an error.
    fn send_command(
        &self,
        command: PowerCommand,
        within: Duration,
    ) -> BoxFuture<'_, Result<CommandAnswer, BmcFault>>;

    /// Logs in, finds the system and describes what it is and can do. Changes nothing.
    fn describe_device(&self, within: Duration) -> BoxFuture<'_, Result<BmcInfo, BmcFault>>;

    /// How expensive a call is.
    fn call_cost(&self) -> CallCost;

    /// Ends a Redfish session, if there is one. Errors are ignored.
    fn close_session(&self, within: Duration) -> BoxFuture<'_, ()>;
}
