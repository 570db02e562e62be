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

mod ask;
mod caller;
mod command;
mod deadline;
mod document;
mod exchange;
mod failure;
mod http;
mod login;
mod origin;
mod reply;
mod secrets;
mod task;
mod ways;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dogwatch_core::power::{Address, Vendor};
use futures::future::BoxFuture;

use self::caller::Caller;
use self::deadline::Deadline;
use self::document::{ActionInfo, Collection, Reset, System};
pub use self::exchange::Exchange;
pub use self::http::{Clients, Http};
use self::origin::Origin;
use self::ways::{Abilities, has_button};
use crate::{About, Answer, Bmc, Class, Command, Cost, Credentials, Fault, Reading};

/// The most systems that are named when there should be one.
const NAMED: usize = 5;

/// A BMC that speaks Redfish.
pub struct Redfish {
    caller: Caller,
    vendor: Vendor,
    /// The path that the address names.
    given: Option<String>,
    known: Mutex<Known>,
    /// One command at a time.
    turn: tokio::sync::Mutex<()>,
}

/// What was learnt of the system; it may be forgotten at any moment.
#[derive(Default, Clone)]
struct Known {
    system: Option<String>,
    reset: Option<KnownReset>,
    /// The reset types that an ActionInfo named, and its link.
    info: Option<(String, Vec<String>)>,
}

/// How the system is told to change its power.
#[derive(Clone)]
struct KnownReset {
    /// The link of the action.
    target: String,
    abilities: Abilities,
    /// Where the reset types stand, if they have not been read.
    info: Option<String>,
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
        Ok(Self {
            caller: Caller::new(exchange, origin, credentials),
            vendor,
            given,
            known: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        })
    }

    async fn reading(&self, deadline: Deadline) -> Result<Reading, Fault> {
        self.system(deadline).await?.reading()
    }

    /// The system, read now; what it says of its reset action is kept.
    async fn system(&self, deadline: Deadline) -> Result<System, Fault> {
        let path = self.path(deadline).await?;
        let found = self.caller.document::<System>(&path, deadline).await;
        let (system, path) = found.inspect_err(|fault| {
            if fault.class == Class::NoSuchSystem {
                self.forget();
            }
        })?;
        if !system.is_system() {
            let message = format!("{path} is no ComputerSystem");
            return Err(Fault::harmless(Class::NoSuchSystem, message));
        }
        self.learn(path, &system);
        Ok(system)
    }

    fn learn(&self, path: String, system: &System) {
        let button = has_button(self.vendor, system.manufacturer().as_deref());
        let mut known = self.lock_known();
        let reset = system.reset();
        known.reset = reset.map(|reset| known_reset(reset, &path, button, known.info.as_ref()));
        known.system = Some(path);
    }

    fn forget(&self) {
        *self.lock_known() = Known::default();
    }

    fn lock_known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the system is: where it was found before, where the address says, or the only one there is.
    async fn path(&self, deadline: Deadline) -> Result<String, Fault> {
        let known = self.lock_known().system.clone();
        match known.or_else(|| self.given.clone()) {
            Some(path) => Ok(path),
            None => self.discover(deadline).await,
        }
    }

    async fn discover(&self, deadline: Deadline) -> Result<String, Fault> {
        let root = self.caller.root(deadline).await?;
        let link = self.caller.origin.path(root.systems())?;
        let (systems, _) = self.caller.document::<Collection>(&link, deadline).await?;
        match systems.members.as_slice() {
            [only] if systems.len() == 1 => self.caller.origin.path(&only.id),
            members => Err(not_one(members, systems.len())),
        }
    }

    /// How it is told to change its power, with the reset types of an ActionInfo.
    async fn known_reset(&self, deadline: Deadline) -> Result<KnownReset, Fault> {
        if self.lock_known().reset.is_none() {
            self.system(deadline).await?;
        }
        let none = || Fault::harmless(Class::Unsupported, "the system names no Reset action");
        let reset = self.lock_known().reset.clone();
        let mut reset = reset.ok_or_else(none)?;
        if let Some(link) = reset.info.take() {
            reset.abilities.allowed = self.reset_types(link, deadline).await?;
            self.lock_known().reset = Some(reset.clone());
        }
        Ok(reset)
    }

    /// What an ActionInfo names. One that is not to be had names nothing: it keeps nobody from being
    /// switched off.
    async fn reset_types(&self, link: String, deadline: Deadline) -> Result<Vec<String>, Fault> {
        let path = self.caller.origin.path(&link)?;
        let reply = self.caller.get(&path, deadline).await?;
        let info = reply.document::<ActionInfo>();
        let types = info.map_or_else(|_| Vec::new(), |info| info.reset_types());
        self.lock_known().info = Some((link, types.clone()));
        Ok(types)
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

/// Reset types that stand in the system go before those of an ActionInfo, which is read once.
fn known_reset(
    reset: Reset,
    system: &str,
    button: bool,
    info: Option<&(String, Vec<String>)>,
) -> KnownReset {
    let same = |link: &String| info.filter(|(known, _)| known == link);
    let read = reset.info.as_ref().and_then(same);
    let (allowed, info) = match read {
        _ if !reset.allowed.is_empty() => (reset.allowed, None),
        Some((_, types)) => (types.clone(), None),
        None => (Vec::new(), reset.info),
    };
    let by_standard = || {
        format!(
            "{}/Actions/ComputerSystem.Reset",
            system.trim_end_matches('/')
        )
    };
    KnownReset {
        target: reset.target.unwrap_or_else(by_standard),
        abilities: Abilities { allowed, button },
        info,
    }
}

fn not_one(members: &[document::Link], count: usize) -> Fault {
    let names = members.iter().take(NAMED).map(|member| member.id.as_str());
    let names = names.collect::<Vec<_>>().join(", ");
    let message = match count {
        0 => "the BMC has no system".to_owned(),
        _ => format!("the BMC has {count} systems; name one in the address: {names}"),
    };
    Fault::harmless(Class::NoSuchSystem, message)
}
