//! Redfish (DSP0266 1.x), as far as power needs it.
//!
//! What a call costs in requests; each session serves until the BMC ends it:
//!
//! | Call | first of a driver | with a session | without sessions (basic) |
//! |---|---|---|---|
//! | `read` | 3: root, login, system | **1** | 1 |
//! | `read`, no system in the address | 4: the collection as well | **1** | 1 |
//! | `send` after a `read` | | **1**, and 1 for each look at a task | 1 |
//! | `send` where reset types stand in an ActionInfo | | 2 the first time, then 1 | 2, then 1 |
//! | `send` answered 400 or 409 | | 2: the state is read | 2 |
//! | `about` | 3 or 4 | 1, or 2 with an ActionInfo | 1 or 2 |
//! | `close` | | 1 | 0 |
//!
//! A session that has ended costs 2 more (the 401, the login). A path that lacks its slash at the end, or
//! has one too many, costs 1 more once.

mod admission;
mod ask;
mod caller;
mod clients;
mod command;
mod deadline;
mod document;
mod exchange;
mod failure;
mod finding;
mod http;
mod login;
mod origin;
mod reply;
mod secrets;
mod task;
mod tolerant;
mod ways;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dogwatch_core::power::{Address, Vendor};
use futures::future::BoxFuture;
use tokio::time::Instant;

use self::caller::Caller;
pub use self::clients::Clients;
use self::deadline::Deadline;
pub use self::exchange::Exchange;
use self::finding::Known;
pub use self::http::Http;
use self::origin::Origin;
use crate::{About, Answer, Bmc, Class, Command, Cost, Credentials, Fault, Reading};

/// How long after a command the power is read every few seconds at least.
const AFTER_COMMAND: Duration = Duration::from_secs(30);

/// A BMC that speaks Redfish.
pub struct Redfish {
    caller: Caller,
    vendor: Vendor,
    /// The path that the address names.
    given: Option<String>,
    known: Mutex<Known>,
    /// One command at a time.
    turn: tokio::sync::Mutex<()>,
    /// Since when the last command is under way, or its effect is looked for.
    commanded: Mutex<Option<Instant>>,
}

impl Redfish {
    /// Speaks to the system that the address names, over this exchange, in the name of these.
    ///
    /// # Errors
    /// [`Class::Unsupported`]: the address is of another kind.
    pub fn over(
        exchange: Arc<dyn Exchange>,
        address: &Address,
        credentials: Credentials,
    ) -> Result<Self, Fault> {
        let none = || Fault::harmless(Class::Unsupported, "the address is not Redfish's");
        let origin = Origin::of(address).ok_or_else(none)?;
        let (vendor, given) = match address {
            Address::Redfish { vendor, system, .. } => (*vendor, system.clone()),
            Address::Ipmi { .. } | Address::Fence { .. } => return Err(none()),
        };
        // The exchange goes by the CA; a bundle can be larger than all else of a driver.
        let credentials = Credentials {
            ca: None,
            ..credentials
        };
        Ok(Self {
            caller: Caller::new(exchange, origin, credentials),
            vendor,
            given,
            known: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            commanded: Mutex::default(),
        })
    }

    async fn reading(&self, deadline: Deadline) -> Result<Reading, Fault> {
        self.system(deadline).await?.reading()
    }

    async fn look(&self, deadline: Deadline) -> Result<About, Fault> {
        self.lock_known().info = None;
        let system = self.system(deadline).await?;
        let reading = system.reading()?;
        let reset = self.known_reset(deadline).await?;
        self.caller.origin.path(&reset.target)?;
        Ok(About {
            commands: reset.abilities.commands(reading),
            ..system.about()
        })
    }

    /// Whether one reading follows the other because of a command.
    fn is_commanded(&self) -> bool {
        let commanded = self
            .commanded
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        commanded.is_some_and(|at| at.elapsed() < AFTER_COMMAND)
    }

    fn told<T>(&self, said: Result<T, Fault>) -> Result<T, Fault> {
        said.map_err(|fault| self.caller.tell(fault))
    }
}

impl Bmc for Redfish {
    fn read(&self, within: Duration) -> BoxFuture<'_, Result<Reading, Fault>> {
        let deadline = Deadline::after(within);
        Box::pin(async move { self.told(self.reading(deadline).await) })
    }

    fn send(&self, command: Command, within: Duration) -> BoxFuture<'_, Result<Answer, Fault>> {
        let deadline = Deadline::after(within);
        let mut commanded = self
            .commanded
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *commanded = Some(Instant::now());
        Box::pin(async move { self.told(self.command(command, deadline).await) })
    }

    fn about(&self, within: Duration) -> BoxFuture<'_, Result<About, Fault>> {
        let deadline = Deadline::after(within);
        Box::pin(async move { self.told(self.look(deadline).await) })
    }

    fn cost(&self) -> Cost {
        Cost::Request
    }

    fn close(&self, within: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.caller.close(Deadline::after(within)))
    }
}
