//! Watches everything that a status shows.

use dogwatch_core::explain::{self, FleetSnapshot, FleetStatus, ObservedController, schedule_rows};
use dogwatch_core::report::{FleetEstimate, FleetViewInput, build_fleet_view};
use dogwatch_k8s::fleet::{
    FleetHostsWatch, FleetSchedulesWatch, FleetWatch, NodesByHost, remediations_of_watches,
};
use dogwatch_k8s::remediation::RemediationWatch;
use dogwatch_k8s::{ApiErrorKind, Error};

use super::overview::StatusDocument;
use super::{StatusPart, StatusScope, filter_status, hosts, remediations};
use crate::cluster::{ConnectedCluster, current_time};

/// Holds only the watches that the scope needs.
pub struct WatchedStatus {
    scope: StatusScope,
    fleet: Option<FleetWatch>,
    hosts: Option<FleetHostsWatch>,
    schedules: Option<FleetSchedulesWatch>,
    /// Needs the watches of Nodes and hosts as well.
    remediations: Option<RemediationWatch>,
    /// Which Node runs on which host, as read when the first hosts came.
    nodes_of_hosts: Option<NodesByHost>,
}

impl WatchedStatus {
    /// Sends no request yet.
    pub fn new(connected: &ConnectedCluster, scope: StatusScope) -> Self {
        let with_remedies = scope.includes_part(StatusPart::Remediations);
        let namespace = scope.namespace.as_deref();
        // Links of remediations cross namespaces.
        let of_hosts = namespace.filter(|_| !with_remedies);
        Self {
            fleet: (scope.includes_fleet() || with_remedies).then(|| connected.fleet.watch_fleet()),
            hosts: (scope.includes_part(StatusPart::Hosts) || with_remedies)
                .then(|| connected.fleet.watch_hosts(of_hosts, None)),
            remediations: with_remedies.then(|| connected.fleet.watch_remediations()),
            schedules: scope
                .includes_part(StatusPart::Schedules)
                .then(|| connected.fleet.watch_schedules(namespace)),
            nodes_of_hosts: None,
            scope,
        }
    }

    /// Returns at a change, or with what could not be watched and the error.
    pub async fn wait_for_change(&mut self) -> Result<(), (&'static str, Error)> {
        let beside = self.scope.part.is_none();
        tokio::select! {
            changed = wait_for_fleet(self.fleet.as_mut()) => {
                changed.map_err(|error| ("watch Nodes and Leases", error))
            }
            changed = wait_for_hosts(self.hosts.as_mut()) => match changed {
                // In a status of all parts, hosts that cannot be read are left out.
                Err(error) if beside && is_permanent(&error) => {
                    self.hosts = None;
                    Ok(())
                }
                changed => changed.map_err(|error| ("watch BareMetalHosts", error)),
            },
            changed = wait_for_schedules(self.schedules.as_mut()) => match changed {
                Err(error) if beside && is_permanent(&error) => {
                    self.schedules = None;
                    Ok(())
                }
                changed => changed.map_err(|error| ("watch RebootSchedules", error)),
            },
            () = wait_for_remediations(self.remediations.as_mut()) => Ok(()),
        }
    }

    /// The Nodes, Leases and policies as they are known.
    pub fn current_fleet(&self) -> Option<FleetSnapshot> {
        self.fleet.as_ref()?.current_fleet()
    }

    /// The same as [`Self::current_status`]; a status of all parts begins with its sentence.
    pub async fn current_document(
        &mut self,
        connected: &ConnectedCluster,
        estimate: Option<FleetEstimate>,
    ) -> Option<StatusDocument> {
        let status = self.current_status(connected).await?;
        let fleet = self.current_fleet().filter(|_| self.scope.part.is_none());
        let Some(fleet) = fleet else {
            return Some(StatusDocument::of_part(status));
        };
        let input = FleetViewInput {
            fleet: &fleet,
            hosts: status.hosts,
            remediations: status.remediations,
            schedules: status.schedules,
            estimate,
            unreadable: Vec::new(),
        };
        Some(StatusDocument::of_view(build_fleet_view(
            input,
            current_time(),
        )))
    }

    /// `None` until every watch has its first list.
    pub async fn current_status(&mut self, connected: &ConnectedCluster) -> Option<FleetStatus> {
        let fleet = match &self.fleet {
            Some(watch) => watch.current_fleet()?,
            None => FleetSnapshot::default(),
        };
        let mut status = filter_status(explain::fleet_status(&fleet, current_time()), &self.scope);
        if let Some(watch) = self
            .hosts
            .as_ref()
            .filter(|_| self.scope.includes_part(StatusPart::Hosts))
        {
            let seen = watch.current_hosts()?;
            if self.nodes_of_hosts.is_none() && !seen.is_empty() {
                self.nodes_of_hosts = Some(hosts::read_nodes_of_hosts(connected).await);
            }
            let carried = self.nodes_of_hosts.as_ref();
            status.hosts =
                hosts::build_host_rows(seen.values(), carried.unwrap_or(&NodesByHost::default()));
        }
        if let Some(watch) = &self.schedules {
            status.schedules = schedule_rows(watch.current_schedules()?.values(), current_time());
        }
        // If only remediations are shown, they are waited for; in a status of all parts they may
        // come later.
        match self.remediation_input() {
            Some(view) => {
                status.remediations = remediations::build_remediation_rows(&view, &self.scope);
            }
            None if self.scope.part == Some(StatusPart::Remediations) => return None,
            None => {}
        }
        Some(status)
    }

    fn remediation_input(&self) -> Option<explain::RemediationReportInput> {
        let (fleet, hosts) = (self.fleet.as_ref()?, self.hosts.as_ref()?);
        remediations_of_watches(
            self.remediations.as_ref()?,
            fleet,
            hosts,
            ObservedController::Unknown,
        )
    }
}

async fn wait_for_remediations(watch: Option<&mut RemediationWatch>) {
    match watch {
        Some(watch) => watch.wait_for_change().await,
        None => std::future::pending().await,
    }
}

fn is_permanent(error: &Error) -> bool {
    matches!(
        error.kind(),
        ApiErrorKind::NotFound | ApiErrorKind::Forbidden
    )
}

async fn wait_for_fleet(watch: Option<&mut FleetWatch>) -> Result<(), Error> {
    match watch {
        Some(watch) => watch.wait_for_change().await,
        None => std::future::pending().await,
    }
}

async fn wait_for_hosts(watch: Option<&mut FleetHostsWatch>) -> Result<(), Error> {
    match watch {
        Some(watch) => watch.wait_for_change().await,
        None => std::future::pending().await,
    }
}

async fn wait_for_schedules(watch: Option<&mut FleetSchedulesWatch>) -> Result<(), Error> {
    match watch {
        Some(watch) => watch.wait_for_change().await,
        None => std::future::pending().await,
    }
}
