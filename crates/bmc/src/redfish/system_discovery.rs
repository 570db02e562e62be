//! Finds the system of an address, and how it accepts reset commands.

use std::sync::{MutexGuard, PoisonError};

use super::RedfishDriver;
use super::deadline::Deadline;
use super::document::{ActionInfo, ComputerSystem, ResetCapability, SystemCollection};
use super::request::RedfishRequest;
use super::reset_methods::{ResetAbilities, has_short_press_button};
use crate::{BmcFault, FaultClass};

/// Cached facts about the system; they can be discarded at any time.
#[derive(Default, Clone)]
pub(super) struct KnownSystem {
    system: Option<String>,
    reset: Option<KnownReset>,
    /// The link of an ActionInfo, and the reset types that it lists.
    pub(super) info: Option<(String, Vec<String>)>,
}

/// How the system accepts reset commands.
#[derive(Clone)]
pub(super) struct KnownReset {
    pub(super) target: String,
    pub(super) abilities: ResetAbilities,
    /// The link to an ActionInfo that has not been read yet.
    info: Option<String>,
}

impl RedfishDriver {
    /// Reads the system, and remembers its reset action.
    pub(super) async fn read_system(&self, deadline: Deadline) -> Result<ComputerSystem, BmcFault> {
        let path = self.system_path(deadline).await?;
        let ask = RedfishRequest::get(path).with_last(!self.is_after_command());
        let found = self
            .client
            .get_document::<ComputerSystem>(&ask, deadline)
            .await;
        let (system, path) = found.inspect_err(|fault| {
            if fault.class == FaultClass::NoSuchSystem {
                self.forget_system();
            }
        })?;
        if !system.is_system() {
            let message = format!("{path} is not a ComputerSystem");
            return Err(BmcFault::without_effect(FaultClass::NoSuchSystem, message));
        }
        self.remember_system(path, &system);
        Ok(system)
    }

    fn remember_system(&self, path: String, system: &ComputerSystem) {
        let button = has_short_press_button(self.vendor, system.manufacturer().as_deref());
        let mut known = self.lock_known();
        let reset = system.reset_capability();
        known.reset =
            reset.map(|reset| build_known_reset(reset, &path, button, known.info.as_ref()));
        known.system = Some(path);
    }

    pub(super) fn forget_system(&self) {
        *self.lock_known() = KnownSystem::default();
    }

    pub(super) fn lock_known(&self) -> MutexGuard<'_, KnownSystem> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path of the system: the one found before, the one in the address, or that of the only
    /// system.
    async fn system_path(&self, deadline: Deadline) -> Result<String, BmcFault> {
        let known = self.lock_known().system.clone();
        match known.or_else(|| self.configured_system.clone()) {
            Some(path) => Ok(path),
            None => self.discover_system(deadline).await,
        }
    }

    async fn discover_system(&self, deadline: Deadline) -> Result<String, BmcFault> {
        let root = self.client.service_root(deadline).await?;
        let link = self.client.origin.path_at_origin(root.systems_link())?;
        let ask = RedfishRequest::get(link);
        let (systems, _) = self
            .client
            .get_document::<SystemCollection>(&ask, deadline)
            .await?;
        match systems.first_links() {
            [only] if systems.len() == 1 => self.client.origin.path_at_origin(only),
            members => Err(not_one_system_fault(members, systems.len())),
        }
    }

    /// How the system accepts reset commands, including the reset types of an ActionInfo.
    pub(super) async fn known_reset(&self, deadline: Deadline) -> Result<KnownReset, BmcFault> {
        if self.lock_known().reset.is_none() {
            self.read_system(deadline).await?;
        }
        let none =
            || BmcFault::without_effect(FaultClass::Unsupported, "the system has no Reset action");
        let reset = self.lock_known().reset.clone();
        let mut reset = reset.ok_or_else(none)?;
        if let Some(link) = reset.info.take() {
            reset.abilities.allowed = self.read_reset_types(link, deadline).await?;
            self.lock_known().reset = Some(reset.clone());
        }
        Ok(reset)
    }

    /// Reads the reset types of an ActionInfo. If it cannot be read, no types are known; that must
    /// not prevent a power-off.
    async fn read_reset_types(
        &self,
        link: String,
        deadline: Deadline,
    ) -> Result<Vec<String>, BmcFault> {
        let path = self.client.origin.path_at_origin(&link)?;
        let reply = self
            .client
            .get_with_retry(&RedfishRequest::get(path), deadline)
            .await?;
        let info = reply.parse_document::<ActionInfo>();
        let types = info.map_or_else(|_| Vec::new(), |info| info.reset_types());
        self.lock_known().info = Some((link, types.clone()));
        Ok(types)
    }
}

/// Reset types in the system's document take precedence over those of an ActionInfo, which is read
/// once.
fn build_known_reset(
    reset: ResetCapability,
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
        abilities: ResetAbilities { allowed, button },
        info,
    }
}

fn not_one_system_fault(members: &[String], count: usize) -> BmcFault {
    let names = members.join(", ");
    let message = match count {
        0 => "the BMC has no system".to_owned(),
        _ => format!("the BMC has {count} systems; write one of them into the address: {names}"),
    };
    BmcFault::without_effect(FaultClass::NoSuchSystem, message)
}
