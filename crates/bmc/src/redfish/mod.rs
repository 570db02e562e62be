//! Redfish (DSP0266 1.x), limited to power control.
//!
//! Requests that each call costs; a session is used until the BMC ends it:
//!
//! | Call | first of a driver | with a session | without sessions (basic) |
//! |---|---|---|---|
//! | `read_power` | 3: root, login, system | **1** | 1 |
//! | `read_power`, no system in the address | 4: also the collection | **1** | 1 |
//! | `send_command` after a `read_power` | | **1**, and 1 for each poll of a task | 1 |
//! | `send_command` with reset types in an ActionInfo | | 2 the first time, then 1 | 2, then 1 |
//! | `send_command` answered 400 or 409 | | 2: the state is read | 2 |
//! | `describe_device` | 3 or 4 | 1, or 2 with an ActionInfo | 1 or 2 |
//! | `close_session` | | 1 | 0 |
//!
//! A session that has ended costs 2 more (the 401 and the login). A path with a missing or extra
//! slash at its end costs 1 more, once.

mod authentication;
mod client;
mod command;
mod deadline;
mod document;
#[cfg(test)]
mod fuzz_tests;
mod http;
mod http_clients;
mod http_failure;
mod login;
mod origin;
mod redaction;
mod reply;
mod request;
mod reset_methods;
mod system_discovery;
mod task;
mod tolerant;
mod transport;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dogwatch_core::power::{BmcAddress, RedfishVendor};
use futures::future::BoxFuture;
use tokio::time::Instant;

use self::client::RedfishClient;
use self::deadline::Deadline;
pub use self::http::HttpTransport;
pub use self::http_clients::SharedHttpClients;
use self::origin::BmcOrigin;
use self::system_discovery::KnownSystem;
pub use self::transport::RedfishTransport;
use crate::{
    Bmc, BmcFault, BmcInfo, CallCost, CommandAnswer, Credentials, FaultClass, IdentifiedReading,
    PowerCommand, PowerReading,
};

/// How long after a command the power is read at least every few seconds.
const AFTER_COMMAND: Duration = Duration::from_secs(30);

pub struct RedfishDriver {
    client: RedfishClient,
    vendor: RedfishVendor,
    /// The path that the address names.
    configured_system: Option<String>,
    known: Mutex<KnownSystem>,
    /// Held while a command runs.
    command_lock: tokio::sync::Mutex<()>,
    /// When the last command was sent. Used to tell readings that follow a command from ordinary
    /// polls.
    commanded: Mutex<Option<Instant>>,
}

impl RedfishDriver {
    /// Makes a driver for the system that the address names, over this transport, with these
    /// credentials.
    ///
    /// # Errors
    /// [`FaultClass::Unsupported`]: the address is not a Redfish address.
    pub fn over_transport(
        exchange: Arc<dyn RedfishTransport>,
        address: &BmcAddress,
        credentials: Credentials,
    ) -> Result<Self, BmcFault> {
        let none = || {
            BmcFault::without_effect(
                FaultClass::Unsupported,
                "the address is not a Redfish address",
            )
        };
        let origin = BmcOrigin::from_address(address).ok_or_else(none)?;
        let (vendor, given) = match address {
            BmcAddress::Redfish { vendor, system, .. } => (*vendor, system.clone()),
            BmcAddress::Ipmi { .. } | BmcAddress::Fence { .. } => return Err(none()),
        };
        // Only the transport uses the CA; a bundle can be larger than the rest of a driver.
        let credentials = Credentials {
            ca: None,
            ..credentials
        };
        Ok(Self {
            client: RedfishClient::new(exchange, origin, credentials),
            vendor,
            configured_system: given,
            known: Mutex::default(),
            command_lock: tokio::sync::Mutex::default(),
            commanded: Mutex::default(),
        })
    }

    async fn read_power_state(&self, deadline: Deadline) -> Result<PowerReading, BmcFault> {
        self.read_system(deadline).await?.power_reading()
    }

    async fn read_identified_state(
        &self,
        deadline: Deadline,
    ) -> Result<IdentifiedReading, BmcFault> {
        let system = self.read_system(deadline).await?;
        Ok(IdentifiedReading {
            power: system.power_reading()?,
            system_uuid: system.comparable_uuid(),
        })
    }

    async fn probe_device(&self, deadline: Deadline) -> Result<BmcInfo, BmcFault> {
        self.lock_known().info = None;
        let system = self.read_system(deadline).await?;
        let reading = system.power_reading()?;
        let reset = self.known_reset(deadline).await?;
        self.client.origin.path_at_origin(&reset.target)?;
        Ok(BmcInfo {
            commands: reset.abilities.supported_commands(reading),
            ..system.describe_system()
        })
    }

    /// Whether readings follow each other quickly because of a command.
    fn is_after_command(&self) -> bool {
        let commanded = self
            .commanded
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        commanded.is_some_and(|at| at.elapsed() < AFTER_COMMAND)
    }

    fn redact_result<T>(&self, said: Result<T, BmcFault>) -> Result<T, BmcFault> {
        said.map_err(|fault| self.client.redact_fault(fault))
    }
}

impl Bmc for RedfishDriver {
    fn read_power(&self, within: Duration) -> BoxFuture<'_, Result<PowerReading, BmcFault>> {
        let deadline = Deadline::after(within);
        Box::pin(async move { self.redact_result(self.read_power_state(deadline).await) })
    }

    fn read_identified_power(
        &self,
        within: Duration,
    ) -> BoxFuture<'_, Result<IdentifiedReading, BmcFault>> {
        let deadline = Deadline::after(within);
        Box::pin(async move { self.redact_result(self.read_identified_state(deadline).await) })
    }

    fn send_command(
        &self,
        command: PowerCommand,
        within: Duration,
    ) -> BoxFuture<'_, Result<CommandAnswer, BmcFault>> {
        let deadline = Deadline::after(within);
        let mut commanded = self
            .commanded
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *commanded = Some(Instant::now());
        Box::pin(async move { self.redact_result(self.run_command(command, deadline).await) })
    }

    fn describe_device(&self, within: Duration) -> BoxFuture<'_, Result<BmcInfo, BmcFault>> {
        let deadline = Deadline::after(within);
        Box::pin(async move { self.redact_result(self.probe_device(deadline).await) })
    }

    fn call_cost(&self) -> CallCost {
        CallCost::Request
    }

    fn close_session(&self, within: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.client.end_session(Deadline::after(within)))
    }
}
