//! Which system it is, and how it is told to change its power.

use std::sync::{MutexGuard, PoisonError};

use super::Redfish;
use super::ask::Ask;
use super::deadline::Deadline;
use super::document::{ActionInfo, Collection, Reset, System};
use super::ways::{Abilities, has_button};
use crate::{Class, Fault};

/// What was learnt of the system; it may be forgotten at any moment.
#[derive(Default, Clone)]
pub(super) struct Known {
    system: Option<String>,
    reset: Option<KnownReset>,
    /// The reset types that an ActionInfo named, and its link.
    pub(super) info: Option<(String, Vec<String>)>,
}

/// How the system is told to change its power.
#[derive(Clone)]
pub(super) struct KnownReset {
    /// The link of the action.
    pub(super) target: String,
    pub(super) abilities: Abilities,
    /// Where the reset types stand, if they have not been read.
    info: Option<String>,
}

impl Redfish {
    /// The system, read now; what it says of its reset action is kept.
    pub(super) async fn system(&self, deadline: Deadline) -> Result<System, Fault> {
        let path = self.path(deadline).await?;
        let ask = Ask::get(path).last(!self.is_commanded());
        let found = self.caller.document::<System>(&ask, deadline).await;
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

    pub(super) fn forget(&self) {
        *self.lock_known() = Known::default();
    }

    pub(super) fn lock_known(&self) -> MutexGuard<'_, Known> {
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
        let ask = Ask::get(link);
        let (systems, _) = self.caller.document::<Collection>(&ask, deadline).await?;
        match systems.first() {
            [only] if systems.len() == 1 => self.caller.origin.path(only),
            members => Err(not_one(members, systems.len())),
        }
    }

    /// How it is told to change its power, with the reset types of an ActionInfo.
    pub(super) async fn known_reset(&self, deadline: Deadline) -> Result<KnownReset, Fault> {
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
        let reply = self.caller.get(&Ask::get(path), deadline).await?;
        let info = reply.document::<ActionInfo>();
        let types = info.map_or_else(|_| Vec::new(), |info| info.reset_types());
        self.lock_known().info = Some((link, types.clone()));
        Ok(types)
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

fn not_one(members: &[String], count: usize) -> Fault {
    let names = members.join(", ");
    let message = match count {
        0 => "the BMC has no system".to_owned(),
        _ => format!("the BMC has {count} systems; name one in the address: {names}"),
    };
    Fault::harmless(Class::NoSuchSystem, message)
}
