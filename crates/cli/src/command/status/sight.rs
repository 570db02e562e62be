//! What a watched status sees.

use dogwatch_core::explain::{self, ControllerSeen, Fleet, Status, schedule_rows};
use dogwatch_k8s::fleet::{Carried, FleetSchedulesWatch, FleetWatch, HostsWatch, remedies_seen};
use dogwatch_k8s::remedy::RemedyWatch;
use dogwatch_k8s::{Error, Kind};

use super::{Scope, What, hosts, only, remedies};
use crate::cluster::{Connected, now};

/// The watches that the scope needs.
pub struct Sight {
    scope: Scope,
    fleet: Option<FleetWatch>,
    hosts: Option<HostsWatch>,
    schedules: Option<FleetSchedulesWatch>,
    /// They need Nodes and hosts as well.
    remedies: Option<RemedyWatch>,
    /// Which Node runs on which host, as it was when the first hosts were seen.
    carried: Option<Carried>,
}

impl Sight {
    /// Nothing is sent yet.
    pub fn new(connected: &Connected, scope: Scope) -> Self {
        let with_remedies = scope.wants(What::Remediations);
        let namespace = scope.namespace.as_deref();
        // Links cross namespaces.
        let of_hosts = namespace.filter(|_| !with_remedies);
        Self {
            fleet: (scope.wants_fleet() || with_remedies).then(|| connected.fleet.watch()),
            hosts: (scope.wants(What::Hosts) || with_remedies)
                .then(|| connected.fleet.watch_hosts(of_hosts, None)),
            remedies: with_remedies.then(|| connected.fleet.watch_remedies()),
            schedules: scope
                .wants(What::Schedules)
                .then(|| connected.fleet.watch_schedules(namespace)),
            carried: None,
            scope,
        }
    }

    /// Waits for a change, or for trouble: what could not be done, and why.
    pub async fn changed(&mut self) -> Result<(), (&'static str, Error)> {
        let beside = self.scope.what.is_none();
        tokio::select! {
            changed = fleet_changed(self.fleet.as_mut()) => {
                changed.map_err(|error| ("watch Nodes and Leases", error))
            }
            changed = hosts_changed(self.hosts.as_mut()) => match changed {
                // Beside Nodes and locks they are left out where they cannot be had.
                Err(error) if beside && is_for_good(&error) => {
                    self.hosts = None;
                    Ok(())
                }
                changed => changed.map_err(|error| ("watch BareMetalHosts", error)),
            },
            changed = schedules_changed(self.schedules.as_mut()) => match changed {
                Err(error) if beside && is_for_good(&error) => {
                    self.schedules = None;
                    Ok(())
                }
                changed => changed.map_err(|error| ("watch RebootSchedules", error)),
            },
            () = remedies_changed(self.remedies.as_mut()) => Ok(()),
        }
    }

    /// What is to be shown; `None` until everything has come.
    pub async fn status(&mut self, connected: &Connected) -> Option<Status> {
        let fleet = match &self.fleet {
            Some(watch) => watch.fleet()?,
            None => Fleet::default(),
        };
        let mut status = only(explain::status(&fleet, now()), &self.scope);
        if let Some(watch) = self
            .hosts
            .as_ref()
            .filter(|_| self.scope.wants(What::Hosts))
        {
            let seen = watch.hosts()?;
            if self.carried.is_none() && !seen.is_empty() {
                self.carried = Some(hosts::carried(connected).await);
            }
            let carried = self.carried.as_ref();
            status.hosts = hosts::rows(seen.values(), carried.unwrap_or(&Carried::default()));
        }
        if let Some(watch) = &self.schedules {
            status.schedules = schedule_rows(watch.schedules()?.values(), now());
        }
        // Alone they are waited for; beside the rest they come when they come.
        match self.remedies() {
            Some(view) => status.remediations = remedies::rows(&view, &self.scope),
            None if self.scope.what == Some(What::Remediations) => return None,
            None => {}
        }
        Some(status)
    }

    fn remedies(&self) -> Option<explain::RemedyView> {
        let (fleet, hosts) = (self.fleet.as_ref()?, self.hosts.as_ref()?);
        remedies_seen(
            self.remedies.as_ref()?,
            fleet,
            hosts,
            ControllerSeen::Unknown,
        )
    }
}

async fn remedies_changed(watch: Option<&mut RemedyWatch>) {
    match watch {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}

fn is_for_good(error: &Error) -> bool {
    matches!(error.kind(), Kind::NotFound | Kind::Forbidden)
}

async fn fleet_changed(watch: Option<&mut FleetWatch>) -> Result<(), Error> {
    match watch {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}

async fn hosts_changed(watch: Option<&mut HostsWatch>) -> Result<(), Error> {
    match watch {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}

async fn schedules_changed(watch: Option<&mut FleetSchedulesWatch>) -> Result<(), Error> {
    match watch {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}
